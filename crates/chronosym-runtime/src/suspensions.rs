//! Suspensions of all threads of a process.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym_core::{Marker, MarkerKind, ProcessIndex, ThreadIndex, Timeline};

use crate::numbers::SuspensionReason;
use crate::percentiles::Percentiles;

/// A suspension of all managed threads, from GCSuspendEEBegin to GCRestartEEEnd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspension {
    /// The process.
    pub process: ProcessIndex,
    /// The thread that suspended the others.
    pub thread: ThreadIndex,
    /// Why; `None` if the event does not state it.
    pub reason: Option<SuspensionReason>,
    /// GCSuspendEEBegin: when the thread requested it, ns.
    pub requested_ns: u64,
    /// Its start, ns: the request, or the end of the suspension that it waited for.
    pub start_ns: u64,
    /// When all threads were suspended (GCSuspendEEEnd), ns.
    pub suspended_ns: Option<u64>,
    /// When they ran again, ns.
    pub end_ns: u64,
}

impl Suspension {
    /// Returns its duration, ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Returns how long the thread waited for another suspension to end, ns.
    pub fn waited_ns(&self) -> u64 {
        self.start_ns.saturating_sub(self.requested_ns)
    }

    /// Returns how long it took until all threads were suspended, ns.
    pub fn suspending_ns(&self) -> Option<u64> {
        Some(self.suspended_ns?.saturating_sub(self.start_ns))
    }
}

/// The suspensions of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspensions {
    /// In order of their ends.
    pub list: Vec<Suspension>,
}

impl Suspensions {
    /// Returns percentiles of their durations.
    pub fn percentiles(&self) -> Option<Percentiles> {
        Percentiles::new(self.list.iter().map(Suspension::duration_ns))
    }

    /// Returns the time for which threads waited for other suspensions, ns.
    pub fn waited_ns(&self) -> u64 {
        let waits = self.list.iter().map(Suspension::waited_ns);
        waits.fold(0, u64::saturating_add)
    }

    /// Returns the time that suspending took, as far as it is known, ns.
    pub fn suspending_ns(&self) -> u64 {
        let known = self.list.iter().filter_map(Suspension::suspending_ns);
        known.fold(0, u64::saturating_add)
    }
}

/// The suspensions of a process for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SuspensionTotals {
    /// The process.
    pub process: ProcessIndex,
    /// Whether they were for wall-clock samples.
    pub by_sampler: bool,
    /// The cause in words.
    pub cause: String,
    /// Their number.
    pub count: u64,
    /// Time in ns of those whose end is in the trace; no two overlap.
    pub time_ns: u64,
}

impl SuspensionTotals {
    /// Returns the suspensions among the markers of a timeline by process and cause, longest first.
    pub fn of(timeline: &Timeline, markers: &[Marker<'_>]) -> Vec<Self> {
        let mut of: BTreeMap<(ProcessIndex, Option<&str>), (u64, u64)> = BTreeMap::new();
        for marker in markers {
            let cause = match marker.kind {
                MarkerKind::SamplerPause => None,
                MarkerKind::Pause => Some(marker.text.unwrap_or("for an unknown reason")),
                _ => continue,
            };
            let Some(thread) = timeline.thread_view(marker.thread) else {
                continue;
            };
            let (count, time_ns) = of.entry((thread.process, cause)).or_default();
            *count += 1;
            let start_ns = marker.start_ns.saturating_add(marker.waited_ns);
            *time_ns += marker.end_ns.map_or(0, |end| end.saturating_sub(start_ns));
        }
        let mut all: Vec<_> = of
            .into_iter()
            .map(|((process, cause), (count, time_ns))| SuspensionTotals {
                process,
                by_sampler: cause.is_none(),
                cause: cause.unwrap_or("by the sampler").to_owned(),
                count,
                time_ns,
            })
            .collect();
        all.sort_by_key(|it| Reverse(it.time_ns));
        all
    }
}
