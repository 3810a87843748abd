//! Opens an address in the user's browser.

use std::io::Write;
use std::process::{Command, Stdio};

use chronosym_types::escape::xml;
use tempfile::NamedTempFile;

use crate::{interrupt, progress};

/// Opens `url`. It contains a secret, and every user of the machine can read the arguments of its
/// programs: the browser gets a file of this user's that leads there. The file is removed with the
/// returned value, or when a signal ends the process.
pub fn open(url: &str) -> Option<NamedTempFile> {
    let opened = interrupt::make(|| write(url), |file| Some(file.path())).and_then(|page| {
        let [program, arguments @ ..] = opener();
        let mut command = Command::new(program);
        command.args(arguments.iter().filter(|argument| !argument.is_empty()));
        command.arg(page.path()).stdin(Stdio::null());
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(page)
    });
    if opened.is_err() {
        progress::hint("no browser can be opened");
    }
    opened.ok()
}

fn write(url: &str) -> std::io::Result<NamedTempFile> {
    let mut page = tempfile::Builder::new().suffix(".html").tempfile()?;
    let url = xml(url);
    writeln!(
        page,
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url={url}\">\
         <title>chronosym</title><a href=\"{url}\">report</a>"
    )?;
    page.flush()?;
    Ok(page)
}

/// Returns the program that opens files as the desktop does, and its first arguments.
fn opener() -> [&'static str; 4] {
    if cfg!(windows) {
        // The first quoted argument of `start` is a title.
        ["cmd", "/C", "start", "chronosym"]
    } else if cfg!(target_os = "macos") {
        ["open", "", "", ""]
    } else {
        ["xdg-open", "", "", ""]
    }
}
