//! The command line: commands, arguments and options.

mod extension;
mod listings;
mod mistakes;
mod parts;
#[cfg(unix)]
mod record;
mod reports;
mod save;
mod stacks;
mod symbolize;
mod tools;
mod values;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
#[cfg(unix)]
use anyhow::bail;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use self::listings::{EventFormat, Events, Explain, Info, Listing, Methods};
pub use self::parts::*;
#[cfg(unix)]
pub use self::record::{CallGraph, Record, Watch};
pub use self::reports::{Diff, DiffFormat, Inlining, Lines, OfTrace, Runtime, Top};
#[cfg(feature = "fleet")]
pub use self::save::ExportFormat;
pub use self::save::{AddressFormat, Export, Merge, Resolve, Save};
pub use self::stacks::{Serve, SourceOptions, StackFormat, StackGroup, Stacks};
pub use self::symbolize::{Symbolize, is_log};
use crate::limits::{self, LimitOptions};

/// What code was at address A of process P at time T?
///
/// Reads .NET, kernel and perf traces (.nettrace, .netperf, .etl, perf.data, LTTng) on any
/// operating system, and resolves every frame of every sample for the time it was taken, or states
/// why it has no name.
#[derive(Debug, Parser)]
#[command(
    name = "chronosym",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Suppress progress and notes.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Use colours; auto means on a terminal.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN"
    )]
    pub color: Color,
    #[command(flatten)]
    pub limits: LimitOptions,
}

impl Cli {
    /// The program's commands, with examples.
    pub fn with_examples() -> clap::Command {
        crate::examples::add(Self::command())
    }

    /// Parses the command line; help and errors of usage end the program. A trace in place of a
    /// command means `summary`.
    pub fn read() -> (Self, Files) {
        let mut args: Vec<OsString> = std::env::args_os().collect();
        let translated = tools::translate(&args, &Self::symbolize_takes_value);
        let translated = translated.unwrap_or_else(|error| {
            let kind = ErrorKind::InvalidValue;
            Self::command().error(kind, format!("{error:#}")).exit()
        });
        let tool = translated.map(|translated| {
            args = translated.args;
            translated.tool
        });
        if limits::is_help(&args) {
            print!("{}", limits::help());
            std::process::exit(0);
        }
        let (mut cli, files) = Self::parse_words(args).unwrap_or_else(|error| error.exit());
        if let Command::Symbolize(symbolize) = &mut cli.command {
            symbolize.tool = tool;
        }
        (cli, files)
    }

    fn parse_words(mut words: Vec<OsString>) -> Result<(Self, Files), clap::Error> {
        let mut program = Self::command();
        let mut matches = program.try_get_matches_from_mut(&words);
        if let Err(error) = &matches
            && let Some(at) = trace_for_command(error, &Self::command(), &words)
        {
            words.insert(at, "summary".into());
            matches = program.try_get_matches_from_mut(&words);
        }
        let mut matches = matches.or_else(|_| Self::parse_with_examples(&words))?;
        let usage = |error| Self::command().error(ErrorKind::InvalidValue, format!("{error:#}"));
        let files = Files::of(&matches);
        // An output that is also an input is rejected later.
        let overwrites = files
            .output
            .is_some_and(|output| files.read.contains(&output));
        let format = extension::format(&program, &matches).map_err(usage);
        if !overwrites && let Some(format) = format? {
            let command = matches.subcommand_name().map(OsString::from);
            let at = words.iter().position(|word| Some(word) == command.as_ref());
            let at = at.map_or(words.len(), |at| at + 1);
            words.splice(at..at, ["--format".into(), format.into()]);
            matches = program.try_get_matches_from(&words)?;
        }
        Ok((Self::from_arg_matches(&matches)?, Files::of(&matches)))
    }

    /// Parses requests for help and mistakes, which show examples.
    fn parse_with_examples(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
        let program = Self::with_examples();
        let matches = program.clone().try_get_matches_from(words);
        matches.map_err(|error| mistakes::advise(error, &program, words))
    }

    /// The command `stacks` with these words behind `-o`.
    #[cfg(unix)]
    pub fn stacks(output: &Path, words: &[OsString]) -> Result<Stacks> {
        match Self::writing("stacks", output, words)? {
            Command::Stacks(stacks) => Ok(stacks),
            _ => bail!("cannot write {}", output.display()),
        }
    }

    /// The command `save` with these words behind `-o`.
    #[cfg(unix)]
    pub fn save(output: &Path, words: &[OsString]) -> Result<Save> {
        match Self::writing("save", output, words)? {
            Command::Save(save) => Ok(save),
            _ => bail!("cannot write {}", output.display()),
        }
    }

    #[cfg(unix)]
    fn writing(command: &str, output: &Path, words: &[OsString]) -> Result<Command> {
        let before = ["chronosym", command, "-o"].map(OsString::from);
        let words = words.iter().cloned();
        let words = before.into_iter().chain([output.into()]).chain(words);
        Ok(Self::parse_words(words.collect())?.0.command)
    }

    /// Returns whether an option of `symbolize` has a value; `None` if there is no such option.
    fn symbolize_takes_value(name: &str) -> Option<bool> {
        let mut command = Self::command();
        command.build();
        let symbolize = command.find_subcommand("symbolize");
        let mut options = symbolize.into_iter().flat_map(clap::Command::get_arguments);
        let is_it = |option: &&clap::Arg| option.get_long() == name.strip_prefix("--");
        options
            .find(is_it)
            .map(|option| option.get_action().takes_values())
    }
}

/// The output, and the files named as input.
#[derive(Debug, Default)]
pub struct Files {
    pub output: Option<PathBuf>,
    pub read: Vec<PathBuf>,
}

impl Files {
    /// Arguments that name files to be read.
    const READ: [&str; 6] = ["traces", "trace", "before", "after", "obj", "pdb"];

    fn of(matches: &ArgMatches) -> Self {
        let Some((_, matches)) = matches.subcommand() else {
            return Files::default();
        };
        let named = |id: &str| matches.try_get_many::<PathBuf>(id).ok().flatten();
        let paths = |id: &&str| named(id).into_iter().flatten().cloned();
        let maps = paths(&"perf_map").map(|map| perf_map(&map).1.to_owned());
        Files {
            output: paths(&"output").next(),
            read: Self::READ.iter().flat_map(paths).chain(maps).collect(),
        }
    }
}

/// Returns the position where a command is missing before a file, or before options and a file.
fn trace_for_command(
    error: &clap::Error,
    program: &clap::Command,
    words: &[OsString],
) -> Option<usize> {
    if error.kind() == ErrorKind::UnknownArgument {
        let has_command = words
            .iter()
            .any(|word| program.find_subcommand(word).is_some());
        let has_file = words.iter().skip(1).any(|word| Path::new(word).exists());
        return (has_file && !has_command).then_some(1);
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let is_path = word == "-" || word.contains(['.', '/', '\\']) || Path::new(word).exists();
    let at = || words.iter().position(|arg| arg.to_string_lossy() == *word);
    is_path.then(at).flatten()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Summarize a trace in at most ten lines: what ran, where the time went, what to do next.
    ///
    /// `chronosym TRACE` is the short form. Nothing is downloaded unless --symbol-path names a
    /// server; servers in _NT_SYMBOL_PATH and DEBUGINFOD_URLS are not contacted.
    Summary(Info),
    /// Show what a trace contains and what is missing: processes, events, names, losses, damage.
    ///
    /// Nothing is downloaded unless --symbol-path names a server; servers in _NT_SYMBOL_PATH and
    /// DEBUGINFOD_URLS are not contacted.
    Info(Info),
    /// Print the resolved stacks of samples or other events.
    Stacks(Stacks),
    /// Show where the time went: hot methods, modules, threads, lines; callers and callees of a
    /// method.
    Top(Box<Top>),
    /// Record a .NET process, without another tool and without root.
    ///
    /// Works with .NET Core 3.1 and later, also in containers that this machine runs, through the
    /// runtime's own diagnostics protocol; a program that is started with it needs .NET 5. Without
    /// --profile the stacks of all managed threads are sampled. See docs/record.md.
    #[cfg(unix)]
    #[command(
        override_usage = "chronosym record [OPTIONS] <--pid <PID> | --name <NAME> | -- COMMAND...>"
    )]
    Record(Record),
    /// Show where a running .NET process spends its time, every two seconds, until stopped.
    ///
    /// The only file written is a temporary list of loaded code. Memory use grows with the amount
    /// of loaded code.
    #[cfg(unix)]
    #[command(override_usage = "chronosym watch [OPTIONS] <--pid <PID> | --name <NAME>>")]
    Watch(Watch),
    /// Show the report of a trace in this machine's browser, until stopped.
    ///
    /// Only this machine can connect, and only with the printed URL, which contains a random token.
    /// The report contains source files of user code from PDBs with embedded source, folders given
    /// with --sources, paths in the trace with --trust-trace-paths, and, if downloads are enabled,
    /// Source Link.
    Serve(Serve),
    /// List threads with their time, running share and hottest method.
    Threads(OfTrace),
    /// Show a method's source with the time on each line.
    Lines(Lines),
    /// Report garbage collections, JIT compilations, exceptions, allocations, lock contention, the
    /// thread pool and event counters, from the .NET runtime's own events.
    ///
    /// KIND is gc, jit, exceptions, allocations, contention, threadpool or counters; without it, all
    /// are summarized. If a trace lacks the events of a report, the report says what to record.
    /// Definitions are in docs/runtime.md.
    #[command(override_usage = "chronosym runtime [OPTIONS] [KIND] <TRACE>...")]
    Runtime(Runtime),
    /// Show which calls the JIT inlined into hot methods, and which it rejected and why.
    ///
    /// Rejected calls are ranked by the time spent in the callee when called from that method. Each
    /// is listed with the JIT's reason and a remedy. METHOD is a PATTERN. Inlined calls come from
    /// rich debug info, which includes their IL offsets, or from the JIT's events.
    #[command(override_usage = "chronosym inlining [OPTIONS] <TRACE>... [METHOD]")]
    Inlining(Inlining),
    /// List missing symbol files, ranked by the self time they would name.
    Symbols(OfTrace),
    /// List methods whose share differs between two traces.
    Diff(Diff),
    /// Print every record, decoded with the field names of its manifest.
    ///
    /// Process and thread ids are those in the record itself. A payload without a manifest is shown
    /// in hex as `Payload`, and bytes after the last described field as `Rest`. Stacks in separate
    /// records are printed as records.
    Events(Events),
    /// List CLR modules and native images with lifetime and symbol identity.
    Modules(Listing),
    /// List every code body with its range, lifetime, tier, version and evidence.
    Methods(Methods),
    /// Explain everything known about one address, step by step.
    Explain(Explain),
    /// Resolve addresses to names, lines and inlined functions.
    Symbolize(Symbolize),
    /// Add names, lines and inlined functions to OTLP profiles.
    ///
    /// Reads FILE, or standard input, and writes the same profiles: what has a name or a line keeps it,
    /// and everything that no symbol file names is unchanged. Native code is found by GNU build ID,
    /// .NET code by assemblies in the folders of --symbols (docs/otlp.md).
    Otlp(Otlp),
    /// Save the timeline of a trace in a small file that every command accepts in place of the
    /// trace.
    ///
    /// The file contains the lifetimes and names of code, IL maps, inlined calls, images, modules,
    /// and the identities of symbol files. Symbol files are searched by identity when the saved
    /// file is used.
    Save(Save),
    /// Join traces or saved timelines of one machine into one saved timeline.
    ///
    /// Times are aligned by the wall-clock time at which each recording began. A process that several
    /// of them have answers as in one recording. Recordings of different machines are rejected.
    Merge(Merge),
    /// Export resolved samples as tables for query engines: Parquet or Arrow.
    ///
    /// Writes a file for each table and recording: DIR/samples/NAME.parquet, and so on for stacks, frames, processes,
    /// modules and diagnostics. Equal stacks have equal ids in all files. The tables are described in
    /// docs/fleet/schema.md.
    Export(Export),
    /// Name a stream of bare addresses, each with the timeline of its process: a function for query engines.
    ///
    /// Rows of standard input have a key, a time in ns since 1970-01-01 UTC, and an address. The key is the name of a file in
    /// the folder of --timelines, followed by #PID if it has several processes. Rows of standard output have the functions at
    /// the address, innermost first. Timelines stay open until the input ends. See docs/fleet.
    Resolve(Resolve),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, or of a command.
    Man {
        /// The command.
        command: Option<String>,
        /// Write all pages to DIR.
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        dir: Option<PathBuf>,
    },
}
