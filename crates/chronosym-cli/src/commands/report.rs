//! The report of `stacks` and `serve`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use chronosym::runtime::JitDecisions;
use chronosym::{Options, Profile};
use chronosym_export::{
    NamedFile, ReportFacts, ReportQueries, ReportSource, Series, write_report, write_served_report,
};

use super::pictures;
use crate::args::SourceOptions;
use crate::limits;
use crate::profiled::Sampled;

/// Rejects folders of `--sources` that do not exist.
pub fn check_sources(folders: &[PathBuf]) -> Result<()> {
    match folders.iter().find(|folder| !folder.exists()) {
        Some(folder) => bail!("--sources {}: there is no such folder", folder.display()),
        None => Ok(()),
    }
}

/// Returns the options of a session for a report.
pub fn options() -> Options {
    let mut options = JitDecisions::options();
    options.markers = limits::get().markers;
    options
}

/// Returns the facts about traces for a report.
pub fn facts(traces: &[PathBuf], sampled: &Sampled, profile: &Profile, raw: bool) -> ReportFacts {
    let diagnostics = sampled.loaded.diagnostics.list.clone();
    let mut facts = ReportFacts::new(pictures::name(traces), profile, diagnostics);
    let limits = limits::get();
    facts.max_samples = limits.report_samples;
    facts.max_nodes = limits.tree_nodes.unwrap_or(facts.max_nodes);
    facts.raw = raw;
    facts
}

/// As [`facts()`], with the calls that the JIT inlined or rejected.
fn facts_with_calls(traces: &[PathBuf], sampled: &Sampled, raw: bool) -> ReportFacts {
    let profile = sampled.profile();
    let mut facts = facts(traces, sampled, &profile, raw);
    let decisions = JitDecisions::new(&sampled.loaded.timeline, &sampled.filter);
    facts.mark_calls(&profile, &decisions);
    facts
}

/// Writes a report of samples, with raw frames if `raw`, with the source files of user code that
/// are found.
pub fn write(
    series: &Series,
    sampled: &Sampled,
    traces: &[PathBuf],
    options: &SourceOptions,
    raw: bool,
    out: &mut impl Write,
) -> Result<()> {
    let facts = facts_with_calls(traces, sampled, raw);
    write_report(series, &facts, source(sampled, options), out)?;
    Ok(())
}

/// As [`write()`], for a server, which answers the queries of the report if it has some.
pub fn write_served(
    series: Series,
    sampled: &Sampled,
    traces: &[PathBuf],
    options: &SourceOptions,
    raw: bool,
    out: &mut impl Write,
) -> Result<Option<ReportQueries>> {
    let facts = facts_with_calls(traces, sampled, raw);
    let source = source(sampled, options);
    Ok(write_served_report(series, &facts, source, out)?)
}

/// Returns the source of the text of files.
fn source(
    sampled: &Sampled,
    options: &SourceOptions,
) -> impl Fn(NamedFile<'_>) -> Option<ReportSource> {
    let timeline = &sampled.loaded.timeline;
    move |file: NamedFile<'_>| {
        if options.no_source {
            return None;
        }
        let module = file.module;
        let module = module.and_then(|(process, module)| timeline.module_ref(process, module));
        let symbols = &sampled.symbols;
        let found = symbols.source(module.as_ref(), file.path, &options.sources);
        let found = found.ok()?;
        // Folders of this machine are left out: reports are passed on.
        let from = match (&found.file, found.url) {
            (Some(_), _) if found.checked => "a file whose checksum matches the PDB".to_owned(),
            (Some(_), _) => "a file; checksum unknown".to_owned(),
            (None, Some(url)) => url,
            (None, None) => "the PDB".to_owned(),
        };
        Some(ReportSource::new(found.text, from))
    }
}
