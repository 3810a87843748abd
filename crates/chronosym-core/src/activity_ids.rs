//! The activity ids of events: the requests, and other units of work, that threads carry.
//!
//! A thread carries an activity from an event that states its id to the next event of the thread, if
//! that states it too, and a thread that resumes a task carries the task's activity until then.
//! Between other events it may have carried any.

use chronosym_events::EventSchema;
use chronosym_types::Guid;
use chronosym_types::hash::HashMap;

use crate::ids::{ActivityIdIndex, EventTypeId, ProcessIndex, ThreadIndex};
use crate::task_activities::{TaskActivities, TaskStep};

/// The activity ids of an event.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventActivity {
    /// The activity in which it was written.
    pub id: Option<Guid>,
    /// The activity from which that one originates.
    pub related: Option<Guid>,
}

/// An activity that events state by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActivityId {
    /// The id.
    pub id: Guid,
    /// The type of the event that started it, unless that is missing.
    pub started_by: Option<EventTypeId>,
}

/// What an event does to the activity of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActivityPhase {
    None,
    Start,
    Stop,
}

impl ActivityPhase {
    /// Returns what events of a type do. Those of the runtime's own providers start nothing: they
    /// state the activity of their thread.
    pub fn of(schema: &EventSchema) -> Self {
        const START: u8 = 1;
        const STOP: u8 = 2;
        let is_runtime = schema
            .provider_name()
            .starts_with("Microsoft-Windows-DotNETRuntime");
        // Before .NET 5, EventPipe states no opcodes.
        let name = schema.name();
        match schema.opcode() {
            _ if is_runtime => ActivityPhase::None,
            START => ActivityPhase::Start,
            STOP => ActivityPhase::Stop,
            0 if name.ends_with("Start") => ActivityPhase::Start,
            0 if name.ends_with("Stop") => ActivityPhase::Stop,
            _ => ActivityPhase::None,
        }
    }

    /// Returns the common part of the names of the events that start and stop an activity.
    pub fn subject(schema: &EventSchema) -> String {
        let name = schema.name();
        let subject = name.strip_suffix("Start").or(name.strip_suffix("Stop"));
        format!("{}/{}", schema.provider_name(), subject.unwrap_or(&name))
    }
}

/// A time in which a thread carried an activity; both ends are times of events.
#[derive(Clone, Copy, Debug)]
struct Span {
    thread: ThreadIndex,
    activity: ActivityIdIndex,
    from_ns: u64,
    to_ns: u64,
}

/// The activity of a thread after its last event.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    activity: Option<ActivityIdIndex>,
    since_ns: u64,
    /// The span that ends with the last event.
    span: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    view: ActivityId,
    parent: Option<ActivityIdIndex>,
}

/// The activities of threads, by events in the order of each thread.
#[derive(Debug, Default)]
pub(crate) struct ActivityIds {
    known: Vec<Known>,
    index: HashMap<Guid, ActivityIdIndex>,
    threads: HashMap<ThreadIndex, Carried>,
    spans: Vec<Span>,
    tasks: TaskActivities,
}

impl ActivityIds {
    /// Takes the next event of a thread, and what it states about tasks; `is_same` returns whether
    /// an event type starts what this one stops.
    pub fn event(
        &mut self,
        (process, thread, time_ns): (ProcessIndex, ThreadIndex, u64),
        (event_type, phase, step): (EventTypeId, ActivityPhase, Option<TaskStep>),
        activity: EventActivity,
        is_same: impl FnOnce(EventTypeId) -> bool,
    ) {
        let own = activity.id.map(|id| self.index_of(id));
        let related = activity.related.map(|id| self.index_of(id));
        let (mut before, mut after) = (own, own);
        if let Some(own) = own {
            let known = &mut self.known[own.index()];
            match (phase, known.view.started_by) {
                (ActivityPhase::Start, None) if related != Some(own) => {
                    known.view.started_by = Some(event_type);
                    known.parent = related;
                    before = related;
                }
                (ActivityPhase::Stop, Some(by)) if is_same(by) => after = known.parent,
                _ => {}
            }
        }
        self.tasks
            .event((process, thread, time_ns), step, before, after);
        let carried = self.threads.get(&thread).copied().unwrap_or_default();
        let continues =
            before.filter(|_| before == carried.activity && carried.since_ns <= time_ns);
        let mut span = None;
        if let Some(activity) = continues {
            let at = carried
                .span
                .unwrap_or_else(|| self.push(thread, activity, carried.since_ns));
            self.spans[at].to_ns = time_ns;
            span = Some(at);
        }
        if let Some(own) = own.filter(|_| continues != own) {
            span = Some(self.push(thread, own, time_ns));
        }
        // The parent of a stopped activity comes after the event.
        let stops = after != own;
        let carried = Carried {
            activity: after,
            since_ns: time_ns.saturating_add(stops.into()),
            span: span.filter(|_| !stops),
        };
        self.threads.insert(thread, carried);
    }

    fn push(&mut self, thread: ThreadIndex, activity: ActivityIdIndex, from_ns: u64) -> usize {
        self.spans.push(Span {
            thread,
            activity,
            from_ns,
            to_ns: from_ns,
        });
        self.spans.len() - 1
    }

    fn index_of(&mut self, id: Guid) -> ActivityIdIndex {
        let next = ActivityIdIndex(self.known.len() as u32);
        *self.index.entry(id).or_insert_with(|| {
            let view = ActivityId {
                id,
                started_by: None,
            };
            self.known.push(Known { view, parent: None });
            next
        })
    }

    /// Ends the events: sorts for [`ActivityIds::at`].
    pub fn finish(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        self.spans.extend(tasks.finish().map(|of| Span {
            thread: of.thread,
            activity: of.activity,
            from_ns: of.from_ns,
            to_ns: of.to_ns,
        }));
        // Stable: of spans that start at one time, the last one lasts.
        self.spans.sort_by_key(|span| (span.thread, span.from_ns));
        (self.index, self.threads) = Default::default();
    }

    /// Returns the activity that a thread carried at a time.
    pub fn at(&self, thread: ThreadIndex, time_ns: u64) -> Option<ActivityIdIndex> {
        let key = (thread, time_ns);
        let next = (self.spans).partition_point(|span| (span.thread, span.from_ns) <= key);
        let span = self.spans.get(next.checked_sub(1)?)?;
        (span.thread == thread && time_ns <= span.to_ns).then_some(span.activity)
    }

    pub fn get(&self, activity: ActivityIdIndex) -> Option<ActivityId> {
        Some(self.known.get(activity.index())?.view)
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Bytes of the spans and ids.
    pub fn memory_bytes(&self) -> usize {
        const ENTRY: usize = 40;
        let known = self.known.len() * (size_of::<Known>() + ENTRY);
        self.spans.len() * size_of::<Span>()
            + known
            + self.threads.len() * ENTRY
            + self.tasks.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread's events: time, phase, id and related id (0 for none), and what they start or stop.
    type Row = (u64, ActivityPhase, u8, u8, u32);

    fn at(rows: &[Row], times: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let guid = |id: u8| (id > 0).then_some(Guid([id; 16]));
        let mut all = ActivityIds::default();
        for &(time_ns, phase, id, related, subject) in rows {
            let activity = EventActivity {
                id: guid(id),
                related: guid(related),
            };
            let event = (EventTypeId(subject), phase, None);
            let is_same = |by: EventTypeId| by.0 == subject;
            let at = (ProcessIndex(0), ThreadIndex(3), time_ns);
            all.event(at, event, activity, is_same);
        }
        all.finish();
        let id = |activity| all.get(activity).map_or(0, |it| it.id.0[0]);
        let times = times.into_iter();
        times
            .map(|time| all.at(ThreadIndex(3), time).map_or(0, id))
            .collect()
    }

    use ActivityPhase::{None as Other, Start, Stop};

    #[test]
    fn a_thread_carries_what_both_neighbouring_events_state() {
        let rows = [
            (10, Other, 1, 0, 0),
            (20, Other, 1, 0, 0),
            (30, Other, 2, 0, 0),
            (40, Other, 0, 0, 0),
            (50, Other, 2, 0, 0),
        ];
        let found = at(&rows, [9, 10, 15, 20, 25, 30, 35, 45, 50, 55]);
        assert_eq!(found, [0, 1, 1, 1, 0, 2, 0, 0, 2, 0]);
    }

    #[test]
    fn starts_and_stops_nest() {
        let rows = [
            (10, Start, 1, 0, 7),
            (20, Start, 2, 1, 8),
            // It starts nothing: its id is started already.
            (25, Start, 2, 2, 9),
            (26, Stop, 2, 0, 9),
            (30, Stop, 2, 0, 8),
            (40, Other, 1, 0, 0),
            (50, Stop, 1, 0, 7),
            (60, Other, 1, 0, 0),
        ];
        let found = at(&rows, [15, 20, 22, 28, 30, 35, 45, 50, 55, 60]);
        assert_eq!(found, [1, 2, 2, 2, 2, 1, 1, 1, 0, 1]);
    }
}
