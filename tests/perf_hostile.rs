//! Recordings of perf and jitdumps crafted to take long or to use memory: their cost is linear in
//! their size.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use chronosym::{Input, Opener, Options, Timeline};
use chronosym_support::growth::{Size, Stopwatch, assert_growth};
use chronosym_support::perf::{JitdumpWriter, PerfAttr, PerfWriter};

const PID: u32 = 42;
const JIT: u64 = 0x7f00_0000_0000;

fn read(name: &str, bytes: Vec<u8>) -> (Arc<Timeline>, Duration) {
    let input = Input::stream(name, Cursor::new(bytes));
    let watch = Stopwatch::start();
    let recording = Opener::new().open([input]).expect("a recording");
    let (timeline, _) = recording.timeline(Options::default()).expect("readable");
    (timeline, watch.used())
}

/// Eight times the size may take up to 40 times the processor time, for caches; 64 times would be
/// quadratic.
fn grows(name: &str, few: u64, make: impl Fn(u64) -> Vec<u8>) -> Arc<Timeline> {
    let (small, large) = (make(few), make(8 * few));
    let mut found = None;
    assert_growth(name, 40.0, Duration::from_millis(100), |size| {
        let bytes = if size == Size::Small { &small } else { &large };
        let (timeline, took) = read(name, bytes.clone());
        found = Some(timeline);
        took
    });
    found.expect("it was read")
}

fn perf() -> PerfWriter {
    let mut perf = PerfWriter::new(PerfAttr::default());
    perf.comm(1, PID, PID, "app");
    perf
}

#[test]
fn mappings_side_by_side_over_each_other_and_inside_each_other() {
    let cases: [(u64, u64, u64); 3] = [(0x2000, 0x1000, 0), (0, 0x1000, 1), (0x2000, 0x1000, 2)];
    for (step, size, kind) in cases {
        let timeline = grows("perf.data", 1_000, |many| {
            let mut perf = perf();
            if kind == 2 {
                perf.mmap2(2, PID, 0x10_0000, many * 0x2000, 0, "/lib/big.so");
            }
            for n in 0..many {
                let path = format!("/lib/{}.so", n % 100);
                perf.mmap2(3 + n, PID, 0x10_0000 + n * step, size, n << 12, &path);
            }
            perf.sample(4 + many, PID, PID, &[0x10_0010]);
            perf.file()
        });
        let process = timeline.find_process(PID, None).expect("it is there");
        assert!(timeline.images(process).count() >= 8_000);
    }
}

#[test]
fn processes_forked_from_forks() {
    let timeline = grows("perf.data", 500, |many| {
        let mut perf = perf();
        perf.mmap2(2, PID, 0x10_0000, 0x1000, 0, "/lib/a.so");
        let mut parent = PID;
        for n in 0..many {
            let pid = 1_000 + n as u32;
            perf.fork(3 + n, pid, parent, pid);
            parent = pid;
        }
        perf.sample(4 + many, parent, parent, &[0x10_0010]);
        perf.file()
    });
    let last = timeline.find_process(4_999, None).expect("it is there");
    assert_eq!(timeline.images(last).count(), 1);
}

#[test]
fn threads_names_symbols_and_events_without_end() {
    grows("perf.data", 2_000, |many| {
        let mut perf = perf();
        for n in 0..many {
            perf.comm(3 + n, PID, PID, &format!("name {n}"));
            let tid = 100 + n as u32;
            let body = perf.body().u32(PID).u32(PID).u32(tid).u32(PID);
            perf.kernel_record(7, 0, body.u64(3 + n), 3 + n, PID);
            let address = 0xffff_ffff_c000_0000 + n * 0x100;
            let body = perf.body().u64(address).u32(0x80).u16(1).u16(0);
            perf.kernel_record(17, 0, body.name(&format!("bpf_{n}")), 3 + n, PID);
            perf.round();
        }
        perf.file()
    });
    // In pipe mode, records describe the events.
    grows("perf.data", 4_000, |many| {
        let mut perf = perf();
        for n in 0..many {
            perf.attr(PerfAttr {
                ids: vec![n + 2],
                ..PerfAttr::default()
            });
        }
        perf.pipe()
    });
}

#[test]
fn code_over_code() {
    let load = |at: fn(u64) -> u64| {
        grows("jit-42.dump", 1_500, move |many| {
            let mut dump = JitdumpWriter::new(false, PID, 0);
            for n in 0..many {
                dump.load(10 + n, PID, at(n), &format!("f{n}"), &[0x90; 64]);
            }
            dump.file().to_vec()
        })
    };
    for at in [
        |n| JIT + n * 64,
        |_| JIT,
        |n| JIT + n * 32,
        |n| JIT - n * 32,
    ] {
        let timeline = load(at);
        let process = timeline.find_process(PID, None).expect("it is there");
        assert_eq!(timeline.bodies(process).count(), 12_000);
    }
}

#[test]
fn code_that_is_moved_onto_itself() {
    let cases: [(u64, u64); 3] = [(0, 0), (16, 0), (0x1000, 0x1000)];
    for (there, back) in cases {
        grows("jit-42.dump", 1_500, |many| {
            let mut dump = JitdumpWriter::new(false, PID, 0);
            let index = dump.load(1, PID, JIT, "f", &[0x90; 64]);
            let mut at = JIT;
            for n in 0..many {
                let to = if n % 2 == 0 { at + there } else { at - back };
                dump.moved(2 + n, PID, at, to, 64, index);
                at = to;
            }
            dump.file().to_vec()
        });
    }
    // One that covers all others.
    grows("jit-42.dump", 1_500, |many| {
        let mut dump = JitdumpWriter::new(false, PID, 0);
        for n in 0..many {
            dump.load(1 + n, PID, JIT + n * 64, "f", &[0x90; 64]);
        }
        let index = dump.load(many + 1, PID, JIT - 0x1000, "big", &[]);
        dump.moved(many + 2, PID, JIT, JIT + many * 64, 64, index);
        dump.file().to_vec()
    });
}

/// A process that runs many programs in succession: the mappings of ended programs are not visited
/// again.
#[test]
fn programs_that_a_process_runs_one_after_the_other() {
    let timeline = grows("perf.data", 4_000, |many| {
        let mut perf = perf();
        for n in 0..many {
            perf.mmap2(3 + 3 * n, PID, 0x10_0000, 0x1000, 0, "/bin/app");
            perf.exec(4 + 3 * n, PID, "app");
        }
        perf.file()
    });
    let process = timeline.find_process(PID, None).expect("it is there");
    assert_eq!(timeline.images(process).count(), 32_000);
}
