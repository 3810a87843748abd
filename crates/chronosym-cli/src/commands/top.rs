//! `chronosym top`.

use std::io::Write;

use anyhow::Result;

use crate::args::Top;
use crate::{load, output};

pub fn run(args: &Top, quiet: bool) -> Result<()> {
    let loaded = load::load(
        &args.input.traces,
        load::selection(&args.filters)?,
        &args.input.symbols,
    )?;
    super::tell(&loaded.notes, quiet);
    let timeline = &loaded.timeline;
    let filter = chronosym::Filter {
        managed_only: args.managed_only,
        idle: args.idle,
        ..load::filter(&args.filters, timeline)?
    };
    let mut out = output::open(args.input.output.as_deref())?;
    chronosym_export::write_top(&timeline.profile(&filter, None), args.most, &mut out)?;
    out.flush()?;
    Ok(())
}
