//! The context that all reports of the runtime's events share.

use std::io::{self, Write};
use std::sync::Arc;

use chronosym_core::{
    Filter, Position, ProcessIndex, Resolver, StackId, SymbolSource, ThreadIndex, Timeline, When,
};
use chronosym_runtime::{Percentiles, Report, Unused};
use serde::ser::SerializeMap;

use super::grid::{ms, sentence};
use super::sites::Site;
use crate::header::beyond_memory;
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::show_count;
use crate::user_code::UserCode;

/// A timeline, the part of it that is reported, and its names.
pub(crate) struct Context {
    pub timeline: Arc<Timeline>,
    pub filter: Filter,
    resolver: Resolver,
    user_code: UserCode,
}

impl Context {
    pub fn new(
        timeline: &Arc<Timeline>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Self {
        Context {
            timeline: timeline.clone(),
            filter: filter.clone(),
            resolver: Resolver::new(timeline, symbols),
            user_code: UserCode::of(timeline),
        }
    }

    pub fn pid(&self, process: ProcessIndex) -> Option<u32> {
        self.timeline.process_view(process)?.pid
    }

    pub fn tid(&self, thread: ThreadIndex) -> u64 {
        let view = self.timeline.thread_view(thread);
        view.map_or(0, |thread| thread.tid)
    }

    /// Returns the call site in the program at which an event of a process was logged, if the event
    /// has a stack.
    pub fn site(
        &mut self,
        process: ProcessIndex,
        stack: Option<StackId>,
        time_ns: u64,
    ) -> Option<Site> {
        let when = When::At(time_ns);
        let resolved = (self.resolver).resolve_stack(process, stack?, when, Position::Return);
        let (stack, _) = resolved?;
        Some(Site::of(&self.resolver, stack, self.user_code))
    }

    /// Returns the notes on what a report could not use.
    pub fn notes(&self, unused: &Unused) -> Notes {
        Notes::new(&self.timeline, unused)
    }
}

/// The data that a report could not use, and what the recorder lost.
#[derive(Debug)]
pub(crate) struct Notes {
    unused: Unused,
    has_losses: bool,
    lost: u64,
    /// Whether the recorder is one of Windows: `dotnet-trace` does not make its recordings.
    is_etw: bool,
    beyond_memory: &'static str,
}

impl Notes {
    pub fn new(timeline: &Timeline, unused: &Unused) -> Self {
        let lost = timeline.losses().iter();
        let lost = lost.fold(0u64, |sum, loss| sum.saturating_add(loss.events));
        Notes {
            unused: *unused,
            has_losses: !timeline.losses().is_empty(),
            lost,
            is_etw: is_etw(timeline),
            beyond_memory: beyond_memory(timeline),
        }
    }

    /// Returns the sentence for a trace without the events of a report.
    pub fn nothing(&self, report: Report) -> String {
        nothing(report, self.is_etw, self.beyond_memory)
    }

    /// Writes a sentence for each.
    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        let unused = &self.unused;
        let counts = [
            (
                unused.without_end,
                "have no end in the trace: their duration is unknown",
            ),
            (
                unused.without_start,
                "have no start in the trace and are not used",
            ),
            (
                unused.incomplete,
                "lack a field that the report needs, and are not used",
            ),
            (
                unused.newer,
                "are of a newer version: only their published fields are used",
            ),
            (
                unused.left_out,
                "did not fit into memory: counts and times are lower bounds",
            ),
        ];
        let is_empty = unused.is_empty() && !self.has_losses;
        if !is_empty {
            writeln!(out)?;
        }
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            sentence(
                &format!("{} events {what}", show_count(count)),
                options,
                out,
            )?;
        }
        if self.has_losses {
            let count = match self.lost {
                0 => "events".to_owned(),
                lost => format!("{} events", show_count(lost)),
            };
            let text = format!("the recorder lost {count}: counts and times are lower bounds");
            sentence(&text, options, out)?;
        }
        Ok(())
    }
}

impl Fields for Notes {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let some = |count: u64| Some(count).filter(|&count| count > 0);
        object
            .some("without_end", some(self.unused.without_end))
            .some("without_start", some(self.unused.without_start))
            .some("incomplete", some(self.unused.incomplete))
            .some("newer", some(self.unused.newer))
            .some("left_out", some(self.unused.left_out))
            .some("lost", self.has_losses.then_some(self.lost));
    }
}

pub(crate) fn is_etw(timeline: &Timeline) -> bool {
    timeline.facts().format == "etl"
}

/// As [`Notes::nothing`].
pub(crate) fn nothing(report: Report, is_etw: bool, beyond_memory: &str) -> String {
    let what = match report {
        Report::Gc => "garbage collections",
        Report::Jit => "compilations",
        Report::Exceptions => "exceptions",
        Report::Allocations => "allocations",
        Report::Contention => "lock waits",
        Report::ThreadPool => "events of the thread pool",
        Report::Counters => "event counters",
    };
    let how = how_to_record(report, is_etw);
    format!("no {what} in the trace{beyond_memory}; to record them: {how}")
}

fn how_to_record(report: Report, is_etw: bool) -> String {
    let how = match is_etw {
        true => "enable the provider",
        false => "dotnet-trace collect --providers",
    };
    format!("{how} {}", report.provider())
}

/// Returns how to record the events of a report with the recorder of a trace.
pub fn to_record(report: Report, timeline: &Timeline) -> String {
    how_to_record(report, is_etw(timeline))
}

/// Percentiles as JSON.
pub(crate) struct Durations<'a>(pub &'a Percentiles);

impl Fields for Durations<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("count", self.0.count)
            .field("total_ns", self.0.total_ns)
            .field("p50_ns", self.0.p50_ns)
            .field("p95_ns", self.0.p95_ns)
            .field("p99_ns", self.0.p99_ns)
            .field("max_ns", self.0.max_ns);
    }
}

/// Percentiles as text.
pub(crate) fn show_percentiles(of: &Percentiles) -> String {
    format!(
        "median {} ms, 95th percentile {} ms, 99th {} ms, longest {} ms",
        ms(of.p50_ns),
        ms(of.p95_ns),
        ms(of.p99_ns),
        ms(of.max_ns)
    )
}
