//! Options of `chronosym record`.

use std::ffi::OsString;
use std::path::PathBuf;

use chronosym_record::{Profile, Provider};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::units;

/// `chronosym record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Record the process with this id (repeatable).
    #[arg(long, short, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["name", "command"])]
    pub pid: Vec<u32>,
    /// Record all .NET processes whose program has this name: `App` or `App.dll` for `dotnet
    /// App.dll`.
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub name: Option<String>,
    /// Start this program and record it from its first instruction, and so each .NET process that
    /// starts in it.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// What to record; several separated by commas. Default cpu; with --perf only what names code;
    /// nothing if --providers are given.
    #[arg(long, value_name = "PROFILE", value_delimiter = ',', value_parser = one_profile())]
    pub profile: Vec<Profile>,
    /// Record these providers, too: `NAME[:KEYWORDS[:LEVEL[:ARGUMENTS]]]`, separated by commas, as
    /// for dotnet-trace.
    #[arg(long, value_name = "PROVIDER", value_delimiter = ',')]
    pub providers: Vec<Provider>,
    /// Stop after this time: 30s, 5m. Default at Ctrl+C, or at the end of the program.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub duration: Option<u64>,
    /// Stop when the recordings have this size together, in bytes or with K, M or G. The list of code at its
    /// end may add half as much.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub max_size: Option<u64>,
    /// Size of the runtime's buffer in MiB: events are lost while it is full.
    #[arg(long, value_name = "MIB", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub buffer: u32,
    /// Do not list the code that was compiled before the recording; without it a target that is
    /// killed has unnamed code.
    #[arg(long)]
    pub no_start_rundown: bool,
    /// Also run the system's `perf record` on the processes, which samples processors: native code
    /// and the kernel, too. FILE.perf.data is joined with the recordings. perf finds callers by
    /// frame pointers (fp), or by copies of the stack (dwarf) if most native code has none.
    #[arg(long, value_name = "CALLS", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub perf: Option<CallGraph>,
    /// Write FILE.chrono as well: what `save` makes of the recordings.
    #[arg(long)]
    pub save_timeline: bool,
    /// Write the recording to FILE.nettrace, those of several processes to FILE-PID.nettrace. For
    /// another extension (html, svg, folded, …) also write what `stacks -o FILE` makes of them
    /// together. Default NAME-PID.nettrace, which must not exist.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How `perf` finds callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CallGraph {
    Auto,
    Fp,
    Dwarf,
}

/// `chronosym watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// Watch the process with this id.
    #[arg(long, short, value_name = "PID", conflicts_with = "name")]
    pub pid: Option<u32>,
    /// Watch the .NET process whose program has this name.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Show a table of the samples of each interval.
    #[arg(long, value_name = "T", default_value = "2s", value_parser = units::parse_time)]
    pub interval: u64,
    /// Stop after this time: 30s, 5m. Default at Ctrl+C, or at the end of the process.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub duration: Option<u64>,
    /// Show only the table of all methods.
    #[arg(long)]
    pub all: bool,
    /// Show at most N rows.
    #[arg(long = "most", short = 'n', default_value_t = 10, value_name = "N")]
    pub max_lines: usize,
}

fn one_profile() -> impl TypedValueParser<Value = Profile> {
    let names = Profile::ALL.map(|(name, _)| name);
    PossibleValuesParser::new(names).map(|name| {
        let mut all = Profile::ALL.iter();
        all.find(|(own, _)| *own == name)
            .map_or(Profile::Cpu, |&(_, profile)| profile)
    })
}
