//! The thread pool.

use std::collections::VecDeque;

use chronosym_core::{Filter, ProcessIndex, ThreadIndex, Timeline};
use chronosym_types::hash::HashMap;

use crate::events::{RuntimeEvent, for_each, passes};
use crate::numbers::AdjustmentReason;
use crate::percentiles::Percentiles;
use crate::report::{Report, id};
use crate::unused::Unused;

/// The thread pool of a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ThreadPool {
    /// Changes of the number of workers that the pool aims at, in time order.
    pub adjustments: Vec<Adjustment>,
    /// Numbers of active workers, in time order.
    pub workers: Vec<WorkerCount>,
    /// The last limits of workers that the pool stated: minimum, maximum.
    pub limits: Option<(u32, u32)>,
    /// Work items, from ThreadPoolEnqueue to ThreadPoolDequeue, or ThreadPoolEnqueueWork and
    /// ThreadPoolDequeueWork of the class library.
    pub work: QueueLatency,
    /// Completions of I/O, from ThreadPoolIOEnqueue to ThreadPoolIODequeue.
    pub io: QueueLatency,
    /// Events that could not be used.
    pub unused: Unused,
}

/// A change of the number of workers (ThreadPoolWorkerThreadAdjustmentAdjustment).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Adjustment {
    /// The process.
    pub process: ProcessIndex,
    /// When, ns.
    pub time_ns: u64,
    /// Why.
    pub reason: Option<AdjustmentReason>,
    /// The number of workers from there on.
    pub workers: u32,
    /// The number of workers that the process's adjustment before stated.
    pub before: Option<u32>,
    /// Completed work items a second.
    pub throughput: Option<f64>,
}

impl Adjustment {
    /// Returns how many workers were added, if the number before is known and smaller.
    pub fn injected(&self) -> Option<u32> {
        self.workers
            .checked_sub(self.before?)
            .filter(|&added| added > 0)
    }
}

/// The number of workers as of an event of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerCount {
    /// The process.
    pub process: ProcessIndex,
    /// When, ns.
    pub time_ns: u64,
    /// Active workers.
    pub active: u32,
}

/// Waiting times of items in a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueLatency {
    /// Number of items queued.
    pub enqueued: u64,
    /// Number of items taken.
    pub dequeued: u64,
    /// Times between, for items with both events.
    pub latency: Option<Percentiles>,
    /// The items with both events, by the time at which they were taken.
    pub items: Vec<QueuedItem>,
}

/// An item that was queued and taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedItem {
    /// The thread that queued it.
    pub queued_by: ThreadIndex,
    /// When, ns.
    pub queued_ns: u64,
    /// When it was taken, ns.
    pub taken_ns: u64,
}

impl QueuedItem {
    /// Returns how long it waited, ns.
    pub fn waited_ns(&self) -> u64 {
        self.taken_ns.saturating_sub(self.queued_ns)
    }
}

impl ThreadPool {
    /// Reads the events within a filter.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let mut pool = ThreadPool::default();
        let (mut work, mut io) = (Queue::default(), Queue::default());
        let mut before: HashMap<ProcessIndex, u32> = HashMap::default();
        let mut unused = Unused::default();
        let events = Report::ThreadPool.events();
        for_each(timeline, filter, events, &mut unused, |event, unused| {
            let passes = |thread: ThreadIndex, time| passes(filter, timeline, thread, time);
            let is_selected = passes(event.thread, event.time_ns);
            match event.id {
                id::ENQUEUE | id::DEQUEUE => {
                    work.event(
                        event,
                        &["WorkID", "workID"],
                        event.id == id::ENQUEUE,
                        is_selected,
                        unused,
                    );
                }
                id::IO_ENQUEUE | id::IO_DEQUEUE => {
                    let is_start = event.id == id::IO_ENQUEUE;
                    io.event(event, &["NativeOverlapped"], is_start, is_selected, unused);
                }
                id::ADJUSTMENT => {
                    let Some(workers) = event.u32("NewWorkerThreadCount") else {
                        unused.incomplete += 1;
                        return;
                    };
                    let before = before.insert(event.process, workers);
                    if is_selected {
                        pool.adjustments.push(Adjustment {
                            process: event.process,
                            time_ns: event.time_ns,
                            reason: event.u32("Reason").map(AdjustmentReason),
                            workers,
                            before,
                            throughput: event.float("AverageThroughput"),
                        });
                    }
                }
                id::MIN_MAX_THREADS => {
                    let (min, max) = (event.u32("MinWorkerThreads"), event.u32("MaxWorkerThreads"));
                    pool.limits = min.zip(max).or(pool.limits);
                }
                _ => {
                    let Some(active) = event.u32("ActiveWorkerThreadCount") else {
                        unused.incomplete += 1;
                        return;
                    };
                    if is_selected {
                        pool.workers.push(WorkerCount {
                            process: event.process,
                            time_ns: event.time_ns,
                            active,
                        });
                    }
                }
            }
        });
        (pool.work, pool.io) = (work.finish(&mut unused), io.finish(&mut unused));
        pool.unused = unused;
        pool
    }

    /// Returns the largest number of active workers.
    pub fn most_workers(&self) -> Option<u32> {
        self.workers.iter().map(|count| count.active).max()
    }
}

/// Items that wait, by process and id. An id that is queued again before it is taken is another
/// item: the first queued is the first taken.
#[derive(Default)]
struct Queue {
    waiting: HashMap<(ProcessIndex, u64), VecDeque<(ThreadIndex, u64)>>,
    counts: QueueLatency,
}

impl Queue {
    fn event(
        &mut self,
        event: &RuntimeEvent<'_>,
        keys: &[&str],
        is_start: bool,
        is_selected: bool,
        unused: &mut Unused,
    ) {
        let Some(id) = keys.iter().find_map(|key| event.number(key)) else {
            unused.incomplete += 1;
            return;
        };
        let key = (event.process, id);
        if is_start {
            self.counts.enqueued += u64::from(is_selected);
            self.waiting
                .entry(key)
                .or_default()
                .push_back((event.thread, event.time_ns));
            return;
        }
        self.counts.dequeued += u64::from(is_selected);
        let queued = self.waiting.get_mut(&key).and_then(VecDeque::pop_front);
        match queued {
            Some((queued_by, queued_ns)) if is_selected => self.counts.items.push(QueuedItem {
                queued_by,
                queued_ns,
                taken_ns: event.time_ns,
            }),
            Some(_) => {}
            None => unused.without_start += 1,
        }
    }

    fn finish(self, unused: &mut Unused) -> QueueLatency {
        unused.without_end += self.waiting.values().map(|it| it.len() as u64).sum::<u64>();
        let waits = self.counts.items.iter().map(QueuedItem::waited_ns);
        QueueLatency {
            latency: Percentiles::new(waits),
            ..self.counts
        }
    }
}
