//! `chronosym top`.

use std::io::Write;

use anyhow::{Result, bail};
use chronosym::Profile;
use chronosym_export::Butterfly;

use crate::args::{InfoFormat, Top, Usage};
use crate::output;
use crate::profiled::shown;

pub fn run(args: &Top, quiet: bool) -> Result<()> {
    let (input, question) = (&args.input, &args.question);
    let (profile, _) = question.profile(&input.traces, &input.symbols, quiet)?;
    let path = input.output.as_deref();
    let options = shown(args.most, path);
    let butterfly = butterfly(args, &profile)?;
    let mut out = output::open(path);
    match (question.format, &butterfly) {
        (InfoFormat::Json, Some(butterfly)) => output::write_json(butterfly, &mut out)?,
        (InfoFormat::Text, Some(butterfly)) => {
            chronosym_export::write_butterfly(&profile, butterfly, options, &mut out)?;
        }
        (format, None) => {
            let (by, addresses) = (args.by, question.samples.addresses);
            let mut rows = chronosym_export::hot_rows(&profile, by, args.sort, addresses);
            if let Some(matching) = &args.matching {
                rows.retain(|row| matching.is_match(&row.label.name));
            }
            if format == InfoFormat::Text {
                chronosym_export::write_top(&profile, by, &rows, options, &mut out)?;
            } else {
                let (by, most) = (by.as_str(), options.most);
                chronosym_export::write_rows_json(&profile, by, &rows, most, &mut out)?;
            }
        }
    }
    out.flush()?;
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
        bail!(Usage(
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
