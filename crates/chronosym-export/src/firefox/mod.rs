//! The processed format of Firefox Profiler, version 55 (github.com/firefox-devtools/profiler, src/types/profile.js).

mod markers;
mod thread;

use std::fmt::Display;
use std::io::{self, Write};

use chronosym::{Code, FrameId};
use chronosym_types::escape::push_json;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::kind::CodeKind;
use crate::measure::Measure;
use crate::rows::Rows;
use crate::series::Series;
use markers::Markers;

/// Writes each thread with its samples, by time, their weights and stacks; inlined frames, source lines and the kind of
/// code stand with each frame. What the runtime did beside ([`chronosym::Timeline::markers`]) stands with the thread that
/// said so.
pub fn write_firefox(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let resolver = &series.resolver;
    let facts = resolver.timeline().facts();
    let rows = series.rows();
    let labels = series.labels(&rows);
    let labels = labels.into_iter().zip(&rows.rows);
    // The viewer shows what a function is of beside its name.
    let labels = labels.map(|(label, row)| {
        let own = row.function.binary().and_then(|binary| {
            label
                .strip_prefix(binary.name())?
                .strip_prefix('!')
                .map(str::to_owned)
        });
        own.unwrap_or(label)
    });
    let names = Names {
        labels: labels.collect(),
        rows,
    };
    let categories = CodeKind::ALL.map(|kind| {
        json!({"name": category(kind).0, "color": category(kind).1, "subcategories": ["Other"]})
    });
    let start = facts.start_unix_ns.unwrap_or(0) as f64 / 1e6;
    // What was achieved, where that is known, and not what was asked for.
    let asked = facts.sample_interval_ns.unwrap_or(1_000_000);
    let achieved = match series.measure {
        Measure::Time => series.total() / series.samples.len().max(1) as u64,
        _ => asked,
    };
    let interval = achieved as f64 / 1e6;
    let meta = json!({
        "categories": categories,
        "debug": false,
        "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
        "importedFrom": "chronosym",
        "interval": interval,
        "markerSchema": markers::schema(),
        "oscpu": facts.machine,
        "pausedRanges": [],
        "preprocessedProfileVersion": 55,
        "processType": 0,
        "product": series.title(),
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "sourceCodeIsNotOnSearchfox": true,
        "startTime": start,
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "version": 24,
    });
    let mut text = String::from("{\"meta\":");
    text.push_str(&meta.to_string());
    text.push_str(",\"libs\":[");
    for (index, binary) in resolver.binaries().iter().enumerate() {
        text.push_str(if index > 0 { ",\n" } else { "\n" });
        let path = binary.path().unwrap_or(binary.name());
        let identity = binary.identity().unwrap_or_default();
        let fields = [
            ("{\"name\":", binary.name()),
            (",\"path\":", path),
            (",\"debugName\":", binary.name()),
            (",\"debugPath\":", path),
            (",\"breakpadId\":", identity),
        ];
        for (key, value) in fields {
            text.push_str(key);
            push_json(value, &mut text);
        }
        text.push_str(",\"codeId\":null,\"arch\":null}");
    }
    text.push_str("],\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\"threads\":[");
    out.write_all(text.as_bytes())?;
    let mut markers = Markers::new(series);
    let mut main = FxHashMap::default();
    for (index, track) in series.tracks().into_iter().enumerate() {
        out.write_all(if index > 0 { b",\n" } else { b"\n" })?;
        let (timeline, thread) = (resolver.timeline(), track.thread);
        let process = timeline.thread_view(thread).map(|t| t.process);
        let is_main = *main.entry(process).or_insert(thread) == thread;
        let markers = markers.take(thread);
        thread::write(series, &names, &track, &markers, is_main, out)?;
    }
    writeln!(out, "]}}")
}

struct Names {
    rows: Rows,
    labels: Vec<String>,
}

/// What a kind of code is called, and one of the viewer's colours.
fn category(kind: CodeKind) -> (&'static str, &'static str) {
    match kind {
        CodeKind::Managed => ("Managed", "blue"),
        CodeKind::Framework => ("Framework", "lightblue"),
        CodeKind::Runtime => ("Runtime", "purple"),
        CodeKind::Native => ("Native", "orange"),
        CodeKind::Kernel => ("Kernel", "red"),
        CodeKind::Stub => ("Stub", "yellow"),
        // One category has to be grey: the viewer's default.
        CodeKind::Unnamed => ("Unnamed", "grey"),
    }
}

/// The address of a frame, as [`write_firefox`] has it: bytes from the image's base. Code that belongs to no image has none
/// that a viewer could use: its number stands there, so that the viewer takes the function for one whose source can be
/// asked for.
pub fn firefox_address(id: FrameId, frame: &chronosym::Frame) -> u64 {
    match frame.code {
        Code::Image { rva, .. } => rva,
        _ => id.index() as u64,
    }
}

fn or_null(value: Option<impl Display>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

fn begin_table(out: &mut impl Write, name: &str, length: usize) -> io::Result<()> {
    write!(out, ",\n\"{name}\":{{\"length\":{length}")
}

/// A column of numbers or of what looks as it does in JSON.
fn column<T: Display>(
    out: &mut impl Write,
    name: &str,
    values: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write!(out, "{value}")?;
    }
    out.write_all(b"]")
}
