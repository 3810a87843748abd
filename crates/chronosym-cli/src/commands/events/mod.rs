//! `chronosym events`: every record in the order of time, as it is read.
//!
//! Nothing is kept but the event types, so that memory does not follow the trace. Only `--process` and `--pid PID@T` need to
//! know the processes first, which takes a pass of its own.

mod line;
mod place;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chronosym::open::Format;
use chronosym::source::{EventStream, StreamEvent};
use chronosym::{SampleSelection, Timeline};
use chronosym_events::RawEvent;

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
    if format == Format::Joined && recording.event_format() == Some(Format::Ctf) {
        progress::note(ONLY_CTF);
    }
    let Some(mut events) = recording.into_events()? else {
        bail!("events are shown of recordings one by one, and not of jitdumps: {name}")
    };
    read(&mut *events, &name, &mut sink)?;
    progress::notes(&damage.take());
    progress::notes(&events.diagnostics().list);
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
    fn take(&mut self, it: &StreamEvent<'_>) -> std::io::Result<()> {
        // A later event may be earlier, and pass.
        let is_past = self.wanted.ends_before(it.event.time_ns);
        if !is_past && self.wanted.has(&it.event) {
            self.lines.push(&it.event, it.schema, it.stack)?;
        }
        Ok(())
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

/// Reads until nothing more can pass.
fn read(events: &mut dyn EventStream, name: &str, sink: &mut Sink) -> Result<()> {
    let in_trace = || name.to_owned();
    // Whose a thread is may be stated anywhere in the trace.
    if sink.wanted.asks_where() && events.rewind() {
        while let Some(event) = events.next_event().with_context(in_trace)? {
            sink.wanted.owners.observe(&event.event);
        }
        events.rewind();
    }
    while let Some(event) = events.next_event().with_context(in_trace)? {
        if sink.wanted.ends_before(event.watermark_ns) {
            break;
        }
        sink.take(&event)?;
    }
    Ok(())
}
