//! The commands, one file each.

mod events;
mod explain;
mod info;
mod methods;
mod modules;
mod stacks;
mod top;

use anyhow::Result;

use crate::args::{Cli, Command};

/// Runs what the command line says.
pub fn run(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Stacks(args) => stacks::run(&args, cli.quiet),
        Command::Top(args) => top::run(&args, cli.quiet),
        Command::Info(args) => info::run(&args, cli.quiet),
        Command::Modules(args) => modules::run(&args, cli.quiet),
        Command::Methods(args) => methods::run(&args, cli.quiet),
        Command::Explain(args) => explain::run(&args, cli.quiet),
        Command::Events(args) => events::run(&args, cli.quiet),
        _ => Ok(()),
    }
}

/// Says on standard error what was damaged or lost.
fn tell(notes: &[String], quiet: bool) {
    crate::progress::clear();
    if !quiet {
        for note in notes {
            eprintln!("chronosym: note: {note}");
        }
    }
}
