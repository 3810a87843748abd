//! `chronosym top`.

use std::io::Write;

use anyhow::{Result, bail};
use chronosym::Profile;
use chronosym_export::{Butterfly, TopOptions};

use crate::args::{By, InfoFormat, Sort, Top};
use crate::output;
use crate::profiled::open_samples;

pub fn run(args: &Top, quiet: bool) -> Result<()> {
    let shape = args.shaping.shape()?;
    let (loaded, symbols, filter) = open_samples(
        &args.input.traces,
        &args.input.symbols,
        &args.filters,
        &args.samples,
        quiet,
    )?;
    let timeline = &loaded.timeline;
    let path = args.input.output.as_deref();
    let options = TopOptions {
        most: args.most,
        width: output::width(path),
        color: output::is_coloured(path),
        addresses: args.samples.addresses,
    };
    let mut profile = timeline.profile(&filter, Some(symbols));
    profile.shape(&shape);
    let butterfly = butterfly(args, &profile)?;
    let mut out = output::open(path);
    match (args.format, &butterfly) {
        (InfoFormat::Json, Some(butterfly)) => {
            chronosym_types::json::to_writer(&mut out, butterfly)?;
            writeln!(out)?;
        }
        (InfoFormat::Text, Some(butterfly)) => {
            chronosym_export::write_butterfly(&profile, butterfly, options, &mut out)?;
        }
        (InfoFormat::Text, None) if is_plain(args) => {
            chronosym_export::write_top(&profile, options, &mut out)?;
        }
        (format, None) => write_rows(args, &profile, format, options, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// Whether it is the table of hot methods that has their hottest lines.
fn is_plain(args: &Top) -> bool {
    args.by == By::Method && args.sort == Sort::Own && args.matching.is_none()
}

fn write_rows(
    args: &Top,
    profile: &Profile,
    format: InfoFormat,
    options: TopOptions,
    out: &mut impl Write,
) -> Result<()> {
    let by = match args.by {
        By::Method => chronosym_export::By::Method,
        By::Module => chronosym_export::By::Module,
        By::Thread => chronosym_export::By::Thread,
        By::Process => chronosym_export::By::Process,
        By::Line => chronosym_export::By::Line,
        By::Tier => chronosym_export::By::Tier,
    };
    let sort = match args.sort {
        Sort::Own => chronosym_export::Sort::Own,
        Sort::Total => chronosym_export::Sort::Total,
    };
    let mut rows = chronosym_export::hot_rows(profile, by, sort);
    if let Some(matching) = &args.matching {
        rows.retain(|row| matching.is_match(&row.label));
    }
    match format {
        InfoFormat::Text => chronosym_export::write_rows(profile, by, &rows, options, out)?,
        InfoFormat::Json => {
            let (by, most) = (by.as_str(), options.most);
            chronosym_export::write_rows_json(profile, by, &rows, most, out)?;
        }
    }
    Ok(())
}

/// What is asked about a method: of its callers and callees only those that are wanted.
fn butterfly(args: &Top, profile: &Profile) -> Result<Option<Butterfly>> {
    let (Some(method), another) = (match (&args.callers, &args.callees) {
        (None, callees) => (callees.as_ref(), None),
        (callers, callees) => (callers.as_ref(), callees.as_ref()),
    }) else {
        return Ok(None);
    };
    if another.is_some_and(|another| another != method) {
        bail!(crate::args::Usage(
            "--callers and --callees are to name one method".to_owned()
        ));
    }
    let Some(mut butterfly) = Butterfly::new(profile, method) else {
        bail!("no method on any stack is called '{method}'; `chronosym top` shows which there are");
    };
    if args.callers.is_none() {
        butterfly.callers.clear();
    }
    if args.callees.is_none() {
        butterfly.callees.clear();
    }
    Ok(Some(butterfly))
}
