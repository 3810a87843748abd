//! What commands that ask about a whole profile have in common.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use chronosym::Profile;
use chronosym::symbols::Symbolizer;
use chronosym_export::TableOptions;
use clap::{Args, ValueEnum};

use crate::args::{EventFilters, InfoFormat, Input, Samples, Symbols};
use crate::load::{self, Loaded};
use crate::shaping::Shaping;
use crate::{absent, output};

/// Which samples, how their stacks are shaped, and how much is shown.
#[derive(Debug, Args)]
pub struct Question {
    #[command(flatten)]
    pub filters: EventFilters,
    #[command(flatten)]
    pub shaping: Shaping,
    #[command(flatten)]
    pub samples: Samples,
    /// For people or for programs.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

/// `chronosym threads` and `chronosym symbols`.
#[derive(Debug, Args)]
pub struct OfTrace {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub question: Question,
    /// How many rows.
    #[arg(long, short = 'n', default_value_t = 30, value_name = "N")]
    pub most: usize,
}

/// `chronosym lines`.
#[derive(Debug, Args)]
pub struct OfMethod {
    /// The trace: .nettrace, .netperf or .etl, plain, zipped or gzipped; `-` is standard input.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The method: its name, the end of its name, or a part of it.
    #[arg(value_name = "METHOD")]
    pub method: String,
    /// Look for source files in this folder; may be given several times. A file is used if its checksum is the one in
    /// the PDB. Where fetching is on, what is nowhere else is fetched from where Source Link says.
    #[arg(long, value_name = "DIR")]
    pub sources: Vec<PathBuf>,
    /// Write results to this file.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    #[command(flatten)]
    pub question: Question,
}

/// `chronosym diff`.
#[derive(Debug, Args)]
pub struct OfTwo {
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
    pub filters: EventFilters,
    #[command(flatten)]
    pub shaping: Shaping,
    #[command(flatten)]
    pub samples: Samples,
    /// The default is what the name after -o says (.svg, .html), else a table.
    #[arg(long, value_enum)]
    pub format: Option<DiffFormat>,
    /// How many rows.
    #[arg(long, short = 'n', default_value_t = 30, value_name = "N")]
    pub most: usize,
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

impl Question {
    /// Reads traces of one recording, and makes the profile that is asked about; damage is told.
    pub fn profile(
        &self,
        traces: &[PathBuf],
        args: &Symbols,
        quiet: bool,
    ) -> Result<(Profile, Arc<Symbolizer>)> {
        let shape = self.shaping.shape()?;
        let (loaded, symbols, filter) =
            open_samples(traces, args, &self.filters, &self.samples, quiet)?;
        let source: Arc<dyn chronosym::SymbolSource> = symbols.clone();
        let mut profile = loaded.timeline.profile(&filter, Some(source));
        profile.shape(&shape);
        Ok((profile, symbols))
    }
}

/// Reads the traces whose samples are wanted; damage is told. With it come the symbols and the filter that the options
/// make.
pub fn open_samples(
    traces: &[PathBuf],
    args: &Symbols,
    filters: &EventFilters,
    samples: &Samples,
    quiet: bool,
) -> Result<(Loaded, Arc<Symbolizer>, chronosym::Filter)> {
    open_marked(traces, args, filters, samples, 0, quiet)
}

/// As [`open_samples`], with at most so many events of what runtimes did.
pub fn open_marked(
    traces: &[PathBuf],
    args: &Symbols,
    filters: &EventFilters,
    samples: &Samples,
    markers: usize,
    quiet: bool,
) -> Result<(Loaded, Arc<Symbolizer>, chronosym::Filter)> {
    absent::refuse_empty_span(&filters.processes)?;
    if samples.managed_only && !quiet {
        crate::progress::say("--managed-only is --running now: it leaves out threads that waited");
    }
    let mut options = chronosym::Options::from(load::selection(filters));
    options.markers = markers;
    let loaded = load::load(traces, options, args)?;
    if !quiet {
        loaded.notes.iter().for_each(|n| crate::progress::tell(n));
    }
    absent::refuse(filters, &loaded.timeline)?;
    let symbols = Arc::new(crate::symbols::open(args, &loaded)?);
    let mut filter = load::filter(&filters.processes, &loaded.timeline)?;
    filter.tid = filters.tid;
    filter.waiting = samples.waiting();
    filter.idle = samples.idle;
    Ok((loaded, symbols, filter))
}

/// How much of a table is shown.
pub fn shown(most: usize, output: Option<&Path>) -> TableOptions {
    TableOptions {
        most,
        width: output::width(output),
        color: output::is_coloured(output),
    }
}
