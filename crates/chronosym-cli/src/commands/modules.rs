//! `chronosym modules`.

use anyhow::Result;
use chronosym_export::Binaries;

use super::listing;
use crate::args::Listing;
use crate::symbolizer;

pub fn run(args: &Listing) -> Result<()> {
    let loaded = listing::load(args)?;
    let symbols = symbolizer::open(&args.input.symbols, &loaded)?;
    let timeline = &loaded.timeline;
    let of = |process, times: &_| {
        let mut binaries = Binaries::of(timeline, &symbols, process, times)?;
        binaries.truncate(args.max_lines.unwrap_or(usize::MAX));
        Some(binaries)
    };
    listing::write(args, timeline, of, Binaries::write)
}
