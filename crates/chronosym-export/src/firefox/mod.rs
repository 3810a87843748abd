//! The processed format of Firefox Profiler, version 55 (github.com/firefox-devtools/profiler,
//! src/types/profile.js).

mod markers;
mod table;
mod thread;

use std::cmp::Reverse;
use std::io::{self, Write};

use chronosym_core::Activity;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::json::{Quoted, write_list};
use crate::kind::CodeKind;
use crate::series::{Series, Track};
use crate::track_markers::Markers;
use crate::weight::WeightUnit;
use thread::{Labels, Pids};

pub use thread::firefox_address;

/// Writes each thread with its samples by time, their weights and stacks. Frames state inlining,
/// source lines and the kind of code. The runtime's markers ([`chronosym_core::Timeline::markers`])
/// are with the thread that logged them.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_firefox(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let resolver = &series.resolver;
    let facts = resolver.timeline().facts();
    let groups = series.groups();
    let labels = series.labels(&groups);
    let labels = labels.into_iter().zip(&groups.all);
    // The viewer shows the library next to the function's name.
    let labels = labels.map(|(label, group)| {
        let own = group.function.binary().and_then(|binary| {
            let own = label.strip_prefix(group.doubt())?;
            let own = own.strip_prefix(binary.name())?.strip_prefix('!')?;
            Some(format!("{}{own}", group.doubt()))
        });
        own.unwrap_or(label)
    });
    let labels = Labels {
        pids: Pids::of(resolver.timeline()),
        labels: labels.collect(),
        groups,
    };
    let categories = CodeKind::ALL.map(|kind| {
        json!({"name": category(kind).0, "color": category(kind).1, "subcategories": ["Other"]})
    });
    // The viewer draws samples of a transparent category as idle.
    let idle = json!({"name": "Idle", "color": "transparent", "subcategories": ["Other"]});
    let categories: Vec<_> = categories.into_iter().chain([idle]).collect();
    let tracks = series.tracks();
    let busy = |track: &Track<'_>| -> u64 {
        let samples = track
            .samples
            .iter()
            .filter(|sample| sample.activity != Activity::Blocked);
        samples.fold(0, |sum, sample| sum.saturating_add(sample.weight))
    };
    // The first of equal ones.
    let hottest = (0..tracks.len()).max_by_key(|&index| (busy(&tracks[index]), Reverse(index)));
    let product = hottest.map(|index| series.thread_labels(tracks[index].thread).0);
    let start = facts.start_unix_ns.unwrap_or(0) as f64 / 1e6;
    // The actual interval where it is known, else the requested one.
    let requested = facts.sample_interval_ns.unwrap_or(1_000_000);
    let actual = match series.unit {
        WeightUnit::Time => series.total() / series.samples.len().max(1) as u64,
        _ => requested,
    };
    let interval = actual as f64 / 1e6;
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
        "product": product.unwrap_or_else(|| series.title()),
        "initialSelectedThreads": hottest.into_iter().collect::<Vec<usize>>(),
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "sourceCodeIsNotOnSearchfox": true,
        "startTime": start,
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "version": 24,
    });
    let meta = chronosym_types::json::to_string(&meta)?;
    write!(out, "{{\"meta\":{meta},\"libs\":[")?;
    write_list(out, resolver.binaries(), |out, binary| {
        let name = Quoted(binary.name());
        let path = Quoted(binary.path().unwrap_or(binary.name()));
        let identity = Quoted(binary.identity().unwrap_or_default());
        write!(
            out,
            "\n{{\"name\":{name},\"path\":{path},\"debugName\":{name},\"debugPath\":{path},\
             \"breakpadId\":{identity},\"codeId\":null,\"arch\":null}}"
        )
    })?;
    write!(
        out,
        "],\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\"threads\":["
    )?;
    let markers = Markers::new(series);
    let mut main = FxHashMap::default();
    write_list(out, tracks, |mut out, track| {
        writeln!(out)?;
        let (timeline, thread) = (resolver.timeline(), track.thread);
        let process = timeline.thread_view(thread).map(|t| t.process);
        let is_main = *main.entry(process).or_insert(thread) == thread;
        let markers = markers.of(thread);
        thread::write(series, &labels, &track, markers, is_main, &mut out)
    })?;
    writeln!(out, "]}}")
}

/// Returns the name of a kind of code, and one of the viewer's colours.
fn category(kind: CodeKind) -> (&'static str, &'static str) {
    match kind {
        CodeKind::Managed => ("Managed", "blue"),
        CodeKind::Framework => ("Framework", "lightblue"),
        CodeKind::Runtime => ("Runtime", "purple"),
        CodeKind::Native => ("Native", "orange"),
        CodeKind::Kernel => ("Kernel", "red"),
        CodeKind::Stub => ("Stub", "yellow"),
        // One category must be grey: the viewer's default.
        CodeKind::Unnamed => ("Unnamed", "grey"),
    }
}
