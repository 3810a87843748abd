//! Suspensions of all threads of a process, by cause.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym_core::{MarkerKind, ProcessIndex, Timeline};
use serde::ser::SerializeMap;

use crate::object::{Fields, Object};

/// The suspensions of a process for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suspensions {
    pub process: ProcessIndex,
    pub pid: Option<u32>,
    /// Whether they were for wall-clock samples.
    pub by_sampler: bool,
    /// The cause in words.
    pub cause: String,
    pub count: u64,
    /// Time in ns of those whose end is in the trace; overlapping time counts once.
    pub time_ns: u64,
}

/// Returns the suspensions of each process by cause, longest first.
pub(super) fn suspensions(timeline: &Timeline) -> Vec<Suspensions> {
    let mut of: BTreeMap<(ProcessIndex, bool, String), (u64, u64, u64)> = BTreeMap::new();
    for marker in timeline.markers() {
        let (by_sampler, cause) = match marker.kind {
            MarkerKind::SamplerPause => (true, "by the sampler"),
            MarkerKind::Pause => (false, marker.text.unwrap_or("for an unknown reason")),
            _ => continue,
        };
        let Some(thread) = timeline.thread_view(marker.thread) else {
            continue;
        };
        let key = (thread.process, by_sampler, cause.to_owned());
        let (count, time, reached) = of.entry(key).or_default();
        *count += 1;
        // Markers are sorted by start.
        let end = marker.end_ns.unwrap_or(marker.start_ns);
        *time += end.saturating_sub(marker.start_ns.max(*reached));
        *reached = end.max(*reached);
    }
    let mut all: Vec<_> = of
        .into_iter()
        .map(
            |((process, by_sampler, cause), (count, time_ns, _))| Suspensions {
                process,
                pid: timeline.process_view(process).and_then(|view| view.pid),
                by_sampler,
                cause,
                count,
                time_ns,
            },
        )
        .collect();
    all.sort_by_key(|it| Reverse(it.time_ns));
    all
}

impl Fields for Suspensions {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("pid", self.pid)
            .field("cause", &self.cause)
            .field("by_sampler", self.by_sampler)
            .field("count", self.count)
            .field("time_ns", self.time_ns);
    }
}
