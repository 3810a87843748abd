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
    let path = args.input.output.as_deref();
    let options = chronosym_export::TopOptions {
        most: args.most,
        width: output::width(path),
        color: output::is_coloured(path),
    };
    let mut out = output::open(path)?;
    chronosym_export::write_top(&timeline.profile(&filter, None), options, &mut out)?;
    out.flush()?;
    Ok(())
}
