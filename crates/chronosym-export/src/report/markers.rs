//! The runtime's activities in a report.

use std::collections::HashMap;

use chronosym_core::{Marker, MarkerKind};
use chronosym_types::escape::terminal;

use super::columns::{Columns, deltas};
use super::samples::Samples;
use crate::series::Series;
use crate::tables::Numbered;

/// Number of markers of a kind above which they are merged.
const MANY: usize = 10_000;
/// Number of slices of time; merged markers start in one slice. A time axis has fewer pixels.
const SLICES: u64 = 5_000;

/// A marker, or several of one kind.
struct Merged<'t> {
    first: Marker<'t>,
    /// End in ns since the trace began; for several markers, that of the last one.
    end_ns: Option<u64>,
    count: u64,
}

/// Adds the markers of the report's processes and times to `columns`, those of all processes if the
/// trace has no samples; returns their texts.
pub(super) fn write(series: &Series, samples: &Samples, columns: &mut Columns) -> Vec<String> {
    let timeline = series.resolver.timeline();
    let process = |thread| Some(timeline.thread_view(thread)?.process);
    let processes: Numbered<_> = samples
        .threads
        .iter()
        .map(|&thread| process(thread))
        .collect();
    let mut markers = timeline.markers();
    let of_all = timeline.samples().is_empty();
    markers.retain(|marker| {
        let starts = series.times.contains(&marker.start_ns);
        starts && (of_all || processes.contains(&process(marker.thread)))
    });
    markers.sort_by_key(|marker| marker.start_ns);
    let markers = merged(&markers);
    let mut texts = Numbered::default();
    let text_of = markers.iter().map(|marker| {
        let text = marker.first.text.map(|text| terminal(text).into_owned());
        text.map_or(0, |text| texts.insert_full(text).0 as u64 + 1)
    });
    columns.add("marker.text", text_of);
    columns.add(
        "marker.kind",
        markers.iter().map(|marker| marker.first.kind as u64),
    );
    columns.add(
        "marker.start",
        deltas(markers.iter().map(|marker| marker.first.start_ns)),
    );
    // 0: no end.
    let lengths = markers.iter().map(|marker| {
        let length = marker
            .end_ns
            .map(|end| end.saturating_sub(marker.first.start_ns));
        length.map_or(0, |length| length.saturating_add(1))
    });
    columns.add("marker.length", lengths);
    columns.add("marker.count", markers.iter().map(|marker| marker.count));
    let threads = markers.iter().map(|marker| {
        let thread = samples.threads.get_index_of(&marker.first.thread);
        thread.map_or(0, |thread| thread as u64 + 1)
    });
    columns.add("marker.thread", threads);
    texts.into_iter().collect()
}

fn merged<'t>(markers: &[Marker<'t>]) -> Vec<Merged<'t>> {
    let count_of = |kind: MarkerKind| markers.iter().filter(|marker| marker.kind == kind).count();
    let counts = MarkerKind::ALL.map(count_of);
    let times = markers.iter().map(|marker| marker.start_ns);
    let span = times.clone().max().unwrap_or(0) - times.min().unwrap_or(0);
    let slice_ns = span / SLICES + 1;
    let mut merged: Vec<Merged<'t>> = Vec::new();
    let mut slices: HashMap<(MarkerKind, u64), usize> = HashMap::new();
    for marker in markers {
        let own = Merged {
            first: *marker,
            end_ns: marker.end_ns,
            count: 1,
        };
        if counts[marker.kind as usize] <= MANY {
            merged.push(own);
            continue;
        }
        let index = *slices
            .entry((marker.kind, marker.start_ns / slice_ns))
            .or_insert(merged.len());
        match merged.get_mut(index) {
            None => merged.push(own),
            Some(sum) => {
                sum.end_ns = sum.end_ns.max(marker.end_ns).max(Some(marker.start_ns));
                sum.count += 1;
            }
        }
    }
    merged
}
