//! The commands, one file each.

mod diff;
mod events;
mod explain;
mod info;
mod life;
mod lines;
mod listing;
mod manual;
mod methods;
mod missing;
mod modules;
mod pictures;
mod serve;
mod stacks;
mod symbolize;
mod threads;
mod top;

pub use self::symbolize::Question;

use std::io::Write;

use anyhow::Result;
use chronosym::{LimitReached, Profile};
use chronosym_export::CallTree;

use crate::args::{Cli, Command};
use crate::output;

/// Runs what the command line says.
pub fn run(cli: Cli) -> Result<()> {
    let (output, inputs) = cli.command.files();
    output::refuse_inputs(output, inputs)?;
    match cli.command {
        Command::Stacks(args) => stacks::run(&args, cli.quiet),
        Command::Top(args) => top::run(&args, cli.quiet),
        Command::Serve(args) => serve::run(&args, cli.quiet),
        Command::Threads(args) => threads::run(&args, cli.quiet),
        Command::Lines(args) => lines::run(&args, cli.quiet),
        Command::Symbols(args) => missing::run(&args, cli.quiet),
        Command::Diff(args) => diff::run(&args, cli.quiet),
        Command::Info(args) => info::run(&args, cli.quiet),
        Command::Modules(args) => modules::run(&args, cli.quiet),
        Command::Methods(args) => methods::run(&args, cli.quiet),
        Command::Explain(args) => explain::run(&args, cli.quiet),
        Command::Events(args) => events::run(&args, cli.quiet),
        Command::Symbolize(args) => symbolize::run(&args, cli.quiet),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::with_examples(), "chronosym", &mut script);
            print(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            manual::write(&mut page)?;
            print(&page)
        }
    }
}

fn print(text: &[u8]) -> Result<()> {
    let mut out = output::open(None);
    out.write_all(text)?;
    out.flush()?;
    Ok(())
}

/// Says on standard error that the filters let nothing pass.
fn tell_nothing_passes(what: &str, quiet: bool) {
    if !quiet {
        crate::progress::say(&format!(
            "no {what} passes; `chronosym info` shows what the trace has"
        ));
    }
}

/// Says on standard error what a tree of at most so many nodes leaves out.
fn tell_left_out(tree: &CallTree, profile: &Profile, max_nodes: u32) {
    if tree.left_out() > 0 {
        let limit = LimitReached::TreeNodes(max_nodes);
        let (count, all) = (tree.left_out(), profile.samples());
        crate::progress::tell(&format!(
            "{limit}: the innermost frames of {count} of {all} samples are left out"
        ));
    }
}

/// Says on standard error what was damaged or lost.
fn tell(notes: &[String], quiet: bool) {
    if !quiet {
        notes.iter().for_each(|note| crate::progress::tell(note));
    }
}
