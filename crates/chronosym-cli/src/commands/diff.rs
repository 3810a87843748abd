//! `chronosym diff`.

use std::io::Write;
use std::slice::from_ref;

use anyhow::{Result, bail};
use chronosym_export::Diff;

use crate::args::{InfoFormat, Usage};
use crate::output;
use crate::profiled::{OfTwo, shown};

pub fn run(args: &OfTwo, quiet: bool) -> Result<()> {
    let is_pipe = |path: &std::path::Path| path.as_os_str() == "-";
    if is_pipe(&args.before) && is_pipe(&args.after) {
        bail!(Usage("standard input is one trace, not two".to_owned()));
    }
    let question = &args.question;
    let (before, _) = question.profile(from_ref(&args.before), &args.symbols, quiet)?;
    let (after, _) = question.profile(from_ref(&args.after), &args.symbols, quiet)?;
    let mut diff = Diff::new(&before, &after);
    let path = args.output.as_deref();
    let options = shown(args.most, path);
    let mut out = output::open(path);
    match question.format {
        InfoFormat::Text => chronosym_export::write_diff(&diff, options, &mut out)?,
        InfoFormat::Json => {
            diff.methods.truncate(options.most);
            chronosym_export::write_json(&diff, &mut out)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}
