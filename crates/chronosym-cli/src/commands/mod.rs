//! The commands, one file each.

mod diff;
#[cfg(unix)]
mod dotnet_process;
mod events;
mod explain;
mod export;
mod info;
mod inlining;
mod lines;
mod listing;
mod manual;
mod methods;
mod missing;
mod modules;
mod otlp;
mod pictures;
#[cfg(unix)]
mod record;
mod report;
mod resolve;
mod runtime;
mod save;
mod serve;
mod stacks;
mod summary;
mod symbolize;
mod threads;
mod top;
#[cfg(unix)]
mod watch;

use anyhow::Result;

use crate::args::{Cli, Command};
use crate::output;

/// Runs a command.
pub fn run(command: Command) -> Result<()> {
    match command {
        Command::Stacks(args) => stacks::run(&args),
        Command::Top(args) => top::run(&args),
        #[cfg(unix)]
        Command::Record(args) => record::run(&args),
        #[cfg(unix)]
        Command::Watch(args) => watch::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Threads(args) => threads::run(&args),
        Command::Lines(args) => lines::run(&args),
        Command::Runtime(args) => runtime::run(&args),
        Command::Inlining(args) => inlining::run(&args),
        Command::Symbols(args) => missing::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Summary(args) => summary::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Modules(args) => modules::run(&args),
        Command::Methods(args) => methods::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Symbolize(args) => symbolize::run(&args),
        Command::Otlp(args) => otlp::run(&args),
        Command::Save(args) => save::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Resolve(args) => resolve::run(&args),
        Command::Merge(args) => save::merge(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::with_examples(), "chronosym", &mut script);
            output::print(&script)
        }
        Command::Man { command, dir } => manual::run(command.as_deref(), dir.as_deref()),
    }
}
