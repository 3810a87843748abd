//! `chronosym symbols`.

use std::io::Write;

use anyhow::Result;
use chronosym::Profile;
use chronosym::symbols::MissingSymbols;
use chronosym_export::Measure;
use serde::Serialize;

use crate::args::InfoFormat;
use crate::output::{self, text_line};
use crate::profiled::OfTrace;
use crate::units::show_count;

/// A missing symbol file in JSON.
#[derive(Serialize)]
struct MissingObject<'a> {
    module: &'a str,
    unnamed: AmountObject,
    without_line: AmountObject,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    trace_paths: &'a [String],
    server_paths: &'a [String],
}

#[derive(Serialize)]
struct AmountObject {
    samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<u64>,
}

pub fn run(args: &OfTrace, quiet: bool) -> Result<()> {
    let (input, question) = (&args.input, &args.question);
    let (profile, symbols) = question.profile(&input.traces, &input.symbols, quiet)?;
    let missing = symbols.missing(&profile);
    let path = input.output.as_deref();
    let mut out = output::open_for(question.format, path);
    match question.format {
        InfoFormat::Text => write_text(&profile, &missing, args.most, &mut out)?,
        InfoFormat::Json => {
            let is_timed = profile.time_ns().is_some();
            let objects: Vec<_> = missing.iter().map(|m| object(m, is_timed)).collect();
            let most = args.most;
            chronosym_export::write_rows_json(&profile, "symbol_file", &objects, most, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn object(missing: &MissingSymbols, is_timed: bool) -> MissingObject<'_> {
    let amount = |samples, ns| AmountObject {
        samples,
        time_ns: is_timed.then_some(ns),
    };
    MissingObject {
        module: &missing.name,
        unnamed: amount(missing.unnamed, missing.unnamed_ns),
        without_line: amount(missing.without_line, missing.without_line_ns),
        reason: missing.reason(),
        identity: missing.file.wanted.as_ref().map(ToString::to_string),
        trace_paths: &missing.trace_paths,
        server_paths: &missing.server_paths,
    }
}

fn write_text(
    profile: &Profile,
    missing: &[MissingSymbols],
    most: usize,
    out: &mut impl Write,
) -> Result<()> {
    let samples = show_count(profile.samples());
    if profile.samples() == 0 {
        writeln!(
            out,
            "no samples: `chronosym info TRACE` shows what the trace has"
        )?;
        return Ok(());
    }
    if missing.is_empty() {
        writeln!(
            out,
            "no symbol file that would say more of the innermost frames of {samples} samples is missing"
        )?;
        return Ok(());
    }
    let measure = match Measure::of(profile) {
        Measure::Bytes => Measure::Samples,
        measure => measure,
    };
    let all = measure.total(profile);
    let cells = |samples: u64, ns: u64| {
        let weight = match measure {
            Measure::Time => ns,
            _ => samples,
        };
        let share = weight as f64 * 100.0 / all.max(1) as f64;
        format!("{share:>6.1}% {:>9}", measure.show(weight))
    };
    writeln!(
        out,
        "shares are of the innermost frames of {samples} samples:\n\
         those that a file would name, and those with a name that it would give a line\n\n\
         {:>7} {:>9} {:>7} {:>9}  module or image",
        "name %",
        measure.head("name"),
        "line %",
        measure.head("line")
    )?;
    for missing in missing.iter().take(most) {
        text_line!(
            out,
            "{} {}  {}: {}",
            cells(missing.unnamed, missing.unnamed_ns),
            cells(missing.without_line, missing.without_line_ns),
            missing.name,
            missing.reason()
        )?;
        match &missing.file.wanted {
            Some(wanted) => text_line!(out, "{INDENT}{wanted}")?,
            None => text_line!(out, "{INDENT}the trace has no identity to look for")?,
        }
        for path in &missing.trace_paths {
            text_line!(out, "{INDENT}path    {path}")?;
        }
        for path in &missing.server_paths {
            text_line!(out, "{INDENT}server  {path}")?;
        }
    }
    match missing.len().saturating_sub(most) {
        0 => {}
        more => writeln!(out, "\n{more} more: see -n")?,
    }
    writeln!(
        out,
        "\nwhere files are looked for: --symbols DIR, --symbol-path 'srv*CACHE*URL',\n\
         DEBUGINFOD_URLS, --trust-trace-paths"
    )?;
    Ok(())
}

const INDENT: &str = "         ";
