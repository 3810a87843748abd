//! The commands, one file each.

mod diff;
mod events;
mod explain;
mod info;
mod lines;
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
use std::sync::Arc;

use anyhow::Result;
use chronosym::symbols::Symbolizer;

use clap::CommandFactory;

use crate::args::{Cli, Command, EventFilters, Input, Samples};
use crate::load::{self, Loaded};
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
            clap_complete::generate(shell, &mut Cli::command(), "chronosym", &mut script);
            print(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            manual::write(&mut page)?;
            print(&page)
        }
    }
}

/// Reads the traces whose samples are wanted; damage is told. With it come the symbols and the filter that the options
/// make.
fn open_samples(
    input: &Input,
    filters: &EventFilters,
    samples: &Samples,
    quiet: bool,
) -> Result<(Loaded, Arc<Symbolizer>, chronosym::Filter)> {
    if samples.managed_only && !quiet {
        crate::progress::say("--managed-only is --running now: it leaves out threads that waited");
    }
    let loaded = load::load(&input.traces, load::selection(filters), &input.symbols)?;
    tell(&loaded.notes, quiet);
    let symbols = Arc::new(crate::symbols::open(&input.symbols, &loaded)?);
    let filter = chronosym::Filter {
        tid: filters.tid,
        waiting: samples.waiting(),
        idle: samples.idle,
        ..load::filter(&filters.processes, &loaded.timeline)?
    };
    Ok((loaded, symbols, filter))
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

/// Says on standard error what was damaged or lost.
fn tell(notes: &[String], quiet: bool) {
    if !quiet {
        notes.iter().for_each(|note| crate::progress::tell(note));
    }
}
