//! CPU profiles of Linux as timelines, alone and joined with recordings of runtimes, from synthetic
//! recordings.

mod clocks;
mod code;
mod losses;
mod processes;
mod profile;
mod stacks;

use std::io::Cursor;
use std::sync::Arc;

use chronosym::{Diagnostics, Frame, Input, OpenError, Opener, Options, Position, Timeline};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::Method;
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::trace::TraceInfo;

const SECOND: u64 = 1_000_000_000;
const PID: u32 = 4242;
const JIT: u64 = 0x7f00_0000_0000;

type Read = Result<(Arc<Timeline>, Diagnostics), OpenError>;

fn open_with(opener: Opener, files: &[(&str, &[u8])]) -> Read {
    let inputs = files
        .iter()
        .map(|(name, bytes)| Input::stream(*name, Cursor::new(bytes.to_vec())));
    opener.open(inputs)?.timeline(Options::default())
}

fn open(files: &[(&str, &[u8])]) -> Arc<Timeline> {
    let (timeline, _) = open_with(Opener::new(), files).expect("it can be read");
    timeline
}

fn frame(timeline: &Timeline, pid: u32, address: u64, time: u64) -> Frame {
    let process = timeline.process_of(pid, time).expect("the process");
    let mut frames = timeline.frames(process, address, time, Position::Exact, None);
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

fn module(timeline: &Timeline, pid: u32, address: u64, time: u64) -> Option<String> {
    frame(timeline, pid, address, time)
        .module()
        .map(str::to_owned)
}

fn name(timeline: &Timeline, address: u64, time: u64) -> Option<String> {
    frame(timeline, PID, address, time)
        .name()
        .ok()
        .map(str::to_owned)
}

/// Returns a profile whose clock is at one second at its start, with one process that has a
/// library.
fn profile() -> PerfWriter {
    profile_with(PerfAttr::default())
}

fn profile_with(attr: PerfAttr) -> PerfWriter {
    let mut perf = PerfWriter::new(attr);
    perf.comm(SECOND, PID, PID, "app");
    perf.mmap2(
        SECOND + 1,
        PID,
        0x10_0000,
        0x1_0000,
        0x2000,
        "/lib/libone.so",
    );
    perf
}

/// Returns a recording of methods, each with its name, address, start and end, in ns since the
/// trace began.
fn runtime(info: TraceInfo, bodies: &[(&str, u64, i64, Option<i64>)]) -> Vec<u8> {
    let mut writer = NettraceWriter::v4().info(info);
    let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    let unload = writer.event_type("Microsoft-Windows-DotNETRuntime", 144, 2);
    for (id, &(name, start, from, to)) in bodies.iter().enumerate() {
        let method = Method {
            id: id as u64 + 1,
            start,
            size: 0x100,
            flags: 8,
            names: Some(("N.T", name, "void ()")),
            ..Method::default()
        };
        writer.event(load, from, 7, &[], &method.encode(2));
        if let Some(to) = to {
            writer.event(unload, to, 7, &[], &method.encode(2));
        }
    }
    writer.finish()
}

fn started_at(ns: u64) -> TraceInfo {
    TraceInfo {
        qpc_start: ns as i64,
        process_id: PID,
        ..TraceInfo::default()
    }
}
