//! The report of the thread pool.

use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym_runtime::{
    Adjustment, AdjustmentReason, QueueLatency, Report, ThreadPool, WorkerCount,
};
use serde::ser::SerializeMap;

use super::context::{Context, Durations, Notes, show_percentiles};
use super::grid::{Grid, or_unknown, sentence};
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::{counted, show_count, show_time};

#[derive(Debug)]
pub(crate) struct ThreadPoolView {
    pool: ThreadPool,
    adjustments: Vec<Row<Adjustment>>,
    workers: Vec<Row<WorkerCount>>,
    notes: Notes,
}

#[derive(Debug)]
struct Row<T> {
    pid: Option<u32>,
    of: T,
}

impl ThreadPoolView {
    pub fn new(context: &mut Context) -> Self {
        let pool = ThreadPool::new(&context.timeline, &context.filter);
        let adjustments = pool.adjustments.iter().map(|&of| Row {
            pid: context.pid(of.process),
            of,
        });
        // Times at which the number changes.
        let mut last = BTreeMap::new();
        let changes = pool
            .workers
            .iter()
            .filter(|count| last.insert(count.process, count.active) != Some(count.active));
        let workers = changes.map(|&of| Row {
            pid: context.pid(of.process),
            of,
        });
        ThreadPoolView {
            adjustments: adjustments.collect(),
            workers: workers.collect(),
            notes: context.notes(&pool.unused),
            pool,
        }
    }

    fn is_empty(&self) -> bool {
        let queued = |queue: &QueueLatency| queue.enqueued + queue.dequeued;
        self.adjustments.is_empty()
            && self.workers.is_empty()
            && queued(&self.pool.work) + queued(&self.pool.io) == 0
    }

    fn starvation(&self) -> u64 {
        let starved = |row: &&Row<Adjustment>| row.of.reason == Some(AdjustmentReason::STARVATION);
        self.adjustments.iter().filter(starved).count() as u64
    }

    fn injected(&self) -> u64 {
        let injected = self.adjustments.iter().filter_map(|row| row.of.injected());
        injected.map(u64::from).sum()
    }

    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        if self.is_empty() {
            sentence(&self.notes.nothing(Report::ThreadPool), options, out)?;
            return self.notes.write(options, out);
        }
        let mut text = format!(
            "{} of the number of workers, {} for starvation; {} added",
            counted(self.adjustments.len() as u64, "change"),
            show_count(self.starvation()),
            counted(self.injected(), "worker")
        );
        if let Some(most) = self.pool.most_workers() {
            text.push_str(&format!(
                "; at most {} active",
                counted(most.into(), "worker")
            ));
        }
        if let Some((min, max)) = self.pool.limits {
            text.push_str(&format!("; limits: {min} to {max}"));
        }
        sentence(&text, options, out)?;
        if self.starvation() > 0 {
            let text = "starvation: work was queued while no worker finished; `chronosym top --waiting` shows blocked workers";
            sentence(text, options, out)?;
        }
        for (queue, what) in [
            (&self.pool.work, "work items"),
            (&self.pool.io, "I/O completions"),
        ] {
            if queue.enqueued + queue.dequeued > 0 {
                let mut text = format!(
                    "{} {what} enqueued, {} dequeued",
                    show_count(queue.enqueued),
                    show_count(queue.dequeued)
                );
                if let Some(latency) = &queue.latency {
                    text.push_str(&format!("; in the queue: {}", show_percentiles(latency)));
                }
                sentence(&text, options, out)?;
            }
        }
        let mut grid = Grid::new(
            ["time", "workers", "before", "items a second", "reason"],
            options.max_lines,
        );
        for Row { of, .. } in &self.adjustments {
            grid.row(|| {
                [
                    show_time(of.time_ns),
                    of.workers.to_string(),
                    or_unknown(of.before, |it| it.to_string()),
                    or_unknown(of.throughput, |it| format!("{it:.1}")),
                    or_unknown(of.reason, |it| it.to_string()),
                ]
            });
        }
        grid.write(options, out)?;
        let mut grid = Grid::new(["time", "active workers"], options.max_lines);
        for Row { of, .. } in &self.workers {
            grid.row(|| [show_time(of.time_ns), of.active.to_string()]);
        }
        grid.write(options, out)?;
        self.notes.write(options, out)
    }
}

impl Fields for ThreadPoolView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let record = self.is_empty().then(|| Report::ThreadPool.provider());
        object
            .field("report", Report::ThreadPool.as_str())
            .some("record", record)
            .field("starvation", self.starvation())
            .field("injected", self.injected())
            .some("most_workers", self.pool.most_workers())
            .some("min_workers", self.pool.limits.map(|limits| limits.0))
            .some("max_workers", self.pool.limits.map(|limits| limits.1))
            .object("work", Some(&Queue(&self.pool.work)))
            .object("io", Some(&Queue(&self.pool.io)))
            .objects("adjustments", &self.adjustments)
            .objects("workers", &self.workers)
            .object("unused", Some(&self.notes));
    }
}

struct Queue<'a>(&'a QueueLatency);

impl Fields for Queue<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("enqueued", self.0.enqueued)
            .field("dequeued", self.0.dequeued)
            .object("latency", self.0.latency.as_ref().map(Durations).as_ref());
    }
}

impl Fields for Row<Adjustment> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("pid", self.pid)
            .field("time_ns", self.of.time_ns)
            .field("workers", self.of.workers)
            .some("before", self.of.before)
            .some("reason", self.of.reason.map(|reason| reason.to_string()))
            .some("throughput", self.of.throughput.filter(|it| it.is_finite()));
    }
}

impl Fields for Row<WorkerCount> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("pid", self.pid)
            .field("time_ns", self.of.time_ns)
            .field("active", self.of.active);
    }
}
