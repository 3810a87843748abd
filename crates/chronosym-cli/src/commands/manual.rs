//! `chronosym man`: one page for the program and all its commands.

use std::io::{self, Write};

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::Cli;
use crate::examples::EXAMPLES;

const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Success. An empty result is a success, too."),
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

/// Writes the page in roff.
pub fn write(out: &mut impl Write) -> io::Result<()> {
    let mut program = Cli::with_examples();
    program.build();
    let man = Man::new(program.clone());
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    man.render_subcommands_section(out)?;
    for command in program.get_subcommands().filter(|c| c.get_name() != "help") {
        writeln!(out, ".SH CHRONOSYM {}", command.get_name().to_uppercase())?;
        let page = Man::new(command.clone());
        let mut sections = Vec::new();
        page.render_synopsis_section(&mut sections)?;
        page.render_description_section(&mut sections)?;
        page.render_options_section(&mut sections)?;
        // Sections of a command are subsections of the one page.
        let text = String::from_utf8_lossy(&sections).replace(".SH ", ".SS ");
        out.write_all(text.as_bytes())?;
    }
    terms("EXIT STATUS", EXIT_STATUS.iter()).to_writer(out)?;
    terms("ENVIRONMENT", ENVIRONMENT.iter()).to_writer(out)?;
    let examples = EXAMPLES.iter().flat_map(|(_, examples)| *examples);
    terms("EXAMPLES", examples).to_writer(out)?;
    man.render_version_section(out)
}

/// A section of terms with their descriptions.
fn terms<'a>(title: &str, terms: impl Iterator<Item = &'a (&'a str, &'a str)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    for (term, meaning) in terms {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*meaning)]);
    }
    roff
}
