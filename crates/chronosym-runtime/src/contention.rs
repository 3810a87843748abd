//! Waits for locks.

use chronosym_core::{Filter, ProcessIndex, StackId, ThreadIndex, Timeline};
use chronosym_types::hash::HashMap;

use crate::events::{for_each, passes};
use crate::numbers::ContentionKind;
use crate::report::{Report, id};
use crate::stacks::Stacks;
use crate::unused::Unused;

/// The waits for locks of a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Contention {
    /// In order of their starts.
    pub waits: Vec<Wait>,
    /// Events that could not be used.
    pub unused: Unused,
}

/// A wait for a lock that another thread holds, from ContentionStart to ContentionStop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Wait {
    /// The process.
    pub process: ProcessIndex,
    /// The thread that waits.
    pub waiter: ThreadIndex,
    /// When, ns.
    pub start_ns: u64,
    /// Duration in ns: the one in ContentionStop, otherwise the time between the events.
    pub duration_ns: Option<u64>,
    /// Whether managed code waits.
    pub kind: Option<ContentionKind>,
    /// The runtime's id of the lock (.NET 7 and later).
    pub lock_id: Option<u64>,
    /// The address of the locked object at that time (.NET 7 and later).
    pub object: Option<u64>,
    /// The system's id of the thread that holds the lock (.NET 7 and later).
    pub owner_tid: Option<u64>,
    /// The stack of the thread that waits.
    pub stack: Option<StackId>,
}

impl Contention {
    /// Reads the waits that start within a filter.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let (mut stacks, mut all) = (Stacks::new(timeline), Contention::default());
        let mut open: HashMap<ThreadIndex, usize> = HashMap::default();
        let mut unused = Unused::default();
        let events = Report::Contention.events();
        for_each(timeline, filter, events, &mut unused, |event, unused| {
            if event.id == id::CONTENTION_START {
                let known = |name| event.number(name).filter(|&number| number != 0);
                let before = open.insert(event.thread, all.waits.len());
                unused.without_end += u64::from(before.is_some());
                all.waits.push(Wait {
                    process: event.process,
                    waiter: event.thread,
                    start_ns: event.time_ns,
                    duration_ns: None,
                    kind: event.u32("ContentionFlags").map(ContentionKind),
                    lock_id: known("LockID"),
                    object: known("AssociatedObjectID"),
                    owner_tid: known("LockOwnerThreadID"),
                    stack: stacks.take(event),
                });
                return;
            }
            let Some(wait) = open.remove(&event.thread).map(|at| &mut all.waits[at]) else {
                unused.without_start += 1;
                return;
            };
            let between = event.time_ns.saturating_sub(wait.start_ns);
            // A wait cannot be longer than the time between its events, whatever is stated.
            let stated = event
                .float("DurationNs")
                .filter(|ns| ns.is_finite() && *ns >= 0.0);
            wait.duration_ns = Some(stated.map_or(between, |ns| (ns as u64).min(between)));
        });
        unused.without_end += open.len() as u64;
        all.waits
            .retain(|it| passes(filter, timeline, it.waiter, it.start_ns));
        all.unused = unused;
        all
    }

    /// Returns the time of all waits whose end is recorded, ns.
    pub fn duration_ns(&self) -> u64 {
        let known = self.waits.iter().filter_map(|wait| wait.duration_ns);
        known.fold(0, u64::saturating_add)
    }
}
