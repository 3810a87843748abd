//! `chronosym threads`.

use anyhow::Result;
use chronosym_export::{TableObject, hot_threads, write_threads};

use crate::args::OfTrace;
use crate::output;
use crate::profiled::{profile, shown};

pub fn run(args: &OfTrace) -> Result<()> {
    let (profile, ..) = profile(args)?;
    let threads = hot_threads(&profile);
    let path = args.input.output.as_deref();
    let object = TableObject::new(&profile, "thread", &threads, args.max_lines);
    output::write(args.format, output::open(path), &object, |out| {
        write_threads(&profile, &threads, shown(args.max_lines, path), out)
    })
}
