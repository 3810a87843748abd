//! What can be said on the command line.

mod parts;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, bail};
use chronosym_export::{By, Sort, WeightUnit};
use chronosym_symbols::style::Style;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use self::parts::*;
use crate::limits::LimitOptions;
use crate::request::AddressRequest;

/// What code was at address A of process P at time T?
///
/// Reads .NET and kernel traces (.nettrace, .netperf, .etl, perf.data, LTTng) on any operating
/// system and names every frame of every sample for the moment it was taken, or says why not.
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
    /// Say nothing but results and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Colours on a terminal.
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

    /// What the command line says; help and errors of usage end the program. A trace in place of a
    /// command means `info`.
    pub fn read() -> (Self, Files) {
        let mut args: Vec<OsString> = std::env::args_os().collect();
        let mut matches = Self::with_examples().try_get_matches_from(&args);
        if let Err(error) = &matches
            && let Some(at) = trace_for_command(error, &args)
        {
            args.insert(at, "info".into());
            matches = Self::with_examples().try_get_matches_from(&args);
        }
        let cli = matches
            .and_then(|matches| Ok((Self::from_arg_matches(&matches)?, Files::of(&matches))));
        cli.unwrap_or_else(|error| error.exit())
    }
}

/// Where results go, and the files that are named to be read.
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

/// Where a file stands in place of a command.
fn trace_for_command(error: &clap::Error, args: &[OsString]) -> Option<usize> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let is_path = word == "-" || word.contains(['.', '/', '\\']) || Path::new(word).exists();
    let at = || args.iter().position(|arg| arg.to_string_lossy() == *word);
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
    /// What is in a trace, and what is missing: the first thing to run on an unknown one.
    ///
    /// Nothing is fetched for it unless this command line names servers with --symbol-path;
    /// _NT_SYMBOL_PATH and DEBUGINFOD_URLS alone do not make it fetch.
    Info(Info),
    /// Resolved stacks of samples or other events.
    Stacks(Stacks),
    /// Where the time went: hot methods, modules, threads, lines; callers and callees of a method.
    Top(Top),
    /// Show the samples in Firefox Profiler: serve them to this machine's browser until stopped.
    ///
    /// Only this machine can connect, and only who knows the address that is printed: it holds a
    /// random part. Nothing is served but the profile, its symbols, and the source files that it
    /// names, where they may be read: embedded in PDBs, in folders of --sources, anywhere with
    /// --trust-trace-paths, or, where fetching is on, where Source Link says.
    Serve(Serve),
    /// Threads: time, running share, and the hottest method of each.
    Threads(OfTrace),
    /// A method's source, with the time on each line.
    Lines(Lines),
    /// Missing symbol files, by the share of self time that they would name.
    Symbols(OfTrace),
    /// Methods whose share differs between two traces.
    Diff(Diff),
    /// Every record, decoded with the field names of its manifest.
    ///
    /// Process and thread are those that the record itself states. What nothing describes is shown
    /// as `Payload` in hex, what is left over after the described fields as `Rest`. Stacks that a
    /// trace holds as records of their own are printed as such.
    Events(Events),
    /// CLR modules and native images with life span and symbol identity.
    Modules(Listing),
    /// Every code body with its range, life, tier, version and evidence.
    Methods(Methods),
    /// Everything known about one address.
    Explain(Explain),
    /// Addresses to names.
    Symbolize(Symbolize),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

/// A type that is spelled in a few ways.
fn one_of<T>(
    names: impl IntoIterator<Item = impl Into<PossibleValue>>,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Default + FromStr + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|name| name.parse().unwrap_or_default())
}

/// A way to spell it, with what it means.
fn meant((name, what): (&'static str, &'static str)) -> PossibleValue {
    PossibleValue::new(name).help(what)
}

/// What folded stacks, text and flame graphs count.
const WEIGHTS: [(&str, &str); 3] = [
    ("samples", "Samples"),
    ("time", "The time that samples stand for, in microseconds"),
    ("bytes", "The bytes that events state"),
];

/// How answers of `symbolize` look.
const STYLES: [(&str, &str); 4] = [
    ("text", "For people"),
    ("json", "One object an address"),
    ("llvm", "As llvm-symbolizer prints"),
    ("gnu", "As addr2line -f -i -C prints"),
];

fn radix(text: &str) -> Result<u32> {
    match text {
        "10" => Ok(10),
        "16" => Ok(16),
        _ => bail!("expected 10 or 16"),
    }
}

/// An address of `symbolize` stays as it was written: answers repeat it.
fn address_argument(text: &str) -> Result<String> {
    match AddressRequest::parse(text).target {
        Some(_) => Ok(text.to_owned()),
        None => bail!("expected 0x…, a number, or module+0x…"),
    }
}

#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    pub input: Input,
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct Stacks {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub selection: Selection,
    /// The default is what the name after -o says (.svg, .html, .pb.gz, .speedscope.json, .folded,
    /// …), else text.
    #[arg(long, value_enum)]
    pub format: Option<StackFormat>,
    /// What folded stacks, text and flame graphs count. The default is samples for folded stacks,
    /// else time or bytes where they are known of each sample.
    #[arg(long, value_parser = one_of::<WeightUnit>(WEIGHTS.map(meant)))]
    pub weight: Option<WeightUnit>,
    /// Join the threads of a process.
    #[arg(long)]
    pub no_threads: bool,
    /// Tell frames of one function apart by source line. Formats that have a place for lines have
    /// them anyway.
    #[arg(long)]
    pub lines: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackFormat {
    /// One line a distinct stack: frames joined by `;`, then its weight.
    Folded,
    /// One JSON object a sample.
    Jsonl,
    /// A tree, hottest first.
    Text,
    /// A flame graph that draws itself in any browser.
    Svg,
    /// A page with a flame graph, a summary, hot methods and what has no name.
    Html,
    /// For www.speedscope.app: a profile for each thread, in the order of time.
    Speedscope,
    /// For profiler.firefox.com.
    Firefox,
    /// For `go tool pprof`: a gzipped protocol buffer.
    Pprof,
    /// OpenTelemetry profiles: a protocol buffer, still experimental.
    Otlp,
}

/// `chronosym threads` and `chronosym symbols`.
#[derive(Debug, Args)]
pub struct OfTrace {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub selection: Selection,
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
    /// How many rows.
    #[arg(long = "most", short = 'n', default_value_t = 30, value_name = "N")]
    pub max_lines: usize,
}

#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    pub of: OfTrace,
    /// What the rows are of.
    #[arg(long, value_parser = one_of::<By>(By::ALL.map(By::as_str)), default_value = "method")]
    pub by: By,
    /// What the rows are sorted by: what is in it alone, or also in what it calls.
    #[arg(long, value_parser = one_of::<Sort>(Sort::ALL.map(Sort::as_str)), default_value = "self")]
    pub sort: Sort,
    /// Only rows whose text matches; shares stay those of all samples.
    #[arg(long = "match", value_name = "REGEX")]
    pub matching: Option<regex_lite::Regex>,
    /// What calls this method, and how often: a name, its end or a part of it.
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["by", "sort", "matching"])]
    pub callers: Option<String>,
    /// What this method calls.
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["by", "sort", "matching"])]
    pub callees: Option<String>,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// The trace: .nettrace, .netperf or .etl, plain, zipped or gzipped; `-` is standard input.
    /// Several .etl files of one recording may be named together.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub port: u16,
    /// Look for source files in this folder; may be given several times. A file is used if its
    /// checksum is the one in the PDB.
    #[arg(long, alias = "source", value_name = "DIR")]
    pub sources: Vec<PathBuf>,
    /// The viewer's address, if it is not Firefox Profiler's own site.
    #[arg(
        long,
        default_value = "https://profiler.firefox.com",
        value_name = "URL"
    )]
    pub viewer: String,
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub symbols: Symbols,
}

#[derive(Debug, Args)]
pub struct Lines {
    /// The trace: .nettrace, .netperf or .etl, plain, zipped or gzipped; `-` is standard input.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The method: its name, the end of its name, or a part of it.
    #[arg(value_name = "METHOD")]
    pub method: String,
    /// Look for source files in this folder; may be given several times. A file is used if its
    /// checksum is the one in the PDB. Where fetching is on, what is nowhere else is fetched from
    /// where Source Link says.
    #[arg(long, value_name = "DIR")]
    pub sources: Vec<PathBuf>,
    /// Write results to this file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    #[command(flatten)]
    pub selection: Selection,
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// The trace before.
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The trace after.
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// Write results to this file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    #[command(flatten)]
    pub selection: Selection,
    /// The default is what the name after -o says (.svg, .html), else a table.
    #[arg(long, value_enum)]
    pub format: Option<DiffFormat>,
    /// How many rows.
    #[arg(long = "most", short = 'n', default_value_t = 30, value_name = "N")]
    pub max_lines: usize,
}

/// How a comparison is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// A table for people.
    Text,
    /// For programs.
    Json,
    /// A flame graph of both: what has a larger share is red, what has a smaller one blue.
    Svg,
    /// A page with that flame graph, what the samples of both are, and what changed most.
    Html,
}

#[derive(Debug, Args)]
pub struct Events {
    #[command(flatten)]
    pub input: PlainInput,
    #[command(flatten)]
    pub filters: EventFilters,
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: EventFormat,
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
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct Methods {
    #[command(flatten)]
    pub listing: Listing,
    /// Only bodies whose `module!name` contains this text; case does not count.
    #[arg(long = "match", value_name = "TEXT")]
    pub matching: Option<String>,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// The trace.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The address: 0x… or decimal.
    #[arg(value_name = "ADDR")]
    pub address: String,
    /// Write results to this file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    #[command(flatten)]
    pub query: AddressQuery,
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("whose").required(true).multiple(true).args(["trace", "obj", "pdb", "symbols", "trust_trace_paths"])))]
pub struct Symbolize {
    /// Addresses of this trace's processes.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["obj", "pdb", "rva"])]
    pub trace: Option<PathBuf>,
    /// Addresses of this ELF or PE file, as the file itself states them; of several, FILE+0x… says
    /// which. The PDB of a PE file, and the debug file of a stripped ELF file, is looked for beside
    /// it, in --symbols, on the symbol path and, for ELF, at debuginfod.
    #[arg(long, value_name = "FILE")]
    pub obj: Vec<PathBuf>,
    /// Addresses of the image of this Windows PDB: bytes from the image's base or, with --obj, as
    /// the image states them. Of a portable PDB, and of any of managed code: tokens with IL
    /// offsets.
    #[arg(long, value_name = "FILE")]
    pub pdb: Option<PathBuf>,
    /// Plain addresses of --obj are bytes from the image's base too.
    #[arg(long)]
    pub rva: bool,
    /// Open no other file at a path that --obj records, such as those of split debug information.
    #[arg(long, requires = "obj")]
    pub no_recorded_paths: bool,
    #[command(flatten)]
    pub query: AddressQuery,
    /// Whether numbers without 0x are decimal or hexadecimal. Unless said, they are decimal as far
    /// as they can be; a list with one that cannot is hexadecimal.
    #[arg(long, value_parser = radix, value_name = "10|16")]
    pub radix: Option<u32>,
    /// Replace addresses in the text on standard input by what stands there.
    #[arg(long, conflicts_with = "addresses")]
    pub filter: bool,
    /// How answers look.
    #[arg(long, value_parser = one_of::<Style>(STYLES.map(meant)), default_value = "text")]
    pub style: Style,
    /// Write results to this file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    /// Addresses: 0x…, decimal, module+0xrva or module!0xrva; of managed code 0x06……+0xil or
    /// Type.Method+0xil; .section+0x… of objects. Without any, they are read from standard input.
    #[arg(value_name = "ADDR", value_parser = address_argument)]
    pub addresses: Vec<String>,
}
