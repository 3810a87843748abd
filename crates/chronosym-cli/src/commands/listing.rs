//! Shared by `modules` and `methods`: listings of a trace without its samples, by process.

use std::io::{self, Write};
use std::ops::Range;

use anyhow::Result;
use chronosym::{ProcessIndex, ProcessView, SampleSelection, Timeline};
use chronosym_export::{Fields, Json, Object, text_line};
use chronosym_types::json;
use serde::Serializer;
use serde::ser::{SerializeMap, SerializeSeq};

use crate::args::{InfoFormat, Listing};
use crate::load::{self, Loaded};
use crate::{absent, emptied, output, progress};

/// A process and its list.
struct Listed<'t, T> {
    process: ProcessView<'t>,
    list: T,
}

impl<T: Fields> Fields for Listed<'_, T> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("pid", self.process.pid)
            .some("name", self.process.name)
            .fields_of(&self.list);
    }
}

/// Reads the trace.
pub fn load(args: &Listing) -> Result<Loaded> {
    absent::refuse_empty_span(&args.filters)?;
    let input = &args.input;
    let loaded = load::load(&input.traces, SampleSelection::None, &input.symbols)?;
    progress::notes(&loaded.diagnostics.list);
    absent::refuse_late(&args.filters, &loaded.timeline)?;
    Ok(loaded)
}

/// Writes the lists of all processes that pass the filters: `of` returns the list of a process,
/// `text` writes it below the name of the process. Processes without a list are omitted.
pub fn write<T: Fields>(
    args: &Listing,
    timeline: &Timeline,
    of: impl Fn(ProcessIndex, &Range<u64>) -> Option<T>,
    text: impl Fn(&T, &mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let filter = load::filter(&args.filters, timeline)?;
    let processes = timeline.processes();
    let processes = processes.filter(|p| filter.has_process(timeline, p.index));
    let times = filter.times();
    let mut is_empty = true;
    let listed = processes.filter_map(|process| {
        let list = of(process.index, &times)?;
        is_empty = false;
        Some(Listed { process, list })
    });
    let mut out = output::open_for(args.format, args.input.output.as_deref());
    match args.format {
        InfoFormat::Json => {
            out.write_all(b"{\"processes\":")?;
            let mut serializer = serde_json::Serializer::with_formatter(&mut out, json::Formatter);
            let mut objects = serializer.serialize_seq(None)?;
            for listed in listed {
                objects.serialize_element(&Json(&listed))?;
            }
            SerializeSeq::end(objects)?;
            out.write_all(b"}\n")?;
        }
        InfoFormat::Text => {
            for Listed { process, list } in listed {
                text_line!(out, "{}", process.label())?;
                text(&list, &mut out)?;
            }
        }
    }
    out.flush()?;
    if is_empty {
        progress::hint(&format!(
            "nothing to list{}; `chronosym info TRACE` shows what the trace contains",
            emptied::by(&emptied::of_processes(&args.filters))
        ));
    }
    Ok(())
}
