//! The table `samples`, in time order.

use std::sync::Arc;

use arrow_array::Int64Array;
use chronosym_core::{Activity, EventTypeInfo, ProcessIndex, SampleKind, ThreadIndex, Weight};
use chronosym_types::hash::HashMap;

use crate::columns::{TextNumber, Texts, number, numbers, some_number, some_numbers, text};
use crate::error::Error;
use crate::frames::Stacks;
use crate::listings::{Clock, Owner};
use crate::table::{Layout, ROWS, Table};
use crate::trace::Trace;

pub fn layout() -> Layout {
    Layout {
        name: "samples",
        fields: vec![
            text("trace"),
            text("host"),
            text("boot"),
            some_number("pid"),
            some_number("start"),
            text("process"),
            number("tid"),
            text("thread"),
            number("time"),
            text("event"),
            text("kind"),
            text("activity"),
            some_number("weight"),
            text("unit"),
            some_number("stack_id"),
        ],
        sorted_by: Some("time"),
        ids: &[],
        varying: &["time", "weight"],
    }
}

/// The unit of a weight.
const UNITS: [&str; 3] = ["ns", "bytes", "events"];

/// Returns a weight and the number of its unit; one occurrence is an event.
fn weight(weight: Weight) -> Option<(i64, i32)> {
    let (weight, unit) = match weight {
        Weight::Ns(ns) => (ns, 0),
        Weight::Bytes(bytes) => (bytes, 1),
        Weight::Count(count) => (count, 2),
        Weight::One => (1, 2),
        _ => return None,
    };
    Some((i64::try_from(weight).unwrap_or(i64::MAX), unit))
}

/// The process and thread of samples.
#[derive(Clone, Copy)]
struct Ids {
    pid: Option<i64>,
    start: Option<i64>,
    process: TextNumber,
    tid: i64,
}

/// Rows that are not written yet.
#[derive(Default)]
struct Rows {
    pid: Vec<Option<i64>>,
    start: Vec<Option<i64>>,
    process: Vec<TextNumber>,
    tid: Vec<i64>,
    thread: Vec<TextNumber>,
    time: Vec<i64>,
    event: Vec<TextNumber>,
    kind: Vec<TextNumber>,
    activity: Vec<TextNumber>,
    weight: Vec<Option<i64>>,
    unit: Vec<TextNumber>,
    stack: Vec<Option<i64>>,
}

/// The texts of all rows. Arrow's files need all of them before the first row.
struct RowTexts {
    trace: Texts,
    host: Texts,
    boot: Texts,
    processes: Texts,
    threads: Texts,
    events: Texts,
    kinds: Texts,
    activities: Texts,
    units: Texts,
}

impl RowTexts {
    fn of(trace: &Trace<'_>, owner: &Owner<'_>) -> Self {
        let timeline = trace.timeline;
        let mut threads = Texts::default();
        let mut last = None;
        timeline.for_each_sample(&trace.filter, |class, time_ns| {
            let name = timeline.thread_name(class.thread, time_ns);
            if last != Some((class.thread, name)) {
                threads.some(name);
                last = Some((class.thread, name));
            }
        });
        let labels = timeline.event_types().iter().map(EventTypeInfo::label);
        let labels: Vec<String> = labels.collect();
        let mut processes = Texts::default();
        for process in timeline.processes() {
            processes.some(process.name);
        }
        RowTexts {
            trace: Texts::of([owner.trace]),
            host: Texts::of(owner.name()),
            boot: Texts::of(owner.boot()),
            processes,
            threads,
            events: Texts::of(labels.iter().map(String::as_str)),
            kinds: Texts::of(SampleKind::ALL.map(SampleKind::as_str)),
            activities: Texts::of(Activity::ALL.map(Activity::as_str)),
            units: Texts::of(UNITS),
        }
    }

    /// Writes rows.
    fn write(&mut self, owner: &Owner<'_>, rows: Rows, table: &mut Table) -> Result<(), Error> {
        let count = rows.time.len();
        let (host, boot) = (self.host.some(owner.name()), self.boot.some(owner.boot()));
        table.write(vec![
            self.trace.column(vec![Some(0); count]),
            self.host.column(vec![host; count]),
            self.boot.column(vec![boot; count]),
            some_numbers(rows.pid),
            some_numbers(rows.start),
            self.processes.column(rows.process),
            numbers(rows.tid),
            self.threads.column(rows.thread),
            Arc::new(Int64Array::from(rows.time)),
            self.events.column(rows.event),
            self.kinds.column(rows.kind),
            self.activities.column(rows.activity),
            some_numbers(rows.weight),
            self.units.column(rows.unit),
            some_numbers(rows.stack),
        ])
    }
}

/// Writes the samples of a recording, and returns their number.
pub fn write(
    trace: &Trace<'_>,
    owner: &Owner<'_>,
    stacks: &mut Stacks,
    table: &mut Table,
) -> Result<u64, Error> {
    let timeline = trace.timeline;
    let clock = Clock::of(timeline);
    let mut texts = RowTexts::of(trace, owner);
    let event_numbers: Vec<i32> = timeline
        .event_types()
        .iter()
        .map(|it| texts.events.number(&it.label()))
        .collect();
    let mut ids: HashMap<ThreadIndex, Ids> = HashMap::default();
    let mut rows = Rows::default();
    let mut written = Ok(0);
    timeline.for_each_weighed_sample(&trace.filter, |sample| {
        let Ok(count) = &mut written else { return };
        *count += 1;
        let class = sample.class;
        let own = *ids.entry(class.thread).or_insert_with(|| {
            let view = timeline.thread_view(class.thread);
            let process = view
                .as_ref()
                .map_or(ProcessIndex::default(), |it| it.process);
            let process = timeline.process_view(process).filter(|_| view.is_some());
            let process = process.as_ref();
            Ids {
                pid: process.and_then(|it| it.pid).map(i64::from),
                start: process.and_then(|it| it.start_ns).map(|ns| clock.unix(ns)),
                process: texts.processes.some(process.and_then(|it| it.name)),
                tid: view.map_or(0, |it| it.tid as i64),
            }
        });
        let thread = timeline.thread_name(class.thread, sample.time_ns);
        let weight = weight(sample.weight);
        rows.pid.push(own.pid);
        rows.start.push(own.start);
        rows.process.push(own.process);
        rows.tid.push(own.tid);
        rows.thread.push(texts.threads.some(thread));
        rows.time.push(clock.unix(sample.time_ns));
        rows.event
            .push(event_numbers.get(class.event.index()).copied());
        rows.kind.push(Some(class.kind as i32));
        rows.activity
            .push(Some(timeline.activity(&sample).activity as i32));
        rows.weight.push(weight.map(|it| it.0));
        rows.unit.push(weight.map(|it| it.1));
        rows.stack.push(stacks.id(class, sample.time_ns));
        if rows.time.len() == ROWS
            && let Err(error) = texts.write(owner, std::mem::take(&mut rows), table)
        {
            written = Err(error);
        }
    });
    let count = written?;
    if !rows.time.is_empty() {
        texts.write(owner, rows, table)?;
    }
    Ok(count)
}
