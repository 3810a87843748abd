//! The arguments of the commands that sum samples and events.

use std::path::PathBuf;
use std::slice::from_ref;

use anyhow::{Result, bail};
use chronosym_export::{By, Pattern, Sort};
use clap::{Args, ValueEnum};

use super::parts::{EventFilters, Filters, InfoFormat, Input, Samples, Selection, Symbols, Usage};
use super::values::{one_of, rows};

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
