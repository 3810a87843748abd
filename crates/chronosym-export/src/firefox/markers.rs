//! The runtime's activities as markers of a Firefox profile.

use std::io::{self, Write};

use chronosym_core::{Marker, MarkerKind};
use serde_json::{Value, json};

use super::table::{Cell, Column, begin_table};
use crate::kind::CodeKind;

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

/// Writes the table of markers; `string` returns the index of a name.
pub(super) fn write<'m>(
    markers: impl Iterator<Item = &'m Marker<'m>>,
    mut string: impl FnMut(&str) -> usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut of_kinds = [None; MarkerKind::ALL.len()];
    let named = markers.map(|marker| {
        let kind = marker.kind;
        let name = of_kinds[kind as usize].get_or_insert_with(|| string(kind.as_str()));
        (*name, marker)
    });
    let named: Vec<_> = named.collect();
    // 0: a point, 1: an interval, 2: a start without an end.
    let phase = |marker: &Marker<'_>| match (marker.kind, marker.end_ns) {
        (_, Some(_)) => 1,
        (MarkerKind::Exception, None) => 0,
        (_, None) => 2,
    };
    let columns: [Column<'_, (usize, &Marker<'_>)>; 6] = [
        ("category", &|_| Cell::index(CodeKind::Runtime as usize)),
        ("name", &|(name, _)| Cell::index(*name)),
        ("startTime", &|(_, m)| Cell::Millis(m.start_ns)),
        ("endTime", &|(_, m)| {
            m.end_ns.map_or(Cell::Null, Cell::Millis)
        }),
        ("phase", &|(_, m)| Cell::Number(phase(m))),
        ("data", &|(_, m)| Cell::Typed(m.kind.as_str(), m.text)),
    ];
    begin_table(out, "markers", &named, &columns)?;
    out.write_all(b"}")
}
