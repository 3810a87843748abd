//! What can be said on the command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use chronosym::EventSelector;
use chronosym_export::{By, Sort};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::commands::Question;
use crate::limits::LimitOptions;
use crate::profiled::{self, OfMethod, OfTrace, OfTwo};
use crate::shaping::Shaping;
use crate::units;

/// What no answer can be given to as it was asked: exits as clap does.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// What code was at address A of process P at time T?
///
/// Reads .NET and kernel traces (.nettrace, .netperf, .etl, perf.data, LTTng) on any operating system and names every frame
/// of every sample for the moment it was taken, or says why not.
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

    /// What the command line says; help and errors of usage end the program. A trace in place of a command means `info`.
    pub fn read() -> Self {
        let mut args: Vec<OsString> = std::env::args_os().collect();
        let mut found = Self::with_examples().try_get_matches_from(&args);
        if let Err(error) = &found
            && let Some(at) = trace_for_command(error, &args)
        {
            args.insert(at, "info".into());
            found = Self::with_examples().try_get_matches_from(&args);
        }
        let cli = found.and_then(|found| Self::from_arg_matches(&found));
        cli.unwrap_or_else(|error| error.exit())
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
    /// Nothing is fetched for it unless this command line names servers with --symbol-path; _NT_SYMBOL_PATH and
    /// DEBUGINFOD_URLS alone do not make it fetch.
    Info(Info),
    /// Resolved stacks of samples or other events.
    Stacks(Stacks),
    /// Where the time went: hot methods, modules, threads, lines; callers and callees of a method.
    Top(Top),
    /// Show the samples in Firefox Profiler: serve them to this machine's browser until stopped.
    ///
    /// Only this machine can connect, and only who knows the address that is printed: it holds a random part. Nothing is
    /// served but the profile, its symbols, and the source files that it names, where they may be read: embedded in PDBs,
    /// in folders of --source, anywhere with --trust-trace-paths, or, where fetching is on, where Source Link says.
    Serve(Serve),
    /// Threads: time, running share, and the hottest method of each.
    Threads(OfTrace),
    /// A method's source, with the time on each line.
    Lines(OfMethod),
    /// Missing symbol files, by the share of self time that they would name.
    Symbols(OfTrace),
    /// Methods whose share differs between two traces.
    Diff(OfTwo),
    /// Every record, decoded with the field names of its manifest.
    ///
    /// Process and thread are those that the record itself states. What nothing describes is shown as `Payload` in hex, what
    /// is left over after the described fields as `Rest`. Stacks that a trace holds as records of their own are printed as
    /// such.
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

impl Command {
    /// Where results go, and the files that are named to be read.
    pub fn files(&self) -> (Option<&Path>, Vec<&Path>) {
        let (output, inputs, symbols): (_, Vec<&PathBuf>, _) = match self {
            Command::Info(Info { input, .. })
            | Command::Stacks(Stacks { input, .. })
            | Command::Top(Top { input, .. })
            | Command::Threads(OfTrace { input, .. })
            | Command::Symbols(OfTrace { input, .. })
            | Command::Modules(Listing { input, .. })
            | Command::Methods(Methods {
                listing: Listing { input, .. },
                ..
            }) => {
                let traces = input.traces.iter().collect();
                (&input.output, traces, Some(&input.symbols))
            }
            Command::Events(Events { input, .. }) => {
                (&input.output, input.traces.iter().collect(), None)
            }
            Command::Lines(args) => (&args.output, vec![&args.trace], Some(&args.symbols)),
            Command::Diff(args) => {
                let traces = vec![&args.before, &args.after];
                (&args.output, traces, Some(&args.symbols))
            }
            Command::Explain(Explain { input, .. }) => {
                (&input.output, vec![&input.trace], Some(&input.symbols))
            }
            Command::Serve(args) => (&None, args.traces.iter().collect(), Some(&args.symbols)),
            Command::Symbolize(args) => {
                let files = args.trace.iter().chain(&args.obj).chain(&args.pdb);
                (&args.output, files.collect(), Some(&args.symbols))
            }
            Command::Completions { .. } | Command::Man => return (None, Vec::new()),
        };
        let maps = symbols.into_iter().flat_map(|symbols| &symbols.perf_map);
        let maps = maps.map(|map| perf_map(map).1);
        let inputs = inputs.into_iter().map(PathBuf::as_path).chain(maps);
        (output.as_deref(), inputs.collect())
    }
}

/// The parts of `--perf-map [PID=]FILE`.
pub fn perf_map(argument: &Path) -> (Option<u32>, &Path) {
    let with_pid = || {
        let (pid, path) = argument.to_str()?.split_once('=')?;
        Some((Some(pid.parse().ok()?), Path::new(path)))
    };
    with_pid().unwrap_or((None, argument))
}

/// The trace and where results go.
#[derive(Debug, Args)]
pub struct Input {
    /// The trace: .nettrace, .netperf, .etl, perf.data or LTTng's, plain, zipped or gzipped; `-` is standard input. Several .etl files
    /// of one recording may be named together, and recordings of one machine and time that become one timeline: a
    /// perf.data, LTTng's traces, nettrace files of its processes, jitdumps and perf maps.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Write results to this file, which is none of those that are read.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// The trace and where results go, for commands that need no symbols.
#[derive(Debug, Args)]
pub struct PlainInput {
    /// The trace: .nettrace, .netperf, .etl, perf.data or LTTng's, plain, zipped or gzipped; `-` is standard input. Several .etl files
    /// of one recording may be named together.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Write results to this file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Where names and lines beyond the trace come from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Symbols")]
pub struct Symbols {
    /// Look for symbol files in this folder first: PDBs, images, debug files; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Folders and servers in the syntax of _NT_SYMBOL_PATH, in place of that and of DEBUGINFOD_URLS.
    #[arg(long, value_name = "PATH")]
    pub symbol_path: Option<String>,
    /// Fetch nothing.
    #[arg(long)]
    pub offline: bool,
    /// Keep fetched files in this folder.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Look no source lines up.
    #[arg(long)]
    pub no_lines: bool,
    /// Show lambdas, local functions, async and iterator methods under the names they have in the source.
    #[arg(long)]
    pub pretty: bool,
    /// Open files at the paths that the trace names: it was recorded on this machine.
    #[arg(long)]
    pub trust_trace_paths: bool,
    /// Name code from a perf map, which knows no times. For a trace of several processes: PID=FILE.
    #[arg(long, value_name = "FILE")]
    pub perf_map: Vec<PathBuf>,
    /// Name the kernel's functions from /proc/kallsyms or a copy of it, where it is of the kernel in the perf.data.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
    /// A process of a container that calls itself OWN is PID in the perf.data; may be given several times.
    #[arg(long, value_name = "OWN=PID", value_parser = pid_pair)]
    pub map_pid: Vec<(u32, u32)>,
}

fn pid_pair(text: &str) -> Result<(u32, u32), String> {
    let pair = text.split_once('=');
    let pair = pair.and_then(|(own, pid)| Some((own.parse().ok()?, pid.parse().ok()?)));
    pair.ok_or_else(|| "expected OWN=PID, two process ids".to_owned())
}

/// Which processes, and when.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct Filters {
    /// Only this process id; PID@TIME means the process that had it then and was running.
    #[arg(long, value_name = "PID[@T]", value_parser = units::parse_pid)]
    pub pid: Option<(u32, Option<u64>)>,
    /// Only processes of this name.
    #[arg(long, value_name = "NAME")]
    pub process: Option<String>,
    /// Only from this time after the begin of the trace on: 1.5s, 200ms, 2m, or ns.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub from: Option<u64>,
    /// Only before this time.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub to: Option<u64>,
}

/// Which samples or events.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct EventFilters {
    #[command(flatten)]
    pub processes: Filters,
    /// Only this thread id.
    #[arg(long, value_name = "TID")]
    pub tid: Option<u64>,
    /// Only these events, in place of profiler samples.
    #[arg(long, value_name = "PROVIDER[/ID]", value_parser = event)]
    pub event: Vec<EventSelector>,
}

/// Which samples of a profiler, and how those without a name are shown.
#[derive(Clone, Debug, Default, Args)]
pub struct Samples {
    /// Leave out samples of threads that waited.
    #[arg(long, conflicts_with = "waiting")]
    pub running: bool,
    /// Only samples of threads that waited, in native code or not.
    #[arg(long)]
    pub waiting: bool,
    /// The old name of --running.
    #[arg(long, hide = true, conflicts_with = "waiting")]
    pub managed_only: bool,
    /// Keep the idle process.
    #[arg(long)]
    pub idle: bool,
    /// Keep frames without a name apart by address, not just by image.
    #[arg(long)]
    pub addresses: bool,
}

impl Samples {
    /// What is let through.
    pub fn waiting(&self) -> Option<bool> {
        let running = self.running || self.managed_only;
        (running || self.waiting).then_some(self.waiting)
    }
}

/// A type that is spelled in a few ways.
fn one_of<T>(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = T>
where
    T: Clone + Default + FromStr + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|name| name.parse().unwrap_or_default())
}

fn event(text: &str) -> Result<EventSelector, String> {
    EventSelector::parse(text)
        .ok_or_else(|| "expected PROVIDER, PROVIDER/ID or PROVIDER/NAME".to_owned())
}

fn radix(text: &str) -> Result<u32, String> {
    match text {
        "10" => Ok(10),
        "16" => Ok(16),
        _ => Err("expected 10 or 16".to_owned()),
    }
}

/// An address of `symbolize` stays as it was written: answers repeat it.
fn place(text: &str) -> Result<String, String> {
    match Question::parse(text).place {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected 0x…, a number, or module+0x…".to_owned()),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InfoFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub struct Stacks {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub filters: EventFilters,
    #[command(flatten)]
    pub shaping: Shaping,
    /// The default is what the name after -o says (.svg, .html, .pb.gz, .speedscope.json, .folded, …), else text.
    #[arg(long, value_enum)]
    pub format: Option<StackFormat>,
    #[command(flatten)]
    pub samples: Samples,
    /// What folded stacks, text and flame graphs count. The default is samples for folded stacks, else time or bytes where
    /// they are known of each sample.
    #[arg(long, value_enum)]
    pub weight: Option<StackWeight>,
    /// Join the threads of a process.
    #[arg(long)]
    pub no_threads: bool,
    /// Tell frames of one function apart by source line. Formats that have a place for lines have them anyway.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackWeight {
    /// Samples.
    Samples,
    /// The time that samples stand for, in microseconds.
    Time,
    /// The bytes that events state.
    Bytes,
}

#[derive(Debug, Args)]
pub struct Top {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub question: profiled::Question,
    /// How many rows.
    #[arg(long, short = 'n', default_value_t = 30, value_name = "N")]
    pub most: usize,
    /// What the rows are of.
    #[arg(long, value_parser = one_of::<By>(By::ALL.map(By::as_str)), default_value = "method")]
    pub by: By,
    /// What the rows are sorted by: what is in it alone, or also in what it calls.
    #[arg(long, value_parser = one_of::<Sort>(Sort::NAMES), default_value = "self")]
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
    /// The trace: .nettrace, .netperf or .etl, plain, zipped or gzipped; `-` is standard input. Several .etl files of
    /// one recording may be named together.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub port: u16,
    /// Look for source files in this folder; may be given several times. A file is used if its checksum is the one in the PDB.
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
    pub filters: EventFilters,
    #[command(flatten)]
    pub shaping: Shaping,
    #[command(flatten)]
    pub samples: Samples,
    #[command(flatten)]
    pub symbols: Symbols,
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
    #[command(flatten)]
    pub input: ExplainInput,
    /// The process; PID@TIME means the one that had it then. Not needed where the trace is of one process.
    #[arg(long, value_name = "PID[@T]", value_parser = units::parse_pid)]
    pub pid: Option<(u32, Option<u64>)>,
    /// The time after the begin of the trace: 1.5s, 200ms, 2m, or ns.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub time: Option<u64>,
    /// The address is where a call returns to, as all but the innermost addresses of a stack are.
    #[arg(long)]
    pub caller: bool,
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct ExplainInput {
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
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("whose").required(true).multiple(true).args(["trace", "obj", "pdb", "symbols", "trust_trace_paths"])))]
pub struct Symbolize {
    /// Addresses of this trace's processes.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["obj", "pdb", "rva"])]
    pub trace: Option<PathBuf>,
    /// Addresses of this ELF or PE file, as the file itself states them; of several, FILE+0x… says which. The PDB of a PE file, and
    /// the debug file of a stripped ELF file, is looked for beside it, in --symbols, on the symbol path and, for ELF, at debuginfod.
    #[arg(long, value_name = "FILE")]
    pub obj: Vec<PathBuf>,
    /// Addresses of the image of this Windows PDB: bytes from the image's base or, with --obj, as the image states them. Of a
    /// portable PDB, and of any of managed code: tokens with IL offsets.
    #[arg(long, value_name = "FILE")]
    pub pdb: Option<PathBuf>,
    /// Plain addresses of --obj are bytes from the image's base too.
    #[arg(long)]
    pub rva: bool,
    /// Open no other file at a path that --obj records, such as those of split debug information.
    #[arg(long, requires = "obj")]
    pub no_recorded_paths: bool,
    /// The process; PID@TIME means the one that had it then.
    #[arg(long, value_name = "PID[@T]", value_parser = units::parse_pid)]
    pub pid: Option<(u32, Option<u64>)>,
    /// The time after the begin of the trace: 1.5s, 200ms, 2m, or ns.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub time: Option<u64>,
    /// The addresses are where calls return to.
    #[arg(long)]
    pub caller: bool,
    /// Whether numbers without 0x are decimal or hexadecimal. Unless said, they are decimal as far as they can be; a list with one
    /// that cannot is hexadecimal.
    #[arg(long, value_parser = radix, value_name = "10|16")]
    pub radix: Option<u32>,
    /// Replace addresses in the text on standard input by what stands there.
    #[arg(long, conflicts_with = "addresses")]
    pub filter: bool,
    /// How answers look.
    #[arg(long, value_enum, default_value = "text")]
    pub style: Style,
    /// Write results to this file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    /// Addresses: 0x…, decimal, module+0xrva or module!0xrva; of managed code 0x06……+0xil or Type.Method+0xil; .section+0x… of objects. Without any, they
    /// are read from standard input.
    #[arg(value_name = "ADDR", value_parser = place)]
    pub addresses: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// For people.
    Text,
    /// One object an address.
    Json,
    /// As llvm-symbolizer prints.
    Llvm,
    /// As addr2line -f -i -C prints.
    Gnu,
}
