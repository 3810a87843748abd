//! `chronosym summary`, which `chronosym TRACE` is short for.

use anyhow::Result;
use chronosym::Filter;
use chronosym_export::{TraceSummary, charge_helpers};

use super::info;
use crate::args::{Info, InfoFormat};
use crate::{load, output};

pub fn run(args: &Info) -> Result<()> {
    let names = args.input.symbols.spelled(args.format == InfoFormat::Text);
    let (loaded, symbols) = info::look(&args.input.traces, &names)?;
    let mut profile = loaded.timeline.profile(&Filter::default(), Some(symbols));
    charge_helpers(&mut profile);
    let summary = TraceSummary::new(&profile, &loaded.diagnostics);
    let path = args.input.output.as_deref();
    let out = output::open_for(args.format, path);
    output::write(args.format, out, &summary, |out| {
        let trace = load::shell_words(&args.input.traces);
        summary.write(&trace, info::width(path), out)
    })
}
