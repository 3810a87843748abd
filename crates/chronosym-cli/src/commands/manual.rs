//! `chronosym man`: a page for the program and one for each command.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::{Cli, Usage};
use crate::examples::EXAMPLES;
use crate::{limits, output};

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Success, including an empty result."),
    (
        "1",
        "A file could not be read or written, or the requested item does not exist.",
    ),
    ("2", "The command line is invalid."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "_NT_SYMBOL_PATH",
        "Folders, symbol stores and servers to search for symbol files, unless --symbol-path is given.",
    ),
    (
        "DEBUGINFOD_URLS",
        "debuginfod servers, separated by spaces.",
    ),
    (
        "NO_COLOR",
        "If not empty, no colours unless --color=always is given.",
    ),
    ("TERM", "If dumb, no colours."),
];

/// Prints the page of the program, or of a command; or writes all pages to a folder.
pub fn run(command: Option<&str>, folder: Option<&Path>) -> Result<()> {
    let mut program = Cli::with_examples().disable_help_subcommand(true);
    program.build();
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder)?;
        let commands = program.get_subcommands().map(Some);
        for command in commands.chain([None]) {
            let name = command.and_then(clap::Command::get_display_name);
            let path = folder.join(format!("{}.1", name.unwrap_or("chronosym")));
            let mut out = output::open(Some(&path));
            out.write_all(&page(&program, command)?)?;
            out.flush()?;
        }
        return Ok(());
    }
    let command = match command {
        None => None,
        Some(name) => Some(program.find_subcommand(name).ok_or_else(|| {
            let names = program.get_subcommands().map(clap::Command::get_name);
            let names: Vec<_> = names.collect();
            Usage(format!(
                "unknown command '{name}'; the commands are {}",
                names.join(", ")
            ))
        })?),
    };
    output::print(&page(&program, command)?)
}

/// Returns the page of the program or one of its commands, in roff.
fn page(program: &clap::Command, command: Option<&clap::Command>) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let man = Man::new(command.unwrap_or(program).clone());
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let examples: &dyn Fn(&&str) -> bool = match command {
        None => &|_| true,
        Some(command) => &|of| *of == command.get_name(),
    };
    if command.is_none() {
        man.render_subcommands_section(&mut out)?;
        let limits = limits::command();
        let limits: Vec<_> = limits.get_arguments().filter_map(limit).collect();
        let limits = limits.iter().map(|(name, help)| (&**name, &**help));
        terms("LIMITS", limits).to_writer(&mut out)?;
        terms("EXIT STATUS", EXIT_STATUS.iter().copied()).to_writer(&mut out)?;
        terms("ENVIRONMENT", ENVIRONMENT.iter().copied()).to_writer(&mut out)?;
    }
    let of = EXAMPLES.iter().filter(|(of, _)| examples(of));
    let shown: Vec<_> = of.flat_map(|(_, examples)| *examples).copied().collect();
    if !shown.is_empty() {
        terms("EXAMPLES", shown.into_iter()).to_writer(&mut out)?;
    }
    match command {
        None => man.render_version_section(&mut out)?,
        Some(_) => {
            let mut roff = Roff::new();
            roff.control("SH", ["SEE ALSO"]);
            roff.text([bold("chronosym"), roman("(1)")]);
            roff.to_writer(&mut out)?;
        }
    }
    Ok(out)
}

/// Returns name and help of a limit.
fn limit(argument: &clap::Arg) -> Option<(String, String)> {
    if argument.is_hide_set() {
        return None;
    }
    let help = argument.get_long_help().or(argument.get_help())?;
    Some((format!("--{}", argument.get_long()?), help.to_string()))
}

/// Returns a section of terms with their descriptions.
fn terms<'a>(title: &str, terms: impl Iterator<Item = (&'a str, &'a str)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, meaning) in terms {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(meaning)]);
    }
    roff
}
