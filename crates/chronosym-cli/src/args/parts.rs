//! Arguments that several commands share.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chronosym::{Activity, ActivityFilter, EventSelector, Position};
use chronosym_export::{PatternError, Shape};
use clap::{Args, ValueEnum};

use crate::units;

/// A usage error found after parsing: exits as clap does.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InfoFormat {
    Text,
    Json,
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
    /// Trace to read: .nettrace, .netperf, .etl, perf.data, LTTng, or a saved timeline (.chrono),
    /// plain, zipped or gzipped; `-` is standard input. Several recordings of one machine and time
    /// form one timeline: the .etl files of one session, or a perf.data, LTTng traces, nettrace
    /// files of its processes, jitdumps and perf maps.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Write output to FILE (must not be an input file).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// The trace and where results go, for commands that need no symbols.
#[derive(Debug, Args)]
pub struct PlainInput {
    /// Trace to read: .nettrace, .netperf, .etl, perf.data, LTTng, or a saved timeline (.chrono),
    /// plain, zipped or gzipped; `-` is standard input. Several .etl files of one recording can be given together.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Write output to FILE (must not be an input file).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The process and time of addresses, and whether they are return addresses.
#[derive(Debug, Args)]
pub struct AddressQuery {
    /// Process id; PID@TIME is the process that had the id at that time. Not needed if the trace
    /// has one process.
    #[arg(long, short, value_name = "PID[@T]", value_parser = units::parse_pid)]
    pub pid: Option<(u32, Option<u64>)>,
    /// Time since the start of the trace: 1.5s, 200ms, 300us, 2m, 12345ns.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub time: Option<u64>,
    /// Treat addresses as return addresses: all addresses of a stack but the innermost are.
    #[arg(long)]
    pub caller: bool,
}

impl AddressQuery {
    /// Returns the time of either option, in ns.
    pub fn time_ns(&self) -> Option<u64> {
        self.time.or(self.pid.and_then(|(_, at)| at))
    }

    pub fn position(&self) -> Position {
        match self.caller {
            true => Position::Return,
            false => Position::Exact,
        }
    }
}

/// Values of `--symbol-cache`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SymbolCache {
    /// Files of at least 8 MiB, in the second run that uses them, after its output
    #[default]
    Auto,
    /// Every file, in the first run that uses it, after its output
    Always,
    /// Neither convert files nor use converted ones
    Off,
}

/// Sources of names and lines outside the trace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Symbols")]
pub struct Symbols {
    /// Search DIR for symbol files first: PDBs, images, debug files (repeatable).
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Search these folders and servers, in the syntax of _NT_SYMBOL_PATH [default: _NT_SYMBOL_PATH
    /// and DEBUGINFOD_URLS].
    #[arg(long, value_name = "PATH")]
    pub symbol_path: Option<String>,
    /// Download nothing.
    #[arg(long)]
    pub offline: bool,
    /// Store downloaded files in DIR.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Whether symbol files are converted for later runs, and stored in the cache folder.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub symbol_cache: SymbolCache,
    /// Do not look up source lines.
    #[arg(long)]
    pub no_lines: bool,
    /// Show lambdas, local functions, async and iterator methods by their source names in every
    /// format. This is the default in text, svg and html, which also spell types as in C#, unless
    /// --raw is given.
    #[arg(long)]
    pub pretty: bool,
    /// Whether names are spelled as in C#.
    #[arg(skip)]
    pub source_names: bool,
    /// Open files at the paths in the trace; use for traces recorded on this machine.
    #[arg(long)]
    pub trust_trace_paths: bool,
    /// Name code from a perf map, which has no times; write PID=FILE if the trace has several
    /// processes.
    #[arg(long, value_name = "FILE")]
    pub perf_map: Vec<PathBuf>,
    /// Name kernel functions from /proc/kallsyms or a copy of it. Ignored unless it belongs to the
    /// kernel in the perf.data.
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
    /// Map the process id OWN in a container to PID in the perf.data (repeatable).
    #[arg(long, value_name = "OWN=PID", value_parser = pid_pair)]
    pub map_pid: Vec<(u32, u32)>,
    /// Read TRACE in a format that cannot be detected: otlp, OTLP profiles (docs/otlp.md).
    #[arg(
        long = "input",
        value_name = "FORMAT",
        value_enum,
        help_heading = "Options"
    )]
    pub input_format: Option<InputFormat>,
}

/// `chronosym otlp`.
#[derive(Debug, Args)]
pub struct Otlp {
    /// File of OTLP profiles, in the encoding of Protocol Buffers; `-` is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub trace: PathBuf,
    /// Write output to FILE (must not be an input file).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// A format that has no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    Otlp,
}

impl Symbols {
    /// Returns these options, with names spelled as in C# if `source_names`.
    pub fn spelled(&self, source_names: bool) -> Self {
        Symbols {
            source_names,
            ..self.clone()
        }
    }
}

fn pid_pair(text: &str) -> Result<(u32, u32)> {
    let pair = text.split_once('=');
    let pair = pair.and_then(|(own, pid)| Some((own.parse().ok()?, pid.parse().ok()?)));
    pair.context("expected OWN=PID, two process ids")
}

/// Options that select processes and times.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct Filters {
    /// Select this process id; PID@TIME is the process that had the id at that time.
    #[arg(long, short, value_name = "PID[@T]", value_parser = units::parse_pid)]
    pub pid: Option<(u32, Option<u64>)>,
    /// Select processes with this name. A PATTERN must match only one name.
    #[arg(long, value_name = "PATTERN")]
    pub process: Option<String>,
    /// Select from this time since the start of the trace: 1.5s, 200ms, 300us, 2m, 12345ns.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub from: Option<u64>,
    /// Select before this time.
    #[arg(long, value_name = "T", value_parser = units::parse_time)]
    pub to: Option<u64>,
}

/// Options that select samples or events.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct EventFilters {
    #[command(flatten)]
    pub processes: Filters,
    /// Select this thread id.
    #[arg(long, value_name = "TID")]
    pub tid: Option<u64>,
    /// Select these events instead of profiler samples: PROVIDER, PROVIDER/ID, PROVIDER/NAME or NAME
    /// (repeatable).
    #[arg(long, value_name = "EVENT", value_parser = event)]
    pub event: Vec<EventSelector>,
}

/// Options that select samples, and the presentation of unnamed frames.
#[derive(Clone, Debug, Default, Args)]
pub struct Samples {
    /// Select samples by what their thread was doing (docs/time.md). If context switches were
    /// recorded, the intervals between them count too.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["running", "waiting", "managed_only"])]
    pub activity: Option<ActivityChoice>,
    /// Select samples of threads on a processor or runnable, and those whose activity is unknown
    /// because the runtime's flag is unreliable.
    #[arg(long, conflicts_with = "waiting")]
    pub running: bool,
    /// Select samples of blocked threads: --activity blocked.
    #[arg(long)]
    pub waiting: bool,
    /// The old name of --running.
    #[arg(long, hide = true, conflicts_with = "waiting")]
    pub managed_only: bool,
    /// Include the idle process.
    #[arg(long)]
    pub idle: bool,
    /// Show names and frames as recorded. By default, text, svg and html spell names as in C#, omit
    /// async plumbing, and charge time in runtime helpers to the callers.
    #[arg(long)]
    pub raw: bool,
    /// Separate unnamed frames by address instead of by image.
    #[arg(long)]
    pub addresses: bool,
    /// Whether async methods are called by the methods that await them.
    #[arg(skip)]
    pub async_chains: bool,
    /// Whether the activity ids of events matter.
    #[arg(skip)]
    pub activity_ids: bool,
}

impl Samples {
    /// Returns the activities to select.
    pub fn activity(&self) -> Option<ActivityFilter> {
        let only = |activity| Some(ActivityFilter::Only(activity));
        match self.activity {
            Some(ActivityChoice::All) => Some(ActivityFilter::All),
            Some(ActivityChoice::OnCpu) => only(Activity::OnCpu),
            Some(ActivityChoice::Runnable) => only(Activity::Runnable),
            Some(ActivityChoice::Blocked) => only(Activity::Blocked),
            Some(ActivityChoice::Unknown) => only(Activity::Unknown),
            None if self.waiting => only(Activity::Blocked),
            None => (self.running || self.managed_only).then_some(ActivityFilter::Running),
        }
    }
}

/// Values of `--activity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ActivityChoice {
    /// On a processor.
    OnCpu,
    /// In managed code, on a processor or ready for one.
    Runnable,
    /// Blocked: in a lock, a system call, a sleep.
    Blocked,
    /// Unknown: outside managed code, native or blocked.
    Unknown,
    /// All samples.
    All,
}

fn event(text: &str) -> Result<EventSelector> {
    EventSelector::parse(text).context("expected PROVIDER, PROVIDER/ID, PROVIDER/NAME or NAME")
}

/// Options that filter and merge frames.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Shape")]
pub struct Shaping {
    /// Select stacks with a frame that matches PATTERN (repeatable; any of them).
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Exclude stacks with a frame that matches PATTERN (repeatable).
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Merge frames that match PATTERN into their callers (repeatable).
    #[arg(long, value_name = "PATTERN")]
    fold: Vec<String>,
    /// Merge adjacent frames of one module.
    #[arg(long, value_enum, value_name = "WHAT")]
    group: Option<Grouping>,
    /// Merge frames outside user code: the runtime, the class library, the system, and libraries
    /// whose PDBs show that they were built elsewhere.
    #[arg(long)]
    just_my_code: bool,
    /// Like --just-my-code, but user code is the modules that match PATTERN (repeatable).
    #[arg(long, value_name = "PATTERN")]
    my_modules: Vec<String>,
    /// Merge inlined frames into the function they are inlined into.
    #[arg(long)]
    no_inlines: bool,
    /// Add methods that are probably inlined where the trace has no inline tree, marked by `~`. It
    /// takes the JIT's events (`chronosym record --profile inlining`, docs/runtime.md).
    #[arg(long, conflicts_with = "no_inlines")]
    pub approximate_inlines: bool,
    /// Collapse recursive calls to one level.
    #[arg(long)]
    collapse_recursion: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Grouping {
    Module,
}

/// The effect of a pattern, or of an option without a value, on a shape.
type Step = fn(Shape, &str) -> Result<Shape, PatternError>;
type Flag = fn(Shape) -> Shape;

impl Shaping {
    /// Returns the options that select stacks.
    pub fn stack_filters(&self) -> Vec<String> {
        let named = |name: &str, patterns: &[String]| {
            let of = patterns.iter().map(|pattern| format!("{name} {pattern}"));
            of.collect::<Vec<_>>()
        };
        let mut all = named("--include", &self.include);
        all.extend(named("--exclude", &self.exclude));
        all
    }

    /// The shape that the options make.
    pub fn shape(&self) -> Result<Shape> {
        let patterns: [(&[String], Step); 4] = [
            (&self.include, Shape::include),
            (&self.exclude, Shape::exclude),
            (&self.fold, Shape::fold),
            (&self.my_modules, Shape::my_modules),
        ];
        let flags: [(bool, Flag); 4] = [
            (self.just_my_code, Shape::just_my_code),
            (self.group.is_some(), Shape::group_modules),
            (self.no_inlines, Shape::no_inlines),
            (self.collapse_recursion, Shape::collapse_recursion),
        ];
        let mut shape = Shape::default();
        for (patterns, step) in patterns {
            for pattern in patterns {
                shape = step(shape, pattern).map_err(|error| Usage(error.to_string()))?;
            }
        }
        let steps = flags.into_iter().filter(|(is_wanted, _)| *is_wanted);
        Ok(steps.fold(shape, |shape, (_, step)| step(shape)))
    }
}

/// Options that select samples and shape their stacks.
#[derive(Clone, Debug, Default, Args)]
pub struct Selection {
    #[command(flatten)]
    pub filters: EventFilters,
    #[command(flatten)]
    pub shaping: Shaping,
    #[command(flatten)]
    pub samples: Samples,
}

impl Selection {
    /// Returns these options, with logical callers of async methods if `async_chains`.
    pub fn with_async(&self, async_chains: bool) -> Self {
        let mut selection = self.clone();
        selection.samples.async_chains = async_chains;
        selection
    }
}
