//! `chronosym symbols`.

use std::io::Write;

use anyhow::Result;
use chronosym::Profile;
use chronosym::symbols::MissingSymbols;
use serde::Serialize;

use crate::args::InfoFormat;
use crate::output::{self, text_line};
use crate::profiled::OfTrace;

/// A missing symbol file in JSON.
#[derive(Serialize)]
struct MissingObject<'a> {
    module: &'a str,
    unnamed: u64,
    without_line: u64,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    trace_paths: &'a [String],
    server_paths: &'a [String],
}

pub fn run(args: &OfTrace, quiet: bool) -> Result<()> {
    let (input, question) = (&args.input, &args.question);
    let (profile, symbols) = question.profile(&input.traces, &input.symbols, quiet)?;
    let missing = symbols.missing(&profile);
    let mut out = output::open(input.output.as_deref());
    match question.format {
        InfoFormat::Text => write_text(&profile, &missing, args.most, &mut out)?,
        InfoFormat::Json => {
            let objects: Vec<MissingObject<'_>> = missing.iter().map(object).collect();
            let most = args.most;
            chronosym_export::write_rows_json(&profile, "symbol_file", &objects, most, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn object(missing: &MissingSymbols) -> MissingObject<'_> {
    MissingObject {
        module: &missing.name,
        unnamed: missing.unnamed,
        without_line: missing.without_line,
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
    let all = profile.samples();
    if all == 0 {
        writeln!(out, "no samples")?;
        return Ok(());
    }
    if missing.is_empty() {
        writeln!(
            out,
            "no symbol file that would say more of the innermost frames of {all} samples is missing"
        )?;
        return Ok(());
    }
    let share = |n: u64| n as f64 * 100.0 / all.max(1) as f64;
    writeln!(
        out,
        "shares are of the innermost frames of {all} samples: those that a symbol file\n\
         would name, and those that have a name to which it would give a line\n\n\
         {:>7} {:>7}  module or image",
        "name", "line"
    )?;
    for missing in missing.iter().take(most) {
        text_line!(
            out,
            "{:>6.1}% {:>6.1}%  {}: {}",
            share(missing.unnamed),
            share(missing.without_line),
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

const INDENT: &str = "                 ";
