//! What is in a trace, for programs.

use std::collections::BTreeSet;

use chronosym::ProcessView;
use chronosym::open::TraceGap;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::{Names, Summary, advice};
use crate::load::Loaded;
use crate::units::utc;

/// The contract's keys; what is absent is left out.
#[skip_serializing_none]
#[derive(Serialize)]
pub struct Object<'a> {
    format: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    start: Option<String>,
    duration_ns: u64,
    pointer_size: Option<u8>,
    processors: Option<u32>,
    lost_events: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joined: Vec<Joined<'a>>,
    processes: Vec<Process<'a>>,
    events: Vec<Event<'a>>,
    frames: Frames<'a>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    symbol_files: &'a BTreeSet<String>,
    diagnostics: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Gap<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    gaps_left_out: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A part of a trace that could not be used.
#[derive(Serialize)]
struct Gap<'a> {
    file: &'a str,
    offset: u64,
    bytes: u64,
    cause: &'static str,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Joined<'a> {
    name: &'a str,
    gives: &'a str,
    clock: &'a str,
    offset_ns: i64,
    error_ns: u64,
    /// The process in the timeline, and what it calls itself, where that is another id.
    pid: Option<u32>,
    own_pid: Option<u32>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Process<'a> {
    pid: Option<u32>,
    name: Option<&'a str>,
    command_line: Option<&'a str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    runtime: String,
    samples: u64,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Event<'a> {
    provider: &'a str,
    id: Option<u32>,
    version: Option<u32>,
    name: String,
    count: u64,
    stacks: u64,
}

#[derive(Serialize)]
struct Frames<'a> {
    #[serde(flatten)]
    all: &'a Names,
    with_line: u64,
    /// The innermost frames alone.
    #[serde(rename = "self")]
    own: &'a Names,
}

/// What is to be printed.
pub fn object<'a>(loaded: &'a Loaded, summary: &'a Summary) -> Object<'a> {
    let timeline = &loaded.timeline;
    let facts = timeline.facts();
    let start = facts.start_unix_ns.and_then(utc);
    let process = |process: ProcessView<'a>| Process {
        pid: process.pid,
        name: process.name,
        command_line: process.command_line,
        runtime: process.runtimes.join(", "),
        samples: summary.samples_of.get(&process.index).copied().unwrap_or(0),
    };
    let event = |t: &'a chronosym::EventTypeInfo| Event {
        provider: t.schema.provider_name(),
        id: t.schema.id(),
        version: t.schema.id().map(|_| t.schema.version()),
        name: t.schema.name().to_string(),
        count: t.count,
        stacks: t.stacks,
    };
    let joined = |part: &'a chronosym::JoinedRecording| Joined {
        name: &part.name,
        gives: part.gives,
        clock: part.clock.as_str(),
        offset_ns: part.offset_ns,
        error_ns: part.error_ns,
        pid: part.own_pid.map(|(_, pid)| pid),
        own_pid: part.own_pid.map(|(own, _)| own),
    };
    let gap = |it: &'a TraceGap| Gap {
        file: &it.name,
        offset: it.gap.offset,
        bytes: it.gap.length,
        cause: it.gap.cause.as_str(),
    };
    let events = timeline.event_types().iter().filter(|t| t.count > 0);
    let notes = loaded.notes.iter().cloned();
    Object {
        format: &facts.format,
        version: &facts.version,
        start: start.map(|text| text.replace(' ', "T").replace("TUTC", "Z")),
        duration_ns: facts.duration_ns,
        pointer_size: facts.pointer_size,
        processors: facts.processors,
        lost_events: loaded.report.lost_events,
        joined: facts.recordings.iter().map(joined).collect(),
        processes: timeline.processes().map(process).collect(),
        events: events.map(event).collect(),
        frames: Frames {
            all: &summary.frames,
            with_line: summary.with_line,
            own: &summary.own,
        },
        symbol_files: &summary.symbol_files,
        diagnostics: advice(loaded, summary).into_iter().chain(notes).collect(),
        gaps: loaded.report.gaps.iter().map(gap).collect(),
        gaps_left_out: loaded.report.gaps_left_out,
    }
}
