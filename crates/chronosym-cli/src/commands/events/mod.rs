//! `chronosym events`: every record in the order of time, as it is read.
//!
//! Nothing is kept but the event types, so that memory does not follow the trace. Only `--process` and `--pid PID@T` need to
//! know the processes first, which takes a pass of its own.

mod line;
mod place;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chronosym::open::{ByteStream, FileBytes, Format, RecordingBytes};
use chronosym::source::chronosym_ctf::Reader as CtfReader;
use chronosym::{Diagnostics, SampleSelection, Timeline, source};
use chronosym_etl::{ExtendedItem, Reader as EtlReader};
use chronosym_events::{EventSchema, RawEvent};

use self::line::Lines;
use self::place::Owners;
use crate::args::{EventFilters, EventFormat, Events, Symbols};
use crate::input::{self, Rereadable};
use crate::{absent, load, output, progress};

pub fn run(args: &Events) -> Result<()> {
    let traces = &args.input.traces;
    let processes = &args.filters.processes;
    absent::refuse_empty_span(processes)?;
    let needs_processes =
        processes.process.is_some() || processes.pid.is_some_and(|(_, at)| at.is_some());
    let kept;
    let (paths, wanted) = if needs_processes {
        kept = Rereadable::new(traces)?;
        (
            kept.paths(),
            Wanted::after_a_pass(kept.paths(), &args.filters)?,
        )
    } else {
        (traces.as_slice(), Wanted::new(&args.filters))
    };
    let path = args.input.output.as_deref();
    if output::is_terminal(path) {
        progress::end();
    }
    let lines = Lines::new(
        args.format,
        args.filters.event.clone(),
        match args.format {
            EventFormat::Text => output::open_text(path),
            EventFormat::Jsonl => output::open(path),
        },
    );
    let mut sink = Sink { wanted, lines };
    let recording = input::open(paths, &Symbols::default())?;
    let (name, damage) = (recording.names().join(", "), recording.layer_diagnostics());
    let format = recording.format();
    let found = match recording.into_bytes() {
        RecordingBytes::Nettrace(source) => nettrace(source, &name, &mut sink)?,
        RecordingBytes::Etl(reader) => etl(*reader, &mut sink)?,
        RecordingBytes::Perf(source) => perf(source, &name, &mut sink)?,
        RecordingBytes::PerfScript(source) => script(source, &mut sink)?,
        RecordingBytes::Ctf(reader) => {
            if format == Format::Joined {
                progress::note(ONLY_CTF);
            }
            ctf(*reader, &mut sink)?
        }
        RecordingBytes::Several => {
            bail!("events are shown of recordings one by one, and not of jitdumps: {name}")
        }
        _ => bail!("events of {name} cannot be shown"),
    };
    progress::notes(&damage.take());
    progress::notes(&found.list);
    sink.wanted.check()?;
    sink.lines.check()?;
    progress::notes(&sink.lines.finish()?);
    if sink.lines.is_empty() {
        progress::nothing_passes("event");
    }
    Ok(())
}

const ONLY_CTF: &str =
    "of these recordings only the events of LTTng are shown; `chronosym stacks` has the samples";

/// Where records go that pass.
struct Sink {
    wanted: Wanted,
    lines: Lines,
}

impl Sink {
    /// Takes a record. False if no later one can pass.
    fn take(
        &mut self,
        raw: &RawEvent<'_>,
        schema: &Arc<EventSchema>,
        stack: &[u64],
    ) -> std::io::Result<bool> {
        if self.wanted.ends_before(raw.time_ns) {
            return Ok(false);
        }
        if self.wanted.has(raw) {
            self.lines.push(raw, schema, stack)?;
        }
        Ok(true)
    }
}

/// An id that is asked for, or none; whether a record was of it, and what ids others had.
struct Asked {
    id: Option<u64>,
    seen: bool,
    others: BTreeSet<u64>,
}

impl Asked {
    fn new(id: Option<u64>) -> Self {
        Asked {
            id,
            seen: false,
            others: BTreeSet::new(),
        }
    }

    /// Whether what has these ids is wanted.
    fn has(&mut self, ids: &[u64]) -> bool {
        let Some(id) = self.id else {
            return true;
        };
        let is_it = ids.contains(&id);
        self.seen |= is_it;
        if !self.seen {
            self.others.extend(ids);
        }
        is_it
    }

    fn is_missing(&self) -> bool {
        self.id.is_some() && !self.seen
    }
}

/// Which records are wanted.
struct Wanted {
    pid: Asked,
    tid: Asked,
    from_ns: u64,
    to_ns: Option<u64>,
    /// The processes of the trace and which of them are meant, where that takes more than a pid.
    processes: Option<(Arc<Timeline>, chronosym::Filter)>,
    /// Whose the threads are, so that records which name no process find theirs.
    owners: Owners,
}

impl Wanted {
    fn new(filters: &EventFilters) -> Self {
        let processes = &filters.processes;
        Wanted {
            pid: Asked::new(processes.pid.map(|(pid, _)| pid.into())),
            tid: Asked::new(filters.tid),
            from_ns: processes.from.unwrap_or(0),
            to_ns: processes.to,
            processes: None,
            owners: Owners::default(),
        }
    }

    fn after_a_pass(paths: &[std::path::PathBuf], filters: &EventFilters) -> Result<Self> {
        let loaded = load::load(paths, SampleSelection::None, &Symbols::default())?;
        let filter = load::filter(&filters.processes, &loaded.timeline)?;
        Ok(Wanted {
            processes: Some((loaded.timeline, filter)),
            ..Wanted::new(filters)
        })
    }

    /// Whether it matters which process or thread a record is of.
    fn asks_where(&self) -> bool {
        self.pid.id.is_some() || self.tid.id.is_some() || self.processes.is_some()
    }

    fn has(&mut self, raw: &RawEvent<'_>) -> bool {
        let time = raw.time_ns;
        let in_time = time >= self.from_ns && self.to_ns.is_none_or(|to| time < to);
        if !self.asks_where() {
            return in_time;
        }
        let place = self.owners.place(raw);
        let is_it = self.pid.has(&place.processes) && self.tid.has(&place.threads);
        is_it
            && in_time
            && self.processes.as_ref().is_none_or(|(timeline, filter)| {
                let mut pids = place
                    .processes
                    .iter()
                    .filter_map(|&pid| pid.try_into().ok());
                let process = |pid| timeline.process_of(pid, time);
                pids.any(|pid| process(pid).is_some_and(|p| filter.has_process(timeline, p)))
            })
    }

    /// Whether nothing after this time can pass.
    fn ends_before(&self, time_ns: u64) -> bool {
        let looks_on = self.pid.is_missing() || self.tid.is_missing();
        self.to_ns.is_some_and(|to| time_ns >= to) && !looks_on
    }

    /// An id that no record has is an error.
    fn check(&self) -> Result<()> {
        // Of a pid at a time the trace itself was asked.
        let (what, asked) = if self.pid.is_missing() && self.processes.is_none() {
            ("process", &self.pid)
        } else if self.tid.is_missing() && !self.pid.is_missing() {
            ("thread", &self.tid)
        } else {
            return Ok(());
        };
        let id = asked.id.unwrap_or_default();
        if asked.others.is_empty() {
            bail!("no record of the trace is of {what} id {id}");
        }
        let others = absent::some(asked.others.iter().map(u64::to_string));
        bail!("no record of the trace is of {what} id {id}; it has records of {others}")
    }
}

/// Reads until nothing more can pass; returns what was damaged or lost as far as that.
fn nettrace(source: ByteStream, name: &str, sink: &mut Sink) -> Result<Diagnostics> {
    use chronosym::source::nettrace::{Schemas, raw_event};
    let in_trace = || name.to_owned();
    let mut reader =
        chronosym_nettrace::Reader::new(source, Default::default()).with_context(in_trace)?;
    let (mut schemas, mut stack) = (Schemas::default(), Vec::new());
    'trace: while let Some(region) = reader.next_region().with_context(in_trace)? {
        for (position, record) in region.in_time_order().enumerate() {
            let schema = schemas.of(region.event_types(), &record);
            let mut raw = raw_event(region.header(), &record, schema);
            // Zero stands for "not said" in V6 files.
            raw.thread_id = raw.thread_id.filter(|&tid| tid != 0);
            stack.clear();
            stack.extend(
                record
                    .stack
                    .into_iter()
                    .flat_map(|row| region.stack(row).iter()),
            );
            match sink.take(&raw, schema, &stack)? {
                true => {}
                false if position == 0 => break 'trace,
                // A time that makes no sense says nothing of the regions to come.
                false => break,
            }
        }
    }
    Ok(source::nettrace::diagnostics(reader.diagnostics()))
}

/// As [`nettrace`].
fn perf(source: FileBytes, name: &str, sink: &mut Sink) -> Result<Diagnostics> {
    use chronosym::source::perf::{Schemas, addresses, raw_event};
    use chronosym_perf::{Event, Options, Reader};
    let in_trace = || name.to_owned();
    let mut reader = Reader::open(source, Options::default()).with_context(in_trace)?;
    let (mut schemas, mut stack) = (Schemas::default(), Vec::new());
    let (mut began, mut attrs) = (None, reader.attrs().to_vec());
    loop {
        // Pipes tell of events while they are read: before the next record it is known which one it is of.
        reader.has_next().with_context(in_trace)?;
        if attrs.len() < reader.attrs().len() {
            attrs = reader.attrs().to_vec();
        }
        let Some(record) = reader.next_record().with_context(in_trace)? else {
            break;
        };
        let time = record
            .time_ns
            .map_or(0, |ns| ns.saturating_sub(*began.get_or_insert(ns)));
        let schema = schemas.of(&record, &attrs);
        stack.clear();
        if let Event::Sample(sample) = &record.event {
            addresses(&record, sample, &mut stack);
        }
        let raw = raw_event(&record, time, schema);
        if !sink.take(&raw, schema, &stack)? {
            break;
        }
    }
    Ok(source::perf::diagnostics(reader.diagnostics()))
}

/// As [`nettrace`].
fn etl(mut reader: EtlReader<FileBytes>, sink: &mut Sink) -> Result<Diagnostics> {
    use chronosym::source::etl::{Schemas, raw_event};
    let (mut schemas, mut stack) = (Schemas::default(), Vec::new());
    // What describes events may stand anywhere in the trace.
    schemas.observe(&mut reader);
    if sink.wanted.asks_where() {
        // So may what says whose a thread is.
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    let schema = schemas.of(&record);
                    sink.wanted.owners.observe(&raw_event(&record, &schema));
                }
                Ok(None) => break,
                Err(_) => {}
            }
        }
        reader.rewind();
    }
    loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            // What could not be read is among the gaps.
            Err(_) => continue,
        };
        let schema = schemas.of(&record);
        stack.clear();
        let found = record.extended_items().find_map(|item| match item {
            ExtendedItem::Stack(stack) => Some(stack.addresses),
            _ => None,
        });
        stack.extend(found.iter().flat_map(|addresses| addresses.iter()));
        if !sink.take(&raw_event(&record, &schema), &schema, &stack)? {
            break;
        }
    }
    let mut diagnostics = source::etl::diagnostics(reader.diagnostics());
    let unreadable = source::etl::unreadable_descriptions(&schemas);
    diagnostics.list.extend(unreadable);
    Ok(diagnostics)
}

fn ctf(mut reader: CtfReader<ByteStream>, sink: &mut Sink) -> Result<Diagnostics> {
    let began_ns = reader.next_time_ns().unwrap_or_default();
    let mut events = source::ctf::Events::of(reader.traces());
    while let Some(event) = reader.next_event()? {
        let time_ns = event.time_ns - began_ns;
        let (raw, schema) = events.raw_event(&event, time_ns);
        if !sink.take(&raw, schema, &[])? {
            break;
        }
    }
    Ok(source::ctf::diagnostics(reader.diagnostics()))
}

/// As [`nettrace`]; addresses are as perf printed them.
fn script(source: ByteStream, sink: &mut Sink) -> Result<Diagnostics> {
    use chronosym::source::script::{Schemas, raw_event};
    let mut reader = chronosym_perf::script::Reader::new(source, Default::default())?;
    let (mut schemas, mut stack, mut began) = (Schemas::default(), Vec::new(), None);
    while let Some(sample) = reader.next_sample()? {
        let time = sample.time_ns;
        let time = time.saturating_sub(*began.get_or_insert(time));
        stack.clear();
        stack.extend(sample.frames().map(|frame| frame.address));
        let schema = schemas.of(&sample);
        let raw = raw_event(&sample, time, schema);
        if !sink.take(&raw, schema, &stack)? {
            break;
        }
    }
    Ok(source::script::diagnostics(reader.diagnostics()))
}
