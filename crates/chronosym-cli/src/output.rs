//! Output to standard output or a file.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Result, bail};
use chronosym::Budget;
use chronosym_export::show_count;
pub use chronosym_export::{printable, text_line};
use same_file::Handle;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args::{Color, Files, InfoFormat};
use crate::interrupt;

/// Why a program without the feature `fleet` neither writes nor reads tables.
#[cfg(not(feature = "fleet"))]
pub const WITHOUT_FLEET: &str = "this program was built without Parquet and Arrow; `cargo install chronosym-cli --features fleet` builds it with them";

static COLOR: OnceLock<Color> = OnceLock::new();

/// Sets the value of `--color`; call once.
pub fn set_color(color: Color) {
    let _ = COLOR.set(color);
}

/// Returns whether output is coloured: as `--color` states; by default on a terminal unless
/// `NO_COLOR` is set (no-color.org).
pub fn is_coloured(path: Option<&Path>) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match COLOR.get().copied().unwrap_or(Color::Auto) {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal(path) && !set("NO_COLOR") && !dumb
        }
    }
}

/// Returns the columns of the terminal; `None` for other outputs.
pub fn width(path: Option<&Path>) -> Option<usize> {
    if !is_terminal(path) {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

/// Closes standard output and error, so that a reader of them does not wait for the end of this
/// process.
pub fn close() {
    drop(io::stdout().flush());
    #[cfg(unix)]
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Opens standard output, or the file of `-o`. The file gets its name, or its new content, when the
/// writer is first flushed: a command that fails or is killed before that leaves it unchanged.
pub fn open(path: Option<&Path>) -> Box<dyn Write> {
    crate::progress::clear();
    match file(path) {
        None => Box::new(BufWriter::with_capacity(CAPACITY, io::stdout().lock())),
        Some(path) => {
            let file = Replacing {
                path: path.to_owned(),
                state: State::New,
            };
            Box::new(BufWriter::with_capacity(CAPACITY, file))
        }
    }
}

/// Opens standard output for binary data. The standard library's output is for lines: it searches
/// everything that is written for a line end.
pub fn open_binary() -> io::Result<impl Write> {
    crate::progress::clear();
    #[cfg(unix)]
    let out = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
    #[cfg(windows)]
    let out = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
    Ok(BufWriter::with_capacity(CAPACITY, File::from(out)))
}

/// An output that ends at the limit of its size: it repeats names and addresses of the input.
pub struct Limited<W> {
    out: W,
    left: u64,
    limit: u64,
}

impl<W: Write> Limited<W> {
    /// Limits an output by the memory budget of its recording.
    pub fn new(out: W, budget: Budget) -> Self {
        let limit = budget.output_bytes();
        Limited {
            out,
            left: limit,
            limit,
        }
    }
}

impl<W: Write> Write for Limited<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            io::Error::other(format!(
                "the output exceeds {} bytes, 16 times the memory budget; --max-memory raises both",
                show_count(self.limit)
            ))
        })?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes to standard output.
pub fn print(text: &[u8]) -> Result<()> {
    let mut out = open(None);
    out.write_all(text)?;
    out.flush()?;
    Ok(())
}

const CAPACITY: usize = 1 << 16;

/// Opens an output for uncoloured text: on a terminal, long lines are wrapped between words.
pub fn open_text(path: Option<&Path>) -> Box<dyn Write> {
    let out = open(path);
    match width(path) {
        Some(width) => Box::new(Wrapping {
            out,
            width,
            line: Vec::new(),
        }),
        None => out,
    }
}

/// Opens an output by [`open_text`] for text, by [`open`] for JSON.
pub fn open_for(format: InfoFormat, path: Option<&Path>) -> Box<dyn Write> {
    match format {
        InfoFormat::Text => open_text(path),
        InfoFormat::Json => open(path),
    }
}

/// Writes results: an object as JSON, or text.
pub fn write(
    format: InfoFormat,
    mut out: Box<dyn Write>,
    object: &impl Serialize,
    text: impl FnOnce(&mut Box<dyn Write>) -> io::Result<()>,
) -> Result<()> {
    match format {
        InfoFormat::Text => text(&mut out)?,
        InfoFormat::Json => {
            chronosym_types::json::to_writer(&mut out, object)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Passes the first lines on, and drops the others.
pub struct FirstLines<W> {
    out: W,
    left: usize,
}

impl<W: Write> FirstLines<W> {
    pub fn new(out: W, most: Option<usize>) -> Self {
        let left = most.unwrap_or(usize::MAX);
        FirstLines { out, left }
    }
}

impl<W: Write> Write for FirstLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without a limit, gigabytes are not searched for line feeds.
        if self.left == usize::MAX {
            return self.out.write(bytes);
        }
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.left == 0 {
                break;
            }
            self.out.write_all(line)?;
            self.left -= usize::from(line.ends_with(b"\n"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

struct Wrapping<W> {
    out: W,
    width: usize,
    /// The start of a line that is not written yet.
    line: Vec<u8>,
}

impl<W: Write> Write for Wrapping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(part);
            if let Some(line) = self.line.strip_suffix(b"\n") {
                let line = String::from_utf8_lossy(line);
                let indent = line.len() - line.trim_start_matches(' ').len() + 4;
                let indent = " ".repeat(indent.min(self.width / 2));
                let wrapped = chronosym_export::wrap(&line, self.width, &indent);
                self.line.clear();
                writeln!(self.out, "{wrapped}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&std::mem::take(&mut self.line))?;
        self.out.flush()
    }
}

/// A file that replaces another when it is complete; every error names it.
struct Replacing {
    path: PathBuf,
    state: State,
}

enum State {
    New,
    /// Written under a temporary name.
    Aside(NamedTempFile, PathBuf),
    /// Written in place.
    There(File),
}

impl Replacing {
    /// Devices and pipes are written in place, and so is a file in a folder where no file can be
    /// created.
    fn begin(&self) -> io::Result<State> {
        let old = self.path.metadata().ok();
        if old.as_ref().is_none_or(|old| old.is_file()) {
            // Replaces the target of a symbolic link, not the link.
            let path = self.path.canonicalize().unwrap_or(self.path.clone());
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            let mut builder = tempfile::Builder::new();
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            builder.prefix(".chronosym-");
            let make = || builder.tempfile_in(folder.unwrap_or(Path::new(".")));
            if let Ok(file) = interrupt::make(make, |file| Some(file.path())) {
                if let Some(old) = old {
                    file.as_file().set_permissions(old.permissions())?;
                }
                return Ok(State::Aside(file, path));
            }
        }
        File::create(&self.path).map(State::There)
    }

    fn with_file<T>(&mut self, act: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
        if let State::New = self.state {
            self.state = self.begin()?;
        }
        match &mut self.state {
            State::Aside(file, _) => act(file.as_file_mut()),
            State::There(file) => act(file),
            State::New => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn put_in_place(&mut self) -> io::Result<()> {
        self.with_file(File::flush)?;
        if let State::Aside(file, path) = std::mem::replace(&mut self.state, State::New) {
            let aside = file.path().to_owned();
            self.state = State::There(file.persist(path)?);
            interrupt::keep(&aside);
        }
        Ok(())
    }

    fn named(&self, error: io::Error) -> io::Error {
        let text = format!("cannot write {}: {error}", self.path.display());
        io::Error::new(error.kind(), text)
    }
}

impl Write for Replacing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with_file(|file| file.write(bytes))
            .map_err(|error| self.named(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put_in_place().map_err(|error| self.named(error))
    }
}

/// Rejects an output that is also an input.
pub fn refuse_inputs(files: &Files) -> Result<()> {
    let Some(output) = &files.output else {
        return Ok(());
    };
    let Some(input) = files.read.iter().find(|input| is_same(output, input)) else {
        return Ok(());
    };
    let name = match input.as_os_str() {
        name if name == "-" => "standard input".into(),
        name => name.to_string_lossy(),
    };
    bail!(
        "-o {} would overwrite the input {name}: choose another file",
        output.display()
    )
}

/// Returns whether output and input are the same file on disk, under any names. Pipes and terminals
/// are not checked: opening one may consume input.
fn is_same(output: &Path, input: &Path) -> bool {
    let is_file = |path: &Path| path.metadata().is_ok_and(|m| m.is_file());
    let read = match input.as_os_str() == "-" {
        true => Handle::stdin().ok(),
        false => is_file(input)
            .then(|| Handle::from_path(input).ok())
            .flatten(),
    };
    is_file(output) && read.is_some() && read == Handle::from_path(output).ok()
}

/// Returns whether the output is a terminal.
pub fn is_terminal(path: Option<&Path>) -> bool {
    file(path).is_none() && io::stdout().is_terminal()
}

/// Returns the file of `-o`; `-` is standard output.
fn file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| path.as_os_str() != "-")
}

/// Returns whether the reader of the output, such as `head`, has closed the pipe.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let of_writer = cause.downcast_ref().map(io::Error::kind);
        // JSON that is written part by part.
        let of_json = cause
            .downcast_ref()
            .and_then(serde_json::Error::io_error_kind);
        of_writer.or(of_json) == Some(io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_into_a_terminal() {
        let mut text = Vec::new();
        let mut out = Wrapping {
            out: &mut text,
            width: 40,
            line: Vec::new(),
        };
        // Written in parts, as `write!` does.
        for part in [
            "  module App",
            "   0.1s.. 7 bodies\n",
            "    IL /usr/share/dotnet/",
            "shared/App.dll\n",
            "end",
        ] {
            out.write_all(part.as_bytes()).unwrap();
        }
        out.flush().unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "  module App   0.1s.. 7 bodies\n    IL /usr/share/dotnet/shared/App.dll\nend"
        );
        let mut text = Vec::new();
        let mut out = Wrapping {
            out: &mut text,
            width: 24,
            line: Vec::new(),
        };
        writeln!(out, "    IL /usr/share/dotnet/shared/App.dll").unwrap();
        assert_eq!(text, "    IL …shared/App.dll\n".as_bytes());
    }
}
