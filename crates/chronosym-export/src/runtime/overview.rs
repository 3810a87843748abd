//! A summary of the runtime's events in a trace: a line for each report.

use std::io::{self, Write};
use std::sync::Arc;

use chronosym_core::{Filter, Timeline};
use chronosym_runtime::{
    Allocations, Collections, Contention, Counters, Exceptions, Jit, Percentiles, Report,
    ThreadPool,
};
use serde::ser::SerializeMap;

use super::context::{is_etw, nothing};
use super::grid::{ms, sentence};
use crate::counter_line::capacity;
use crate::header::beyond_memory;
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::{counted, show_count, show_rounded};

/// A summary of all reports of a timeline that was read with the options of all.
#[derive(Debug)]
pub struct RuntimeOverview(Vec<Line>);

#[derive(Debug)]
struct Line {
    report: Report,
    /// Number of activities or events.
    count: u64,
    /// Their time, ns.
    total_ns: Option<u64>,
    bytes: Option<u64>,
    text: String,
}

impl RuntimeOverview {
    /// Summarizes the events within a filter.
    pub fn new(timeline: &Arc<Timeline>, filter: &Filter) -> Self {
        let of = |report| match report {
            Report::Gc => gc(timeline, filter),
            Report::Jit => jit(timeline, filter),
            Report::Exceptions => exceptions(timeline, filter),
            Report::Allocations => allocations(timeline, filter),
            Report::Contention => contention(timeline, filter),
            Report::ThreadPool => threadpool(timeline, filter),
            Report::Counters => counters(timeline, filter),
        };
        let line = |report| {
            let mut line = of(report);
            if line.count == 0 {
                line.text = nothing(report, is_etw(timeline), beyond_memory(timeline));
            }
            line
        };
        RuntimeOverview(Report::ALL.into_iter().map(line).collect())
    }

    /// Writes a line for each report.
    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        for line in &self.0 {
            sentence(&format!("{:<12} {}", line.report, line.text), options, out)?;
        }
        Ok(())
    }
}

impl Fields for RuntimeOverview {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object.objects("reports", &self.0);
    }
}

impl Fields for Line {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("report", self.report.as_str())
            .field("count", self.count)
            .some("total_ns", self.total_ns)
            .some("bytes", self.bytes)
            .some("record", (self.count == 0).then(|| self.report.provider()));
    }
}

fn gc(timeline: &Timeline, filter: &Filter) -> Line {
    let gc = Collections::new(timeline, filter);
    let count = gc.collections.len() as u64;
    let pauses = gc.pauses.percentiles();
    let mut text = counted(count, "collection");
    if let Some(pauses) = &pauses {
        text.push_str(&format!(
            ", {} ms of pauses, the longest {} ms",
            ms(pauses.total_ns),
            ms(pauses.max_ns)
        ));
    }
    Line {
        report: Report::Gc,
        count,
        total_ns: pauses.map(|pauses| pauses.total_ns),
        bytes: None,
        text,
    }
}

fn jit(timeline: &Timeline, filter: &Filter) -> Line {
    let jit = Jit::new(timeline, filter);
    let count = jit.methods.len() as u64;
    let timed = jit
        .methods
        .iter()
        .any(|method| method.duration_ns.is_some());
    let total_ns = timed.then(|| jit.duration_ns());
    let mut text = format!("{} compiled", counted(count, "method"));
    if let Some(ns) = total_ns {
        text.push_str(&format!(" in {} ms", ms(ns)));
    }
    let lookups = jit.lookups.found + jit.lookups.not_found;
    if lookups > 0 {
        let (found, lookups) = (show_count(jit.lookups.found), show_count(lookups));
        text.push_str(&format!("; ReadyToRun code found for {found} of {lookups}"));
    }
    Line {
        report: Report::Jit,
        count: count + lookups,
        total_ns,
        bytes: None,
        text,
    }
}

fn exceptions(timeline: &Timeline, filter: &Filter) -> Line {
    let all = Exceptions::new(timeline, filter);
    let count = all.thrown.len() as u64;
    let dispatch = Percentiles::new(all.thrown.iter().filter_map(|it| it.dispatch_ns));
    let mut text = format!("{} thrown", show_count(count));
    if let Some(dispatch) = &dispatch {
        text.push_str(&format!(
            ", {} ms until they were caught",
            ms(dispatch.total_ns)
        ));
    }
    Line {
        report: Report::Exceptions,
        count,
        total_ns: dispatch.map(|dispatch| dispatch.total_ns),
        bytes: None,
        text,
    }
}

fn allocations(timeline: &Timeline, filter: &Filter) -> Line {
    let all = Allocations::new(timeline, filter);
    let count = all.allocations.len() as u64;
    Line {
        report: Report::Allocations,
        count,
        total_ns: None,
        bytes: all.event.map(|_| all.bytes()),
        text: format!(
            "{} bytes, estimated from {} events",
            show_rounded(all.bytes()),
            show_count(count)
        ),
    }
}

fn contention(timeline: &Timeline, filter: &Filter) -> Line {
    let all = Contention::new(timeline, filter);
    let count = all.waits.len() as u64;
    Line {
        report: Report::Contention,
        count,
        total_ns: Some(all.duration_ns()).filter(|_| count > 0),
        bytes: None,
        text: format!(
            "{}, {} ms",
            counted(count, "lock wait"),
            ms(all.duration_ns())
        ),
    }
}

fn threadpool(timeline: &Timeline, filter: &Filter) -> Line {
    let pool = ThreadPool::new(timeline, filter);
    let queued = pool.work.enqueued + pool.io.enqueued;
    let count = pool.adjustments.len() as u64 + pool.workers.len() as u64 + queued;
    Line {
        report: Report::ThreadPool,
        count,
        total_ns: None,
        bytes: None,
        text: format!(
            "at most {} active, {} of their number, {} queued",
            pool.most_workers()
                .map_or("an unknown number of workers".to_owned(), |most| {
                    counted(most.into(), "worker")
                }),
            counted(pool.adjustments.len() as u64, "change"),
            counted(queued, "item")
        ),
    }
}

fn counters(timeline: &Timeline, filter: &Filter) -> Line {
    let all = Counters::new(timeline, filter);
    let processors = timeline.facts().processors;
    let mut text = counted(all.counters.len() as u64, "counter");
    let used = all.counters.iter().find_map(|it| capacity(it, processors));
    if let Some(used) = used {
        text.push_str(&format!("; {used}"));
    }
    Line {
        report: Report::Counters,
        count: all.counters.len() as u64,
        total_ns: None,
        bytes: None,
        text,
    }
}
