//! `chronosym man`: one page for the program and all its commands.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;

/// Writes the page in roff.
pub fn write(out: &mut impl Write) -> io::Result<()> {
    let mut program = Cli::command();
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
    man.render_version_section(out)
}
