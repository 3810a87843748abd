//! The runtime's activities as markers of a Firefox profile.

use std::io::{self, Write};

use chronosym_core::{Marker, MarkerKind, ThreadIndex};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::table::{Cell, Column, begin_table};
use crate::json::Quoted;
use crate::kind::CodeKind;
use crate::series::Series;

/// Returns the viewer's display settings for each kind of marker.
pub(super) fn schema() -> Vec<Value> {
    let schema = |kind: MarkerKind| {
        json!({
            "name": kind.as_str(),
            "display": ["marker-chart", "marker-table", track_of(kind)],
            "tooltipLabel": "{marker.name}: {marker.data.text}",
            "tableLabel": "{marker.data.text}",
            "chartLabel": "{marker.data.text}",
            "fields": [{"key": "text", "label": "What", "format": "string"}],
        })
    };
    MarkerKind::ALL.map(schema).to_vec()
}

/// Returns the overview track that shows a kind of marker.
fn track_of(kind: MarkerKind) -> &'static str {
    match kind {
        MarkerKind::Collection | MarkerKind::Pause => "timeline-memory",
        _ => "timeline-overview",
    }
}

/// The markers of a series' processes and times, by the track that shows them.
pub(super) struct Markers<'s>(FxHashMap<ThreadIndex, Vec<Marker<'s>>>);

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
        let markers = timeline.markers().into_iter();
        for marker in markers.filter(|m| series.times.contains(&m.start_ns)) {
            let own = own.get(&marker.thread);
            if let Some(&track) = own.or_else(|| first.get(&process(marker.thread))) {
                of.entry(track).or_default().push(marker);
            }
        }
        Markers(of)
    }

    /// Takes the markers of a track.
    pub fn take(&mut self, thread: ThreadIndex) -> Vec<Marker<'s>> {
        self.0.remove(&thread).unwrap_or_default()
    }
}

/// Writes the table of markers; `string` returns the index of a name.
pub(super) fn write(
    markers: &[Marker<'_>],
    mut string: impl FnMut(&str) -> usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let names = markers.iter().map(|marker| string(marker.kind.as_str()));
    let named: Vec<_> = names.zip(markers).collect();
    // 0: a point, 1: an interval, 2: a start without an end.
    let phase = |marker: &Marker<'_>| match (marker.kind, marker.end_ns) {
        (_, Some(_)) => 1,
        (MarkerKind::Exception, None) => 0,
        (_, None) => 2,
    };
    let data = |marker: &Marker<'_>| {
        let text = marker
            .text
            .map(|text| format!(",\"text\":{}", Quoted(text)));
        let (kind, text) = (marker.kind.as_str(), text.unwrap_or_default());
        format!("{{\"type\":\"{kind}\"{text}}}")
    };
    let columns: [Column<'_, (usize, &Marker<'_>)>; 6] = [
        ("category", &|_| Cell::index(CodeKind::Runtime as usize)),
        ("name", &|(name, _)| Cell::index(*name)),
        ("startTime", &|(_, m)| Cell::Millis(m.start_ns)),
        ("endTime", &|(_, m)| {
            m.end_ns.map_or(Cell::Null, Cell::Millis)
        }),
        ("phase", &|(_, m)| Cell::Number(phase(m))),
        ("data", &|(_, m)| Cell::Object(data(m))),
    ];
    begin_table(out, "markers", &named, &columns)?;
    out.write_all(b"}")
}
