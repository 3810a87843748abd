//! The arguments of `stacks` and `serve`, which show the samples of a trace.

use std::path::PathBuf;

use chronosym_export::{JsonStacks, WeightUnit};
use clap::{Args, ValueEnum};

use super::parts::{Input, Selection, Symbols};
use super::values::{meant, one_of, rows};

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
    /// Group stacks by KEY, which becomes the outermost frame: `activity` takes the activity ids of
    /// events (docs/time.md). jsonl states the ids apart from the frames.
    #[arg(long, value_enum, value_name = "KEY")]
    pub by: Option<StackGroup>,
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

/// Values of `--by` of `stacks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackGroup {
    Activity,
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
