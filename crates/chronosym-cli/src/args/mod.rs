//! The command line: commands, arguments and options.

mod extension;
mod mistakes;
mod parts;
#[cfg(unix)]
mod record;
mod tools;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use chronosym_export::{By, JsonStacks, Pattern, Sort, WeightUnit};
use chronosym_symbols::style::{Functions, Shape, Style};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use self::parts::*;
#[cfg(unix)]
pub use self::record::{CallGraph, Record, Watch};
pub use self::tools::Tool;
use crate::limits::{self, LimitOptions};
use crate::units::parse_address;

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
        let program = Self::with_examples();
        let parse = |words: &[OsString]| program.clone().try_get_matches_from(words);
        let mut matches = parse(&words);
        if let Err(error) = &matches
            && let Some(at) = trace_for_command(error, &program, &words)
        {
            words.insert(at, "summary".into());
            matches = parse(&words);
        }
        let mut matches = matches.map_err(|error| mistakes::advise(error, &program, &words))?;
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
            matches = parse(&words)?;
        }
        Ok((Self::from_arg_matches(&matches)?, Files::of(&matches)))
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

/// Returns a parser for a type with a fixed list of names.
fn one_of<T>(
    names: impl IntoIterator<Item = impl Into<PossibleValue>>,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Default + FromStr + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|name| name.parse().unwrap_or_default())
}

/// Returns a possible value with its meaning.
fn meant((name, what): (&'static str, &'static str)) -> PossibleValue {
    PossibleValue::new(name).help(what)
}

/// Placement of frames in JSON lines.
const JSON_STACKS: [(&str, &str); 2] = [
    (JsonStacks::Inline.as_str(), "In every sample"),
    (JsonStacks::Table.as_str(), "Each stack once"),
];

/// Weights of folded stacks, text and flame graphs.
const WEIGHTS: [(&str, &str); 4] = [
    ("samples", "Samples"),
    ("time", "Time of the samples, in microseconds"),
    ("bytes", "Bytes stated in the events"),
    (
        "events",
        "Counter events, such as cycles: the periods of the samples",
    ),
];

/// Output styles of `symbolize`.
const STYLES: [(&str, &str); 4] = [
    ("text", "Readable text"),
    ("json", "One JSON object per address"),
    (
        "llvm",
        "Like llvm-symbolizer; accepts its options and input lines",
    ),
    (
        "gnu",
        "Like addr2line; accepts its options, and assumes -f -i -C if none is given",
    ),
];

fn radix(text: &str) -> Result<u32> {
    match text {
        "10" => Ok(10),
        "16" => Ok(16),
        _ => bail!("expected 10 or 16"),
    }
}

/// Returns whether an argument of `symbolize` is the path of a log.
pub fn is_log(text: &str) -> bool {
    Path::new(text).is_file()
}

/// A number of rows.
fn rows(text: &str) -> Result<usize> {
    let rows = text.parse().ok().filter(|&rows| rows > 0);
    rows.context("expected a whole number from 1")
}

fn load_address(text: &str) -> Result<u64> {
    parse_address(text).context("expected 0x… or decimal")
}

#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    pub input: Input,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct Stacks {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub selection: Selection,
    /// Output format [default: by the extension of -o (.svg, .html, .pb.gz, .speedscope.json,
    /// .folded, …), otherwise text].
    #[arg(long, value_enum)]
    pub format: Option<StackFormat>,
    /// Print at most N lines of text, or N samples of jsonl [default: all].
    #[arg(long = "most", short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: Option<usize>,
    /// Weight of folded stacks, text and flame graphs [default: samples for folded stacks;
    /// otherwise time, bytes or events if every sample states them].
    #[arg(long, value_parser = one_of::<WeightUnit>(WEIGHTS.map(meant)))]
    pub weight: Option<WeightUnit>,
    /// Show async methods below the methods that await them, not below those that resumed them. It
    /// takes events about tasks (`chronosym record --profile async`, docs/time.md); without them,
    /// only async plumbing is omitted.
    #[arg(long = "async", help_heading = "Shape")]
    pub async_chains: bool,
    /// Merge the threads of a process.
    #[arg(long)]
    pub no_threads: bool,
    /// Separate frames of one function by source line. Formats with fields for lines always contain
    /// them.
    #[arg(long)]
    pub lines: bool,
    /// Write frames in every sample of jsonl, or write each stack once, on a line of its own that
    /// samples refer to (docs/json.md).
    #[arg(long, value_parser = one_of::<JsonStacks>(JSON_STACKS.map(meant)), default_value = "inline")]
    pub stacks: JsonStacks,
    /// Keep every Nth sample of each thread in speedscope and firefox files, with the weight of all
    /// N [default: 1; more if the file would exceed 200 MB].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "full")]
    pub every: Option<u64>,
    /// Keep all samples in speedscope and firefox files of any size.
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub source: SourceOptions,
}

/// The source files that a report contains.
#[derive(Clone, Debug, Default, Args)]
pub struct SourceOptions {
    /// Search for source files of a report (html) in DIR (repeatable). A file is used if its checksum
    /// matches the PDB.
    #[arg(long, alias = "source", value_name = "DIR")]
    pub sources: Vec<PathBuf>,
    /// Omit source files from a report (html).
    #[arg(long)]
    pub no_source: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackFormat {
    /// One line per distinct stack: frames joined by `;`, then the weight.
    Folded,
    /// One JSON object per sample.
    Jsonl,
    /// A tree, hottest first.
    Text,
    /// A flame graph for any browser.
    Svg,
    /// A report for any browser: time axis with threads, flame graph, callers and callees, table,
    /// source.
    Html,
    /// For www.speedscope.app: a profile per thread, in time order.
    Speedscope,
    /// For profiler.firefox.com.
    Firefox,
    /// For `go tool pprof`: a gzipped protocol buffer.
    Pprof,
    /// OpenTelemetry profiles: a protocol buffer; experimental.
    Otlp,
    /// For ui.perfetto.dev and chrome://tracing: slices of calls by thread, in time order.
    Perfetto,
}

/// `chronosym save`.
#[derive(Debug, Args)]
pub struct Save {
    #[command(flatten)]
    pub input: Input,
    /// Save samples and their stacks, too.
    #[arg(long)]
    pub with_samples: bool,
}

/// `chronosym merge`.
#[derive(Debug, Args)]
pub struct Merge {
    #[command(flatten)]
    pub input: PlainInput,
    /// Save samples and their stacks, too; each input must have them.
    #[arg(long)]
    pub with_samples: bool,
}

/// `chronosym export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Traces to read, each a recording of its own, unless --join.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Write the tables to DIR, which need not exist.
    #[arg(long = "output", short, value_name = "DIR", required = true)]
    pub output_dir: PathBuf,
    /// Format of the files.
    #[arg(long, value_enum, default_value = "parquet")]
    pub format: ExportFormat,
    /// Write names and lines of frames (default).
    #[arg(long)]
    pub named: bool,
    /// Write addresses of frames only: those in images with the image's identity.
    #[arg(long, conflicts_with = "named")]
    pub addresses: bool,
    /// Write the sums of samples that differ in time and weight only, with their stacks: one table,
    /// profiles, in place of all but diagnostics.
    #[arg(long)]
    pub sums: bool,
    /// Read all traces as one recording of one machine and time.
    #[arg(long)]
    pub join: bool,
    /// Name of the machine, unless the recording states it.
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Id of the machine's boot, unless the recording states it.
    #[arg(long, value_name = "ID")]
    pub boot: Option<String>,
    #[command(flatten)]
    pub filters: EventFilters,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// `chronosym resolve`.
#[derive(Debug, Args)]
pub struct Resolve {
    /// Format of standard input and standard output.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub stdin: AddressFormat,
    /// Folder of timelines: files of `chronosym save`, deltas, or traces.
    #[arg(long, value_name = "DIR")]
    pub timelines: PathBuf,
    /// Treat addresses as return addresses, as all but the innermost of a stack are.
    #[arg(long)]
    pub caller: bool,
    /// Keep at most N timelines open; the one that was not used for longest is closed.
    #[arg(long = "max-open", default_value_t = 256, value_name = "N", value_parser = rows)]
    pub max_open: usize,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// The format of a stream of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AddressFormat {
    /// Arrow's stream format (IPC): columns key, time, address; column names, a list.
    Arrow,
    /// ClickHouse's RowBinary: String, Int64, UInt64; Array(String).
    Rowbinary,
}

/// The format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Parquet, compressed by gzip.
    Parquet,
    /// Arrow's file format (IPC).
    Arrow,
}

/// `chronosym threads` and `chronosym symbols`.
#[derive(Debug, Args)]
pub struct OfTrace {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub selection: Selection,
    /// Show what ended the waits of the methods that match PATTERN: the threads and stacks that woke
    /// the waiting threads, weighted by the waits. It takes context switches and wake-ups
    /// (docs/time.md).
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::or_regex, conflicts_with_all = ["activity", "running", "waiting", "managed_only", "event"], help_heading = "Filters")]
    pub wakers: Option<Pattern>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
    /// Show at most N rows.
    #[arg(long = "most", short = 'n', default_value_t = 30, value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: usize,
}

#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    pub of: OfTrace,
    /// Group samples by KEY. `activity` takes the activity ids of events (docs/time.md).
    #[arg(long, value_parser = one_of::<By>(By::ALL.map(By::as_str)), default_value = "method", value_name = "KEY")]
    pub by: By,
    /// Show async methods below the methods that await them, not below those that resumed them. It
    /// takes events about tasks (`chronosym record --profile async`, docs/time.md); without them,
    /// only async plumbing is omitted.
    #[arg(long = "async", conflicts_with = "wakers", help_heading = "Shape")]
    pub async_chains: bool,
    /// Omit the table of user methods and show the table of all methods only.
    #[arg(long)]
    pub all: bool,
    /// Sort by self (exclusive) or total (inclusive) weight.
    #[arg(long, value_parser = one_of::<Sort>(Sort::ALL.map(Sort::as_str)), default_value = "self")]
    pub sort: Sort,
    /// Show only rows that match PATTERN; percentages stay relative to all samples.
    #[arg(long = "match", value_name = "PATTERN", value_parser = Pattern::or_regex)]
    pub matching: Option<Pattern>,
    /// List the callers of the methods that match PATTERN, with their weights.
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new, conflicts_with_all = ["by", "sort", "matching"])]
    pub callers: Option<Pattern>,
    /// List the callees of the methods that match PATTERN.
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::new, conflicts_with_all = ["by", "sort", "matching"])]
    pub callees: Option<Pattern>,
}

/// The site of a viewer, without a slash at its end.
fn viewer(text: &str) -> Result<String, std::convert::Infallible> {
    let site = match text {
        "firefox" => "https://profiler.firefox.com",
        url => url.trim_end_matches('/'),
    };
    Ok(site.to_owned())
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Trace to read: .nettrace, .netperf, .etl, perf.data or LTTng, plain, zipped or gzipped; `-`
    /// is standard input. Several .etl files of one recording can be given together.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Listen on this port; 0 selects a free one.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub port: u16,
    #[command(flatten)]
    pub source: SourceOptions,
    /// Print the URL and open no browser. By default, a browser opens if standard output is a
    /// terminal.
    #[arg(long)]
    pub no_open: bool,
    /// Open the trace in the Firefox Profiler at URL instead, with symbols, source and disassembly;
    /// `firefox` means profiler.firefox.com, which needs internet access.
    #[arg(long, value_name = "URL", value_parser = viewer)]
    pub viewer: Option<String>,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// `chronosym runtime`: the first of the traces may be the kind of report.
#[derive(Debug, Args)]
pub struct Runtime {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub filters: Filters,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
    /// Show at most N rows of each table; JSON has all.
    #[arg(long = "most", short = 'n', default_value_t = 30, value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: usize,
}

/// `chronosym inlining`: the last of the traces may be the method.
#[derive(Debug, Args)]
pub struct Inlining {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub filters: EventFilters,
    #[command(flatten)]
    pub samples: Samples,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
    /// Show at most N rejected calls and N methods; JSON has all.
    #[arg(long = "most", short = 'n', default_value_t = 30, value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: usize,
}

#[derive(Debug, Args)]
pub struct Lines {
    #[command(flatten)]
    pub input: Input,
    /// Method to show, as a PATTERN. If it matches several, those whose name equals or ends with it
    /// are shown.
    #[arg(value_name = "METHOD", value_parser = Pattern::new)]
    pub method: Pattern,
    /// Search for source files in DIR (repeatable). A file is used if its checksum matches the PDB.
    /// If downloads are enabled, files found nowhere else are downloaded from Source Link.
    #[arg(long, value_name = "DIR")]
    pub sources: Vec<PathBuf>,
    #[command(flatten)]
    pub selection: Selection,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// Trace before the change, followed by the trace after it. Before `--`, several recordings of
    /// one machine and time form one timeline.
    #[arg(required = true, value_name = "BEFORE")]
    pub before: Vec<PathBuf>,
    /// Trace after the change, or recordings that form one timeline.
    #[arg(last = true, value_name = "AFTER")]
    pub after: Vec<PathBuf>,
    /// Write output to FILE (must not be an input file).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    #[command(flatten)]
    pub selection: Selection,
    /// Output format [default: by the extension of -o (.svg, .html), otherwise a table].
    #[arg(long, value_enum)]
    pub format: Option<DiffFormat>,
    /// Show at most N rows.
    #[arg(long = "most", short = 'n', default_value_t = 30, value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: usize,
}

impl Diff {
    /// Returns the traces before and after.
    pub fn sides(&self) -> Result<(&[PathBuf], &[PathBuf])> {
        match (&*self.before, &*self.after) {
            ([before, after], []) => Ok((from_ref(before), from_ref(after))),
            (_, []) => bail!(Usage(
                "two traces are required; separate several recordings by --: diff A… -- B…".into()
            )),
            sides => Ok(sides),
        }
    }
}

/// Output formats of `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// A table.
    Text,
    /// JSON.
    Json,
    /// A flame graph of both traces: red boxes gained share, blue ones lost it.
    Svg,
    /// A report of both traces: time axes and flame graphs side by side, and the largest changes.
    Html,
}

#[derive(Debug, Args)]
pub struct Events {
    #[command(flatten)]
    pub input: PlainInput,
    #[command(flatten)]
    pub filters: EventFilters,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: EventFormat,
    /// Print at most N events [default: all].
    #[arg(long = "most", short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EventFormat {
    Text,
    Jsonl,
}

#[derive(Debug, Args)]
pub struct Listing {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub filters: Filters,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
    /// List at most N entries of each process [default: all].
    #[arg(long = "most", short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: Option<usize>,
}

#[derive(Debug, Args)]
pub struct Methods {
    #[command(flatten)]
    pub listing: Listing,
    /// Show only bodies that match PATTERN.
    #[arg(long = "match", value_name = "PATTERN", value_parser = Pattern::new)]
    pub matching: Option<Pattern>,
}

#[derive(Debug, Args)]
pub struct Explain {
    #[command(flatten)]
    pub input: Input,
    /// Address: 0x… or decimal.
    #[arg(value_name = "ADDR")]
    pub address: String,
    #[command(flatten)]
    pub query: AddressQuery,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct Symbolize {
    /// Resolve addresses of this trace's processes.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["obj", "pdb", "rva"])]
    pub trace: Option<PathBuf>,
    /// Resolve addresses in this ELF, PE or Mach-O file, as linked (repeatable; FILE+0x… selects
    /// one of several files, FILE:PROCESSOR one image of a universal file). The PDB of a PE file,
    /// the dSYM bundle of a Mach-O file, and the debug file of a stripped ELF file are searched for
    /// in its folder, in --symbols, on the symbol path and, for ELF, on debuginfod servers.
    #[arg(long, value_name = "FILE")]
    pub obj: Vec<PathBuf>,
    /// Resolve addresses in the image of this Windows PDB: RVAs or, with --obj, addresses as
    /// linked. For a PDB of managed code, resolve metadata tokens with IL offsets.
    #[arg(long, value_name = "FILE")]
    pub pdb: Option<PathBuf>,
    /// Treat plain addresses of --obj as RVAs (bytes from the image's base).
    #[arg(long)]
    pub rva: bool,
    /// Load address of --obj or --pdb; plain addresses are then addresses in the process.
    #[arg(long, value_name = "ADDR", value_parser = load_address, conflicts_with_all = ["rva", "trace"])]
    pub base: Option<u64>,
    /// Read load addresses from FILE, in the format of /proc/PID/maps (also within a log); plain
    /// addresses are then addresses in the process.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["base", "trace", "rva"])]
    pub maps: Option<PathBuf>,
    /// Resolve addresses of a running process, with its mappings and its files (Linux).
    #[arg(long, value_name = "PID", conflicts_with_all = ["base", "maps", "trace", "rva"])]
    pub process_maps: Option<u32>,
    /// Use --pdb even if it belongs to another build than --obj. Its names and lines may be wrong
    /// and are marked as such.
    #[arg(long, requires_all = ["obj", "pdb"])]
    pub any_pdb: bool,
    /// Do not open other files, such as split debug information, at paths recorded in --obj.
    #[arg(long, requires = "obj")]
    pub no_recorded_paths: bool,
    #[command(flatten)]
    pub query: AddressQuery,
    /// Radix of numbers without 0x [default: 16 with --style gnu; 10 with --style llvm; otherwise 16
    /// if an argument, or the first number of standard input, has hexadecimal digits or leading
    /// zeros, else 10].
    #[arg(long, value_parser = radix, value_name = "10|16")]
    pub radix: Option<u32>,
    /// Do not show inlined functions: print one function per address, with the line of the
    /// innermost inlined call.
    #[arg(long)]
    pub no_inlines: bool,
    /// Print file names without folders (not in JSON).
    #[arg(long)]
    pub basenames: bool,
    /// Replace addresses in the text on standard input with names.
    #[arg(long, conflicts_with = "addresses")]
    pub filter: bool,
    /// Output style.
    #[arg(long, value_parser = one_of::<Style>(STYLES.map(meant)), default_value = "text")]
    pub style: Style,
    /// Write output to FILE (must not be an input file).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    /// Addresses: 0x…, decimal, module+0xrva or module!0xrva; for managed code 0x06……+0xil or
    /// Type.Method+0xil; for objects .section+0x…. Read from standard input if none is given. An
    /// existing file is read as a log and printed with names in place of addresses.
    #[arg(value_name = "ADDR|LOG")]
    pub addresses: Vec<String>,
    /// Settings from the options of another tool.
    #[arg(skip)]
    pub tool: Option<Tool>,
}

impl Symbolize {
    /// Returns what is printed of each answer.
    pub fn shape(&self) -> Shape {
        let mut shape = self
            .tool
            .as_ref()
            .map_or_else(Shape::default, |tool| tool.shape);
        shape.has_base_names |= self.basenames;
        if self.no_recorded_paths {
            shape.context_lines = 0;
        }
        shape
    }

    /// Returns whether inlined functions are looked up. Without them, llvm-symbolizer prints the
    /// symbol's name with the innermost line; otherwise the tools print the innermost function.
    pub fn wants_inlines(&self) -> bool {
        let shape = self.shape();
        let is_symbol = self.style == Style::Llvm && shape.functions == Functions::Linkage;
        !(self.no_inlines || is_symbol && shape.is_innermost)
    }

    /// Returns whether anything states where addresses are resolved, or names files to search.
    pub fn has_source(&self) -> bool {
        let is_named = self.trace.is_some() || self.pdb.is_some() || self.process_maps.is_some();
        let is_searched = self.symbols.trust_trace_paths || !self.symbols.symbols.is_empty();
        is_named || is_searched || !self.obj.is_empty() || self.maps.is_some()
    }
}
