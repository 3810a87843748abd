//! `chronosym events`: every record in time order, while the trace is read.
//!
//! Only event types are stored, so memory does not grow with the trace. `--process` and `--pid
//! PID@T` need a first pass to find the processes.

mod chunk;
mod formatters;
mod json_line;
mod lines;
mod owners;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chronosym::open::Format;
use chronosym::source::{EventStream, StreamEvent};
use chronosym::{SampleSelection, Timeline};
use chronosym_events::RawEvent;

use self::lines::Lines;
use self::owners::Owners;
use crate::args::{EventFilters, EventFormat, Events, Symbols};
use crate::input::{self, Rereadable};
use crate::{absent, emptied, load, output, progress};

pub fn run(args: &Events) -> Result<()> {
    let traces = &args.input.traces;
    let processes = &args.filters.processes;
    absent::refuse_empty_span(processes)?;
    let needs_processes =
        processes.process.is_some() || processes.pid.is_some_and(|(_, at)| at.is_some());
    let kept;
    let (paths, filter) = if needs_processes {
        kept = Rereadable::new(traces)?;
        (
            kept.paths(),
            RecordFilter::after_a_pass(kept.paths(), &args.filters)?,
        )
    } else {
        (traces.as_slice(), RecordFilter::new(&args.filters))
    };
    if output::is_terminal(args.input.output.as_deref()) {
        progress::end();
    }
    // Which other events there are, and of which processes, only records of all types tell.
    let selects = !args.filters.event.is_empty()
        && !filter.needs_ids()
        && paths.iter().all(|path| path.is_file());
    let mut notes = Vec::new();
    let mut sink = read(args, paths, filter, selects, &mut notes)?;
    if selects && sink.lines.has_none() {
        notes.clear();
        sink = read(
            args,
            paths,
            RecordFilter::new(&args.filters),
            false,
            &mut notes,
        )?;
    }
    progress::notes(&notes);
    sink.filter.check()?;
    // With other filters, the lines have not seen every event.
    if emptied::of_events(&args.filters).len() == args.filters.event.len() {
        sink.lines.check()?;
    }
    progress::notes(&sink.lines.finish()?);
    if sink.lines.is_empty() {
        let filters = emptied::by(&emptied::of_events(&args.filters));
        progress::hint(&format!(
            "no event{filters}; `chronosym info TRACE` shows what the trace contains"
        ));
    }
    Ok(())
}

/// Prints the records that pass a filter; with `selects` the reader skips events of other types.
fn read(
    args: &Events,
    paths: &[PathBuf],
    filter: RecordFilter,
    selects: bool,
    notes: &mut Vec<String>,
) -> Result<Sink> {
    let path = args.input.output.as_deref();
    let selectors = &args.filters.event;
    let recording = input::open(paths, &Symbols::default())?;
    let out = match args.format {
        EventFormat::Text => output::open_text(path),
        EventFormat::Jsonl => output::open(path),
    };
    let lines = Lines::new(
        args.format,
        selectors.clone(),
        args.max_lines,
        Box::new(output::Limited::new(out, recording.budget())),
    );
    let mut sink = Sink { filter, lines };
    let (name, damage) = (recording.names().join(", "), recording.layer_diagnostics());
    let format = recording.format();
    if format == Format::Joined && recording.event_format() == Some(Format::Ctf) {
        notes.push(ONLY_CTF.to_owned());
    }
    let Some(mut events) = recording.into_events()? else {
        bail!("`events` reads recordings one by one, and no jitdumps: {name}")
    };
    if selects {
        let selectors = selectors.clone();
        events.select(Box::new(move |schema| {
            selectors.iter().any(|selector| selector.matches(schema))
        }));
    }
    let end = read_events(&mut *events, &name, &mut sink);
    // Those before an error too.
    sink.lines.write_all()?;
    end?;
    notes.extend(damage.take().iter().map(ToString::to_string));
    notes.extend(events.diagnostics().list.iter().map(ToString::to_string));
    Ok(sink)
}

const ONLY_CTF: &str =
    "only the LTTng events of these recordings are shown; `chronosym stacks` shows the samples";

/// The output of selected records.
struct Sink {
    filter: RecordFilter,
    lines: Lines,
}

impl Sink {
    fn take(&mut self, it: &StreamEvent<'_>) -> std::io::Result<()> {
        // A later record may have an earlier time.
        let is_past = self.filter.ends_before(it.event.time_ns);
        if !is_past && self.filter.has(&it.event) {
            self.lines.push(&it.event, it.schema, it.stack)?;
        }
        Ok(())
    }
}

/// A filter by id: whether a record matched, and which ids others have.
struct IdFilter {
    id: Option<u64>,
    seen: bool,
    others: BTreeSet<u64>,
}

impl IdFilter {
    fn new(id: Option<u64>) -> Self {
        IdFilter {
            id,
            seen: false,
            others: BTreeSet::new(),
        }
    }

    /// Returns whether one of the ids matches.
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

/// The filter of records.
struct RecordFilter {
    pid: IdFilter,
    tid: IdFilter,
    from_ns: u64,
    to_ns: Option<u64>,
    /// The timeline and its process filter, if a pid is not sufficient.
    processes: Option<(Arc<Timeline>, chronosym::Filter)>,
    /// Owners of threads, for records that name no process.
    owners: Owners,
}

impl RecordFilter {
    fn new(filters: &EventFilters) -> Self {
        let processes = &filters.processes;
        RecordFilter {
            pid: IdFilter::new(processes.pid.map(|(pid, _)| pid.into())),
            tid: IdFilter::new(filters.tid),
            from_ns: processes.from.unwrap_or(0),
            to_ns: processes.to,
            processes: None,
            owners: Owners::default(),
        }
    }

    fn after_a_pass(paths: &[PathBuf], filters: &EventFilters) -> Result<Self> {
        let loaded = load::load(paths, SampleSelection::None, &Symbols::default())?;
        let filter = load::filter(&filters.processes, &loaded.timeline)?;
        Ok(RecordFilter {
            processes: Some((loaded.timeline.clone(), filter)),
            ..RecordFilter::new(filters)
        })
    }

    /// Returns whether the filter depends on process or thread.
    fn needs_ids(&self) -> bool {
        self.pid.id.is_some() || self.tid.id.is_some() || self.processes.is_some()
    }

    fn has(&mut self, raw: &RawEvent<'_>) -> bool {
        let time = raw.time_ns;
        let in_time = time >= self.from_ns && self.to_ns.is_none_or(|to| time < to);
        if !self.needs_ids() {
            return in_time;
        }
        let ids = self.owners.ids(raw);
        let is_it = self.pid.has(&ids.processes) && self.tid.has(&ids.threads);
        is_it
            && in_time
            && self.processes.as_ref().is_none_or(|(timeline, filter)| {
                let mut pids = ids.processes.iter().filter_map(|&pid| pid.try_into().ok());
                let process = |pid| timeline.process_of(pid, time);
                pids.any(|pid| process(pid).is_some_and(|p| filter.has_process(timeline, p)))
            })
    }

    /// Returns whether no record after this time can match.
    fn ends_before(&self, time_ns: u64) -> bool {
        let looks_on = self.pid.is_missing() || self.tid.is_missing();
        self.to_ns.is_some_and(|to| time_ns >= to) && !looks_on
    }

    /// Fails if no record has the selected id.
    fn check(&self) -> Result<()> {
        // A pid at a time was checked against the timeline.
        let (what, filter) = if self.pid.is_missing() && self.processes.is_none() {
            ("process", &self.pid)
        } else if self.tid.is_missing() && !self.pid.is_missing() {
            ("thread", &self.tid)
        } else {
            return Ok(());
        };
        let id = filter.id.unwrap_or_default();
        if filter.others.is_empty() {
            bail!("the trace has no records of {what} id {id}");
        }
        let others = absent::some(filter.others.iter().map(u64::to_string));
        bail!("the trace has no records of {what} id {id}; it has records of {others}")
    }
}

/// Reads until no further record can match.
fn read_events(events: &mut dyn EventStream, name: &str, sink: &mut Sink) -> Result<()> {
    let in_trace = || name.to_owned();
    // The owner of a thread may be stated anywhere in the trace.
    if sink.filter.needs_ids() && events.rewind() {
        while let Some(event) = events.next_event().with_context(in_trace)? {
            sink.filter.owners.observe(&event.event);
        }
        events.rewind();
    }
    while let Some(event) = events.next_event().with_context(in_trace)? {
        if sink.filter.ends_before(event.watermark_ns) {
            break;
        }
        sink.take(&event)?;
        if sink.lines.is_full() {
            break;
        }
    }
    Ok(())
}
