//! `chronosym threads`.

use anyhow::Result;
use chronosym_export::{TableObject, add_switched, hot_threads, write_threads};

use crate::args::OfTrace;
use crate::profiled::{profile, shown};
use crate::{load, output};

pub fn run(args: &OfTrace) -> Result<()> {
    let (profile, ..) = profile(args)?;
    let mut threads = hot_threads(&profile);
    if args.wakers.is_none() {
        let (timeline, filters) = (profile.resolver.timeline(), &args.selection.filters);
        let mut filter = load::filter(&filters.processes, timeline)?;
        filter.tid = filters.tid;
        add_switched(&mut threads, timeline, &filter);
    }
    let path = args.input.output.as_deref();
    let object = TableObject::new(&profile, "thread", &threads, args.max_lines);
    output::write(args.format, output::open(path), &object, |out| {
        write_threads(&profile, &threads, shown(args.max_lines, path), out)
    })
}
