//! `chronosym symbols`.

use std::io::Write;

use anyhow::Result;
use chronosym::Profile;
use chronosym::symbols::MissingSymbols;
use chronosym_export::{Measure, TableObject};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::args::OfTrace;
use crate::output::{self, text_line};
use crate::profiled::profile;
use crate::units::show_count;

/// A missing symbol file in JSON.
#[skip_serializing_none]
#[derive(Serialize)]
struct MissingObject<'a> {
    module: &'a str,
    unnamed: AmountObject,
    without_line: AmountObject,
    reason: &'a str,
    identity: Option<String>,
    trace_paths: &'a [String],
    server_paths: &'a [String],
}

#[skip_serializing_none]
#[derive(Serialize)]
struct AmountObject {
    samples: u64,
    time_ns: Option<u64>,
}

pub fn run(args: &OfTrace) -> Result<()> {
    let (profile, symbols) = profile(args)?;
    let missing = symbols.missing(&profile);
    let is_timed = profile.time_ns().is_some();
    let objects: Vec<_> = missing.iter().map(|m| object(m, is_timed)).collect();
    let object = TableObject::new(&profile, "symbol_file", &objects, args.most);
    let out = output::open_for(args.format, args.input.output.as_deref());
    output::write(args.format, out, &object, |out| {
        write_text(&profile, &objects, args.most, out)
    })
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
    missing: &[MissingObject<'_>],
    most: usize,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let samples = show_count(profile.samples());
    if profile.samples() == 0 {
        return writeln!(
            out,
            "no samples: `chronosym info TRACE` shows what the trace has"
        );
    }
    if missing.is_empty() {
        return writeln!(
            out,
            "no symbol file that would say more of the innermost frames of {samples} samples is missing"
        );
    }
    let measure = match Measure::of(profile) {
        Measure::Bytes => Measure::Samples,
        measure => measure,
    };
    let all = measure.total(profile);
    let cells = |amount: &AmountObject| {
        let weight = match measure {
            Measure::Time => amount.time_ns.unwrap_or(0),
            _ => amount.samples,
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
            cells(&missing.unnamed),
            cells(&missing.without_line),
            missing.module,
            missing.reason
        )?;
        let nothing = "the trace has no identity to look for";
        let identity = missing.identity.as_deref().unwrap_or(nothing);
        text_line!(out, "{INDENT}{identity}")?;
        for path in missing.trace_paths {
            text_line!(out, "{INDENT}path    {path}")?;
        }
        for path in missing.server_paths {
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
    )
}

const INDENT: &str = "         ";
