//! `chronosym top`.

use std::io::Write;

use anyhow::Result;

use crate::args::Top;
use crate::{load, output, symbols};

pub fn run(args: &Top, quiet: bool) -> Result<()> {
    let loaded = load::load(
        &args.input.traces,
        load::selection(&args.filters)?,
        &args.input.symbols,
    )?;
    super::tell(&loaded.notes, quiet);
    let timeline = &loaded.timeline;
    let symbols = symbols::open(&args.input.symbols, quiet)?;
    let filter = chronosym::Filter {
        managed_only: args.managed_only,
        idle: args.idle,
        ..load::filter(&args.filters, timeline)?
    };
    let path = args.input.output.as_deref();
    let options = chronosym_export::TopOptions {
        most: args.most,
        width: output::width(path),
        color: output::is_coloured(path),
    };
    let mut out = output::open(path)?;
    let profile = timeline.profile(&filter, Some(&symbols));
    chronosym_export::write_top(&profile, options, &mut out)?;
    out.flush()?;
    Ok(())
}
