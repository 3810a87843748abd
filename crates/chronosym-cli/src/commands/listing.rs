//! What `modules` and `methods` have in common: a trace without its samples, process by process.

use std::io::Write;
use std::ops::Range;

use anyhow::Result;
use chronosym::{ProcessIndex, ProcessView, SampleSelection, Timeline};
use serde::Serialize;

use crate::args::{InfoFormat, Listing};
use crate::load::{self, Loaded};
use crate::{absent, output};

/// What a process has, in JSON.
#[derive(Serialize)]
struct ProcessObject<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(flatten)]
    has: T,
}

/// What is listed of each process: nothing of those that have none of it.
pub trait List {
    /// What a process has.
    type Has<'t>: Serialize;

    fn of<'t>(
        &self,
        timeline: &'t Timeline,
        process: ProcessIndex,
        times: Range<u64>,
    ) -> Option<Self::Has<'t>>;

    /// Writes it below the name of the process.
    fn write(&self, has: &Self::Has<'_>, out: &mut dyn Write) -> std::io::Result<()>;
}

/// Reads the trace that the options name.
pub fn load(args: &Listing, quiet: bool) -> Result<Loaded> {
    absent::refuse_empty_span(&args.filters)?;
    let input = &args.input;
    let loaded = load::load(&input.traces, SampleSelection::None, &input.symbols)?;
    super::tell(&loaded.notes, quiet);
    absent::refuse_late(&args.filters, &loaded.timeline)?;
    Ok(loaded)
}

/// Writes what the processes have that the filters let through.
pub fn write(args: &Listing, timeline: &Timeline, list: &impl List) -> Result<()> {
    let filter = load::filter(&args.filters, timeline)?;
    let processes = timeline.processes();
    let processes = processes.filter(|p| filter.has_process(timeline, p.index));
    let listed = processes.filter_map(|process: ProcessView<'_>| {
        let has = list.of(timeline, process.index, filter.times())?;
        Some((process, has))
    });
    let path = args.input.output.as_deref();
    let mut out = output::open_for(args.format, path);
    if args.format == InfoFormat::Json {
        let objects = listed.map(|(process, has)| ProcessObject {
            pid: process.pid,
            name: process.name,
            has,
        });
        out.write_all(b"{\"processes\":")?;
        serde::Serializer::collect_seq(
            &mut serde_json::Serializer::with_formatter(&mut out, chronosym_types::json::Formatter),
            objects,
        )?;
        out.write_all(b"}\n")?;
    } else {
        for (process, has) in listed {
            output::text_line!(out, "{}", process.label())?;
            list.write(&has, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}
