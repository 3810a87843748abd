//! A report as one page without any request: its data are compressed columns of samples, from which
//! a script makes every view.

mod calls;
mod columns;
mod facts;
mod header;
mod live;
mod markers;
mod samples;

use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym_core::{ModuleIndex, ProcessIndex};
use chronosym_types::escape::xml;

use self::calls::Calls;
use self::columns::Columns;
pub use self::facts::{ReportFacts, ReportSource};
use self::header::Header;
use self::live::Index;
pub use self::live::ReportQueries;
use self::samples::Samples;
use crate::annotate::module_of;
use crate::series::Series;
use crate::user_code::UserCode;

/// Built from `report/` by `npm run build`.
const SCRIPT: &str = include_str!("../../report/dist/report.js");
const STYLE: &str = include_str!("../../report/dist/report.css");

/// A source file that a report names.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NamedFile<'a> {
    /// The path, as the symbol file states it.
    pub path: &'a str,
    /// A module that was compiled from it.
    pub module: Option<(ProcessIndex, ModuleIndex)>,
}

/// The maximum size of all source text in a report, in bytes.
const MAX_SOURCE: usize = 8 << 20;

/// Writes a report: time axis with threads and the runtime's activities, flame graph, callers and
/// callees, table, source. `source` returns the text of a file of user code, if it is found.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_report(
    series: &Series,
    facts: &ReportFacts,
    source: impl FnMut(NamedFile<'_>) -> Option<ReportSource>,
    out: &mut impl Write,
) -> io::Result<()> {
    begin(&facts.name, false, out)?;
    write_data("trace", series, facts, false, source, out)?;
    end(out)
}

/// Writes a report for a server. If the page has merged samples, it requests those of each
/// selection from the relative URL `query`, and [`ReportQueries`] answers.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_served_report(
    series: Series,
    facts: &ReportFacts,
    source: impl FnMut(NamedFile<'_>) -> Option<ReportSource>,
    out: &mut impl Write,
) -> io::Result<Option<ReportQueries>> {
    let is_live = series.samples.len() > facts.max_samples;
    begin(&facts.name, is_live, out)?;
    let index = write_data("trace", &series, facts, is_live, source, out)?;
    end(out)?;
    Ok(is_live.then(|| ReportQueries::new(series, index)))
}

/// Writes a report of two traces: their time axes and flame graphs side by side, and the methods
/// whose shares changed. It has no source.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_diff_report(
    before: (&Series, &ReportFacts),
    after: (&Series, &ReportFacts),
    out: &mut impl Write,
) -> io::Result<()> {
    begin(&format!("{} → {}", before.1.name, after.1.name), false, out)?;
    write_data("trace", before.0, before.1, false, |_| None, out)?;
    write_data("after", after.0, after.1, false, |_| None, out)?;
    end(out)
}

fn begin(name: &str, is_live: bool, out: &mut impl Write) -> io::Result<()> {
    // The policy forbids every request, whatever a trace contains, except queries to the server
    // that the page is from.
    let queries = if is_live { "; connect-src 'self'" } else { "" };
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'{queries}\">\
         <title>{}</title>\n<style>{STYLE}</style></head><body>\n\
         <noscript>This report is drawn by a script in this file, which needs no network.</noscript>",
        xml(name)
    )
}

fn write_data(
    id: &str,
    series: &Series,
    facts: &ReportFacts,
    is_live: bool,
    source: impl FnMut(NamedFile<'_>) -> Option<ReportSource>,
    out: &mut impl Write,
) -> io::Result<Index> {
    let mut calls = Calls::new(series, facts.max_nodes);
    let mut samples = Samples::new(series, &mut calls, facts.max_samples);
    if calls.cut > 0 {
        calls = calls.without_rare();
        samples = Samples::new(series, &mut calls, facts.max_samples);
    }
    let sources = sources(series, &calls, source);
    let mut columns = Columns::default();
    let place = calls.write(&mut columns);
    let header = Header::new(
        series,
        facts,
        &calls,
        (&samples, is_live),
        &place,
        sources,
        &mut columns,
    );
    let header = chronosym_types::json::to_string(&header)?;
    write!(out, "<script type=\"text/plain\" id=\"{id}\">")?;
    columns.write(&header, out)?;
    writeln!(out, "</script>")?;
    Ok(Index {
        threads: samples.threads,
        nodes: calls.into_nodes(),
        place,
    })
}

fn end(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<script>{SCRIPT}</script></body></html>")
}

fn sources(
    series: &Series,
    calls: &Calls<'_>,
    mut source: impl FnMut(NamedFile<'_>) -> Option<ReportSource>,
) -> BTreeMap<usize, ReportSource> {
    let (timeline, mut size) = (series.resolver.timeline(), 0);
    let files = calls.files.iter().zip(calls.example_of_files()).enumerate();
    let user_code = UserCode::of(timeline);
    let found = files.filter(|(_, (_, frame))| user_code.has(frame));
    let found = found.filter_map(|(index, (path, frame))| {
        if size >= MAX_SOURCE {
            return None;
        }
        let module = module_of(frame, timeline);
        let text = source(NamedFile { path, module })?;
        size += text.text.len();
        Some((index, text))
    });
    found
        .filter(|(_, text)| text.text.len() <= MAX_SOURCE)
        .collect()
}
