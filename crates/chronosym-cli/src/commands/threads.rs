//! `chronosym threads`.

use std::io::Write;

use anyhow::Result;

use crate::args::InfoFormat;
use crate::output;
use crate::profiled::{OfTrace, shown};

pub fn run(args: &OfTrace, quiet: bool) -> Result<()> {
    let (input, question) = (&args.input, &args.question);
    let (profile, _) = question.profile(&input.traces, &input.symbols, quiet)?;
    let threads = chronosym_export::hot_threads(&profile);
    let path = input.output.as_deref();
    let options = shown(args.most, path);
    let mut out = output::open(path);
    match question.format {
        InfoFormat::Text => {
            chronosym_export::write_threads(&profile, &threads, options, &mut out)?;
        }
        InfoFormat::Json => {
            let most = options.most;
            chronosym_export::write_rows_json(&profile, "thread", &threads, most, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}
