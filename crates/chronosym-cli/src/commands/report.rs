//! The report of `stacks` and `serve`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use chronosym::Profile;
use chronosym_export::{NamedFile, ReportFacts, ReportSource, Series, write_report};

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

/// Returns the facts about traces for a report.
pub fn facts(traces: &[PathBuf], sampled: &Sampled, profile: &Profile, raw: bool) -> ReportFacts {
    let diagnostics = sampled.loaded.diagnostics.list.clone();
    let mut facts = ReportFacts::new(pictures::name(traces), profile, diagnostics);
    facts.max_nodes = limits::get().tree_nodes;
    facts.raw = raw;
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
    let facts = facts(traces, sampled, &sampled.profile(), raw);
    let timeline = &sampled.loaded.timeline;
    let source = |file: NamedFile<'_>| {
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
    };
    write_report(series, &facts, source, out)?;
    Ok(())
}
