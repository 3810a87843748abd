//! The runtime's activities by the track of a series that shows them.

use chronosym_core::{Marker, ThreadIndex};
use rustc_hash::FxHashMap;

use crate::series::Series;

/// The markers of a series' processes and times, by the track that shows them.
pub(crate) struct Markers<'s>(FxHashMap<ThreadIndex, Vec<Marker<'s>>>);

impl<'s> Markers<'s> {
    /// Markers of threads without samples go to the first track of their process: a thread that
    /// only compiles is rarely sampled.
    pub fn new(series: &'s Series) -> Self {
        let timeline = series.resolver.timeline();
        let process = |thread| Some(timeline.thread_view(thread)?.process);
        let tracks = series.tracks();
        let mut first = FxHashMap::default();
        for track in &tracks {
            first.entry(process(track.thread)).or_insert(track.thread);
        }
        let own: FxHashMap<ThreadIndex, ThreadIndex> = match series.granularity.threads {
            true => tracks.iter().map(|t| (t.thread, t.thread)).collect(),
            false => FxHashMap::default(),
        };
        let mut of: FxHashMap<ThreadIndex, Vec<Marker<'s>>> = FxHashMap::default();
        let markers = timeline.markers();
        for markers in markers.chunk_by(|a, b| a.thread == b.thread) {
            let thread = markers[0].thread;
            let track = own.get(&thread).or_else(|| first.get(&process(thread)));
            if let Some(&track) = track {
                let shown = markers
                    .iter()
                    .filter(|m| series.times.contains(&m.start_ns));
                of.entry(track).or_default().extend(shown);
            }
        }
        Markers(of)
    }

    /// Takes the markers of a track.
    pub fn take(&mut self, thread: ThreadIndex) -> Vec<Marker<'s>> {
        self.0.remove(&thread).unwrap_or_default()
    }
}
