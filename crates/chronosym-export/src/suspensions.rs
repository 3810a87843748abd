//! Suspensions of all threads of a process, by cause.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym_core::{Marker, MarkerKind, ProcessIndex, Timeline};
use serde::ser::SerializeMap;

use crate::object::{Fields, Object};

/// The suspensions of a process for one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspensions {
    pub pid: Option<u32>,
    /// Whether they were for wall-clock samples.
    pub by_sampler: bool,
    /// The cause in words.
    pub cause: String,
    pub count: u64,
    /// Time in ns of those whose end is in the trace; no two overlap.
    pub time_ns: u64,
}

/// Returns the suspensions among markers of each process by cause, longest first. A suspension
/// starts with its request or, if another one lasts then, with the end of that one.
pub(crate) fn suspensions(timeline: &Timeline, markers: &[Marker<'_>]) -> Vec<Suspensions> {
    let seen = markers.iter().filter_map(|marker| {
        let cause = match marker.kind {
            MarkerKind::SamplerPause => None,
            MarkerKind::Pause => Some(marker.text.unwrap_or("for an unknown reason")),
            _ => return None,
        };
        let process = timeline.thread_view(marker.thread)?.process;
        let end_ns = marker.end_ns.unwrap_or(marker.start_ns);
        Some((process, end_ns, marker.start_ns, cause))
    });
    let mut seen: Vec<_> = seen.collect();
    seen.sort_unstable();
    let mut of: BTreeMap<(ProcessIndex, Option<&str>), (u64, u64)> = BTreeMap::new();
    let mut last = None;
    for (process, end_ns, start_ns, cause) in seen {
        let before = last.replace((process, end_ns));
        let free_ns = before.filter(|&(of, _)| of == process);
        let start_ns = start_ns.max(free_ns.map_or(0, |(_, end_ns)| end_ns));
        let (count, time_ns) = of.entry((process, cause)).or_default();
        *count += 1;
        *time_ns += end_ns.saturating_sub(start_ns);
    }
    let mut all: Vec<_> = of
        .into_iter()
        .map(|((process, cause), (count, time_ns))| Suspensions {
            pid: timeline.process_view(process).and_then(|view| view.pid),
            by_sampler: cause.is_none(),
            cause: cause.unwrap_or("by the sampler").to_owned(),
            count,
            time_ns,
        })
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
