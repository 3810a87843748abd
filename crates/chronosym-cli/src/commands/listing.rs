//! What `modules` and `methods` have in common: a trace without its samples, process by process.

use std::io::{self, Write};
use std::ops::Range;

use anyhow::Result;
use chronosym::{ProcessIndex, SampleSelection, Timeline};
use chronosym_types::json;
use serde::{Serialize, Serializer};
use serde_with::skip_serializing_none;

use crate::args::{InfoFormat, Listing};
use crate::load::{self, Loaded};
use crate::{absent, output, progress};

/// What a process has, in JSON.
#[skip_serializing_none]
#[derive(Serialize)]
struct ProcessObject<'a, T> {
    pid: Option<u32>,
    name: Option<&'a str>,
    #[serde(flatten)]
    has: T,
}

/// Reads the trace that the options name.
pub fn load(args: &Listing) -> Result<Loaded> {
    absent::refuse_empty_span(&args.filters)?;
    let input = &args.input;
    let loaded = load::load(&input.traces, SampleSelection::None, &input.symbols)?;
    progress::notes(&loaded.notes);
    absent::refuse_late(&args.filters, &loaded.timeline)?;
    Ok(loaded)
}

/// Writes what the processes have that the filters let through: `of` says what that is, `text` writes it below the name of the
/// process. A process that has none of it is left out.
pub fn write<T: Serialize>(
    args: &Listing,
    timeline: &Timeline,
    of: impl Fn(ProcessIndex, Range<u64>) -> Option<T>,
    text: impl Fn(&T, &mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let filter = load::filter(&args.filters, timeline)?;
    let processes = timeline.processes();
    let processes = processes.filter(|p| filter.has_process(timeline, p.index));
    let listed = processes.filter_map(|p| of(p.index, filter.times()).map(|has| (p, has)));
    let mut out = output::open_for(args.format, args.input.output.as_deref());
    match args.format {
        InfoFormat::Json => {
            let objects = listed.map(|(process, has)| ProcessObject {
                pid: process.pid,
                name: process.name,
                has,
            });
            out.write_all(b"{\"processes\":")?;
            serde_json::Serializer::with_formatter(&mut out, json::Formatter)
                .collect_seq(objects)?;
            out.write_all(b"}\n")?;
        }
        InfoFormat::Text => {
            for (process, has) in listed {
                output::text_line!(out, "{}", process.label())?;
                text(&has, &mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
