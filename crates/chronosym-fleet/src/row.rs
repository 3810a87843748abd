//! Samples as rows of tables.

use arrow_array::ArrayRef;
use arrow_schema::Field;
use chronosym_core::{Activity, EventTypeInfo, ProcessIndex, SampleKind, ThreadIndex, Weight};
use chronosym_types::hash::HashMap;

use crate::columns::{TextNumber, Texts, number, numbers, some_number, some_numbers, text};
use crate::error::Error;
use crate::frames::Stacks;
use crate::listings::{Clock, Owner};
use crate::trace::Trace;

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

/// What a sample shows, except for its time and weight. Samples with equal groups can be summed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Group {
    pid: Option<i64>,
    start: Option<i64>,
    process: TextNumber,
    pub tid: i64,
    thread: TextNumber,
    event: TextNumber,
    kind: i32,
    activity: i32,
    unit: TextNumber,
    pub stack: Option<i64>,
}

/// A sample.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub group: Group,
    pub time: i64,
    pub weight: Option<i64>,
}

/// The texts of all rows. Arrow's files need all of them before the first row.
pub struct RowTexts<'o> {
    owner: &'o Owner<'o>,
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

impl<'o> RowTexts<'o> {
    pub fn of(trace: &Trace<'_>, owner: &'o Owner<'o>) -> Self {
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
            owner,
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

    /// The fields of [`groups`](Self::groups): of threads, and event, kind, activity and unit.
    pub fn fields() -> (Vec<Field>, [Field; 4]) {
        let threads = vec![
            text("trace"),
            text("host"),
            text("boot"),
            some_number("pid"),
            some_number("start"),
            text("process"),
            number("tid"),
            text("thread"),
        ];
        let samples = ["event", "kind", "activity", "unit"].map(text);
        (threads, samples)
    }

    /// The columns of groups, in the order of [`fields`](Self::fields).
    pub fn groups(&mut self, groups: &[Group]) -> (Vec<ArrayRef>, [ArrayRef; 4]) {
        let count = groups.len();
        let (host, boot) = (self.owner.name(), self.owner.boot());
        let (host, boot) = (self.host.some(host), self.boot.some(boot));
        let all = |of: fn(&Group) -> TextNumber| groups.iter().map(of).collect::<Vec<_>>();
        let optional =
            |of: fn(&Group) -> Option<i64>| some_numbers(groups.iter().map(of).collect());
        let threads = vec![
            self.trace.column(vec![Some(0); count]),
            self.host.column(vec![host; count]),
            self.boot.column(vec![boot; count]),
            optional(|it| it.pid),
            optional(|it| it.start),
            self.processes.column(all(|it| it.process)),
            numbers(groups.iter().map(|it| it.tid).collect()),
            self.threads.column(all(|it| it.thread)),
        ];
        let samples = [
            self.events.column(all(|it| it.event)),
            self.kinds.column(all(|it| Some(it.kind))),
            self.activities.column(all(|it| Some(it.activity))),
            self.units.column(all(|it| it.unit)),
        ];
        (threads, samples)
    }

    /// Calls `each` with every sample of a recording, in time order, and returns their number.
    pub fn each(
        &mut self,
        trace: &Trace<'_>,
        stacks: &mut Stacks,
        mut each: impl FnMut(&mut Self, &Stacks, Row) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let timeline = trace.timeline;
        let clock = Clock::of(timeline);
        let event_numbers: Vec<i32> = timeline
            .event_types()
            .iter()
            .map(|it| self.events.number(&it.label()))
            .collect();
        let mut ids: HashMap<ThreadIndex, Ids> = HashMap::default();
        let mut read = Ok(0);
        timeline.for_each_weighed_sample(&trace.filter, |sample| {
            let Ok(count) = &mut read else { return };
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
                    process: self.processes.some(process.and_then(|it| it.name)),
                    tid: view.map_or(0, |it| it.tid as i64),
                }
            });
            let thread = timeline.thread_name(class.thread, sample.time_ns);
            let weight = weight(sample.weight);
            let group = Group {
                pid: own.pid,
                start: own.start,
                process: own.process,
                tid: own.tid,
                thread: self.threads.some(thread),
                event: event_numbers.get(class.event.index()).copied(),
                kind: class.kind as i32,
                activity: timeline.activity(&sample).activity as i32,
                unit: weight.map(|it| it.1),
                stack: stacks.id(class, sample.time_ns),
            };
            let row = Row {
                group,
                time: clock.unix(sample.time_ns),
                weight: weight.map(|it| it.0),
            };
            if let Err(error) = each(self, stacks, row) {
                read = Err(error);
            }
        });
        read
    }
}
