//! The command line of chronosym.

mod absent;
mod args;
mod commands;
mod emptied;
mod examples;
mod exported;
mod input;
mod interrupt;
mod limits;
mod load;
mod output;
mod profiled;
mod progress;
mod protocol;
mod request;
mod symbolizer;
mod symbols;
mod thinning;
mod units;

use std::process::ExitCode;

fn main() -> ExitCode {
    // clap exits with status 2 after usage errors, and 0 after help and version.
    let (cli, files) = args::Cli::read();
    output::set_color(cli.color);
    limits::set(&cli.limits);
    progress::begin(cli.quiet);
    #[cfg(feature = "fleet")]
    exported::silence_decoders();
    let result = output::refuse_inputs(&files).and_then(|()| commands::run(cli.command));
    progress::clear();
    if result.is_ok() {
        output::close();
        symbolizer::convert_used();
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            progress::say(&format!("{error:#}"));
            ExitCode::from(if error.is::<args::Usage>() { 2 } else { 1 })
        }
    }
}
