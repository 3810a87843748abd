//! `chronosym methods`.

use anyhow::Result;
use chronosym_export::Bodies;

use super::listing;
use crate::args;

pub fn run(args: &args::Methods) -> Result<()> {
    let loaded = listing::load(&args.listing)?;
    let timeline = &loaded.timeline;
    let of = |process, times: &_| {
        let mut bodies = Bodies::of(timeline, process, times, args.matching.as_ref())?;
        bodies.truncate(args.listing.max_lines.unwrap_or(usize::MAX));
        Some(bodies)
    };
    listing::write(&args.listing, timeline, of, Bodies::write)
}
