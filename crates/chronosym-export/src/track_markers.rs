//! The runtime's activities by the track of a series that shows them.

use chronosym_core::{Marker, ThreadIndex};
use rustc_hash::FxHashMap;

use crate::series::Series;

/// The markers of a series' processes and times, by the track that shows them.
pub(crate) struct Markers<'s> {
    all: Vec<Marker<'s>>,
    /// The track that shows a thread's markers, if one does.
    track_of: FxHashMap<ThreadIndex, Option<usize>>,
    /// The positions of each track's markers.
    tracks: Vec<Vec<u32>>,
}

impl<'s> Markers<'s> {
    /// Markers of threads without samples go to the first track of their process: a thread that
    /// only compiles is rarely sampled.
    pub fn new(series: &'s Series) -> Self {
        let timeline = series.resolver.timeline();
        let process = |thread| Some(timeline.thread_view(thread)?.process);
        let (mut track_of, mut first) = (FxHashMap::default(), FxHashMap::default());
        let tracks = series.tracks();
        for (at, track) in tracks.iter().enumerate() {
            first.entry(process(track.thread)).or_insert(at);
            track_of.insert(track.thread, Some(at));
        }
        let all = timeline.markers();
        let mut tracks = vec![Vec::new(); tracks.len()];
        for (marker, position) in all.iter().zip(0..) {
            let of = || first.get(&process(marker.thread)).copied();
            let track = *track_of.entry(marker.thread).or_insert_with(of);
            if let Some(track) = track
                && series.times.contains(&marker.start_ns)
            {
                tracks[track].push(position);
            }
        }
        Markers {
            all,
            track_of,
            tracks,
        }
    }

    /// Returns the markers of the track of a thread.
    pub fn of(&self, thread: ThreadIndex) -> impl ExactSizeIterator<Item = &Marker<'s>> {
        let track = self.track_of.get(&thread).copied().flatten();
        let positions = track.map_or(&[][..], |track| &self.tracks[track]);
        positions.iter().map(|&at| &self.all[at as usize])
    }
}
