//! `chronosym top`.

use std::io::Write;

use anyhow::Result;

use crate::args::Top;
use crate::output;

pub fn run(args: &Top, quiet: bool) -> Result<()> {
    let (loaded, symbols, filter) =
        super::open_samples(&args.input, &args.filters, &args.samples, quiet)?;
    let timeline = &loaded.timeline;
    let path = args.input.output.as_deref();
    let options = chronosym_export::TopOptions {
        most: args.most,
        width: output::width(path),
        color: output::is_coloured(path),
        addresses: args.samples.addresses,
    };
    let mut out = output::open(path);
    let profile = timeline.profile(&filter, Some(symbols));
    chronosym_export::write_top(&profile, options, &mut out)?;
    out.flush()?;
    Ok(())
}
