//! Traces whose payloads were made to take the square of their size or far more memory.
#![cfg(target_os = "linux")]

mod bounded;
mod common;

use bounded::holds;
use chronosym_support::etl::{At, EtlWriter, Event, Options, guid};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{self, Method, TreeNode};
use chronosym_support::payload::{Payload, jitting_started};
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::trace::{EventSpec, TraceInfo};

const STACKS: &[&str] = &["stacks", "--format", "folded"];

/// Returns a trace with a method, the chunks of its inline tree, and this many samples at different
/// addresses.
fn inlined(tree: &[u8], pieces: usize, samples: u64) -> Vec<u8> {
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let load = trace.event_type("Microsoft-Windows-DotNETRuntime", 143, 1);
    let piece = trace.event_type("Microsoft-Windows-DotNETRuntimePrivate", 189, 0);
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let method = Method {
        id: 1,
        start: 0x10_0000,
        size: 0x10_0000,
        names: Some(("T", "Outer", "void ()")),
        code_version: 4,
        ..Method::default()
    };
    trace.event(load, 1, 1, &[], &method.encode(1));
    for bytes in payload::rich_debug_info(0, 1, 4, tree, tree.len().div_ceil(pieces)) {
        trace.event(piece, 2, 1, &[], &bytes);
    }
    for at in 0..samples {
        trace.event(
            sample,
            1_000 + at as i64,
            1,
            &[0x10_0000 + 16 * at],
            &[2, 0, 0, 0],
        );
    }
    trace.finish()
}

#[test]
fn inline_trees() {
    let deep = |n: usize| -> Vec<TreeNode> {
        (0..n as u32)
            .map(|at| {
                (
                    u64::from(at) + 1,
                    0,
                    if at as usize + 1 < n { at + 1 } else { 0 },
                    0,
                )
            })
            .collect()
    };
    let runs = holds("calls in calls", STACKS, 500, |n| {
        let mappings: Vec<_> = (0..200).map(|at| (0, n as u32 - 1, 16 * at)).collect();
        inlined(&payload::inline_tree(&deep(n), &mappings), 20, 200)
    });
    assert!(runs[0].stdout.contains("Outer"), "{:.300}", runs[0].stdout);
    holds("calls in calls, each with code", &["inlining"], 500, |n| {
        let mappings: Vec<_> = (0..n as u32).map(|at| (0, at, 16 * at)).collect();
        inlined(&payload::inline_tree(&deep(n), &mappings), 20, 200)
    });
    holds("calls beside calls", STACKS, 4_000, |n| {
        let nodes: Vec<_> = (0..n as u32)
            .map(|at| {
                (
                    u64::from(at) + 1,
                    0,
                    u32::from(at == 0),
                    if at > 0 { (at + 1) % n as u32 } else { 0 },
                )
            })
            .collect();
        inlined(
            &payload::inline_tree(&nodes, &[(0, n as u32 - 1, 0)]),
            20,
            200,
        )
    });
    holds("all lead to all", STACKS, 4_000, |n| {
        let nodes: Vec<_> = (0..n as u32)
            .map(|at| (1, 0, (at + 1) % n as u32, (at + 2) % n as u32))
            .collect();
        inlined(&payload::inline_tree(&nodes, &[(0, 1, 0)]), 20, 200)
    });
    holds("mappings of one place", STACKS, 4_000, |n| {
        let mappings: Vec<_> = (0..n as u32).map(|at| (at, 0, 0)).collect();
        inlined(&payload::inline_tree(&deep(3), &mappings), 20, 200)
    });
    holds("a tree in many pieces", STACKS, 1_000, |n| {
        inlined(&payload::inline_tree(&deep(4 * n), &[(0, 0, 0)]), 10 * n, 1)
    });
}

#[test]
fn trace_logging() {
    let source = guid(0xa8a7_1ac1, 0x040f, 0x54a2, 0x07ca_00a8_9b5a_b761);
    let logged = |items: &mut dyn Iterator<Item = Vec<u8>>, payload: &[u8]| {
        let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
        for (at, mut item) in items.enumerate() {
            let size = item.len() as u16;
            item[..2].copy_from_slice(&size.to_le_bytes());
            let event = Event {
                provider: source,
                channel: 11,
                extended: &[(11, &item)],
                payload,
                ..Event::default()
            };
            w.event(At::us(at as i64), &event).unwrap();
        }
        w.finish().unwrap()
    };
    const EVENTS: &[&str] = &["events"];
    let runs = holds("a description an event", EVENTS, 300, |n| {
        let item = |at: usize| format!("\0\0\0E{at}\0{}", "f\0\x08".repeat(300)).into_bytes();
        logged(&mut (0..n).map(item), &[1; 1_200])
    });
    assert!(runs[0].stdout.contains("E299"), "{:.300}", runs[0].stdout);
    holds("structs in structs", EVENTS, 100, |n| {
        let item = [&b"\0\0\0E\0"[..], &b"s\0\x98\x01".repeat(2_000), b"f\0\x08"].concat();
        logged(&mut (0..n).map(|_| item.clone()), &[1; 4])
    });
    holds("one long name for all", EVENTS, 60, |n| {
        let item = |at: usize| {
            [
                format!("\0\0\0E{at}").into_bytes(),
                vec![b'n'; 20_000],
                b"\0f\0\x08".to_vec(),
            ]
            .concat()
        };
        logged(&mut (0..n).map(item), &[1; 4])
    });
    holds("arrays of empty texts", EVENTS, 100, |n| {
        // The maximum count that fits in two bytes, without a payload.
        let item = b"\0\0\0E\0a\0\x41\0".to_vec();
        let payload = [&[0xff; 2][..], &[0; 60_000]].concat();
        logged(&mut (0..n).map(|_| item.clone()), &payload)
    });
}

#[test]
fn descriptions_of_an_event_with_many_keywords_are_read_in_linear_time() {
    const PROVIDER: [u8; 16] = [7; 16];
    const EVENT_INFO: [u8; 16] = guid(0xbbcc_f6c1, 0x6cd1, 0x48c4, 0x80ff_8394_82e3_7671);
    let runs = holds("descriptions", &["info"], 4_000, |count| {
        let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
        for keyword in 0..count as u64 {
            let event = Event {
                provider: PROVIDER,
                id: 7,
                keyword,
                ..Event::default()
            };
            etl.event(At::us(keyword as i64), &event).unwrap();
        }
        // Provider, no decoding GUID, id; nothing else is stated.
        let mut info = [PROVIDER, [0; 16]].concat();
        info.extend([7, 0]);
        info.resize(128, 0);
        for _ in 0..count {
            etl.classic(At::ms(100), EVENT_INFO, 32, 2, &info).unwrap();
        }
        etl.finish().unwrap()
    });
    assert!(
        runs[1].stdout.contains("32,000  0707"),
        "{}",
        runs[1].stdout
    );
}

/// Runs each command on a trace that exceeds the memory budget. Each reports what was omitted.
fn reaches_the_budget(name: &str, trace: &[u8], commands: &[&[&str]]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("input");
    std::fs::write(&file, trace).unwrap();
    for command in commands {
        let run = bounded::bounded(&[command, &[bounded::path(&file)][..]].concat());
        run.assert_ended_well(name);
        let is_said = |text: &String| text.contains("--max-memory");
        assert!(
            is_said(&run.stderr) || is_said(&run.stdout),
            "{name}: {command:?}"
        );
    }
}

const ALL: &[&[&str]] = &[
    &["info"],
    &["top"],
    &["threads"],
    STACKS,
    &["stacks", "--format", "html"],
    &["stacks", "--format", "firefox"],
];

#[test]
fn addresses_beyond_the_budget() {
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for at in 0..20_000_u64 {
        let stack: Vec<u64> = (0..64)
            .map(|frame| 0x1000 + 16 * (64 * at + frame))
            .collect();
        trace.event(sample, at as i64, 1, &stack, &[2, 0, 0, 0]);
    }
    reaches_the_budget("addresses", &trace.finish(), ALL);
}

#[test]
fn processes_and_threads_beyond_the_budget() {
    let mut perf = PerfWriter::new(PerfAttr::default());
    for pid in 1..100_000 {
        perf.sample(pid.into(), pid, pid, &[0x1000]);
    }
    let commands: &[&[&str]] = &[&["threads"], &["stacks", "--format", "firefox"]];
    reaches_the_budget("processes", &perf.file(), commands);
    let mut perf = PerfWriter::new(PerfAttr::default());
    for tid in 1..200_000 {
        perf.sample(tid.into(), 1, tid, &[0x1000]);
    }
    reaches_the_budget("threads", &perf.file(), commands);
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for at in 1..500_000_u64 {
        trace.event(sample, at as i64, at, &[0x1000], &[2, 0, 0, 0]);
    }
    reaches_the_budget(
        "threads of a runtime",
        &trace.finish(),
        &[&["info"], &["threads"]],
    );
    let mut perf = PerfWriter::new(PerfAttr::default());
    for at in 0..150_000_u64 {
        perf.mmap2(at, 7, 0x1000 * at, 0x1000, 0, &format!("/lib/{at:06}"));
    }
    let commands: &[&[&str]] = &[&["info"], &["modules"], STACKS];
    reaches_the_budget("mappings", &perf.file(), commands);
}

#[test]
fn a_smaller_budget_keeps_earlier_data() {
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let load = trace.event_type("Microsoft-Windows-DotNETRuntime", 143, 1);
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let method = Method {
        id: 1,
        start: 0x1000,
        size: 64,
        names: Some(("T", "First", "void ()")),
        ..Method::default()
    };
    trace.event(load, 1, 1, &[], &method.encode(1));
    trace.event(sample, 2, 1, &[0x1010], &[2, 0, 0, 0]);
    trace.flush();
    for at in 0..50_000_u64 {
        trace.event(
            sample,
            3 + at as i64,
            1,
            &[0x10_0000 + 16 * at],
            &[2, 0, 0, 0],
        );
    }
    let file = common::file(&trace.finish());
    let path = file.to_str().unwrap();
    let whole = common::run(&["stacks", "--format", "folded", path]);
    assert!(!whole.stderr.contains("--max-memory"), "{}", whole.stderr);
    let cut = common::run(&[
        "stacks",
        "--format",
        "folded",
        "--max-memory",
        "4000000",
        path,
    ]);
    assert!(
        cut.stderr.contains("limit memory: --max-memory raises it"),
        "{}",
        cut.stderr
    );
    assert!(cut.stdout.contains("T.First 1"), "{:.300}", cut.stdout);
    let (lines, all) = (cut.stdout.lines().count(), whole.stdout.lines().count());
    assert!(100 < lines && lines < all / 2, "{lines} of {all}");
}

/// No output calls a trace empty whose samples are beyond the memory limit.
#[test]
fn samples_beyond_the_memory_limit_are_not_called_missing() {
    let mut trace = methods((0..20_000).map(|id| format!("M{id}")));
    trace.sequence_point();
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    trace.event(sample, 60_000, 1, &[0x1010], &[2, 0, 0, 0]);
    let file = common::file(&trace.finish());
    let path = file.to_str().unwrap();
    let limit = "before the memory limit (--max-memory raises it)";
    for command in [
        &["top", path][..],
        &["stacks", path],
        &["threads", path],
        &["symbols", path],
        &["info", path],
        &["diff", path, path],
        &["runtime", "gc", path],
        &["top", "--event", "Microsoft-Windows-DotNETRuntime/80", path],
        &[path],
    ] {
        let whole = common::run(command);
        let whole = format!("{}{}", whole.stdout, whole.stderr);
        assert!(!whole.contains("memory limit"), "{command:?}: {whole}");
        let cut = common::run(&[command, &["--max-memory", "2000000"]].concat());
        let cut = format!("{}{}", cut.stdout, cut.stderr).replace("\n  ", " ");
        assert!(cut.contains(limit), "{command:?}: {cut}");
    }
}

/// Starts a trace with methods of 64 bytes, each beside the next, from 0x1000 on.
fn methods(names: impl Iterator<Item = String>) -> NettraceWriter {
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let load = trace.event_type("Microsoft-Windows-DotNETRuntime", 143, 1);
    for (id, name) in (0..).zip(names) {
        let method = Method {
            id: id + 1,
            start: 0x1000 + 64 * id,
            size: 64,
            names: Some(("T", &name, "void ()")),
            ..Method::default()
        };
        trace.event(load, id as i64, 1, &[], &method.encode(1));
    }
    trace
}

/// Returns a trace of 20 methods with long names, and samples of them by their numbers.
fn long_names(stacks: impl Iterator<Item = Vec<u64>>) -> Vec<u8> {
    let name = "x".repeat(25_000);
    let mut trace = methods((0..20).map(|id| format!("{id:02}{name}")));
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for (time, stack) in (100..).zip(stacks) {
        let stack: Vec<u64> = stack.iter().map(|id| 0x1010 + 64 * id).collect();
        trace.event(sample, time, 1, &stack, &[2, 0, 0, 0]);
    }
    trace.finish()
}

/// An output repeats a name for each frame: 2 MB of such a trace made 2 GB.
#[test]
fn names_of_the_maximum_length_of_an_event() {
    let stacks = (0..2_000).map(|at| (0..8).map(|depth| (at >> depth) % 20).collect());
    let file = common::file(&long_names(stacks));
    let path = file.to_str().unwrap();
    let run = bounded::bounded(&["stacks", "--format", "jsonl", path]);
    run.assert_ended_well("long names");
    let first: serde_json::Value =
        serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    let frame = &first["frames"][0];
    let name = frame["name"].as_str().unwrap();
    assert_eq!(name.chars().count(), "T.".len() + 4096 + 1);
    assert!(name.ends_with('\u{2026}'), "{:.40}", name);
    assert_eq!(frame["name_reason"], "LimitReached");
    assert!(run.stdout.len() < 100 << 20, "{}", run.stdout.len());
    // Pictures have a name for each box.
    for format in ["html", "svg"] {
        let run = bounded::bounded(&["stacks", "--format", format, path]);
        run.assert_ended_well(format);
        assert!(run.stdout.len() > 10_000, "{format}");
        assert!(
            run.stdout.len() < 32 << 20,
            "{format}: {}",
            run.stdout.len()
        );
    }
}

/// Formats that repeat frames end at a size, whatever the stacks are.
#[test]
fn the_size_of_an_output_is_limited() {
    let callers = || 0..20;
    let stacks = (0..400).map(|at| [at % 20, at / 20].into_iter().chain(callers()).collect());
    let file = common::file(&long_names(stacks));
    let path = file.to_str().unwrap();
    for format in ["folded", "jsonl"] {
        let stacks = ["stacks", "--format", format, path];
        let run = common::run(&[&stacks[..], &["--max-memory", "2000000"]].concat());
        assert_eq!(run.status, 1);
        let reason =
            "the output exceeds 32,000,000 bytes, 16 times the memory budget; --max-memory";
        assert!(run.stderr.contains(reason), "{}", run.stderr);
        assert!(run.stdout.len() <= 32_000_000 && run.stdout.lines().count() > 100);
        let run = common::run(&stacks);
        assert_eq!(run.stdout.lines().count(), 400, "{}", run.stderr);
    }
    for format in ["text", "jsonl"] {
        let events = ["events", "--format", format, path];
        let run = common::run(&[&events[..], &["--max-memory", "2000"]].concat());
        assert_eq!(run.status, 1);
        let reason = "the output exceeds 32,000 bytes, 16 times the memory budget";
        assert!(run.stderr.contains(reason), "{}", run.stderr);
        assert!(run.stdout.len() <= 32_000, "{}", run.stdout.len());
        let run = common::run(&events);
        assert!(run.stdout.len() > 50_000, "{}", run.stdout.len());
    }
}

/// Returns numbers whose hashes are equal if the multiplier is known, as in the most widely used
/// map.
fn alike(n: usize) -> impl Iterator<Item = u64> {
    const BY: u64 = 0xf135_7aea_2e62_a9c5;
    let inverse = (0..6).fold(1_u64, |x, _| {
        x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(BY)))
    });
    (1..=n as u64).map(move |at| at.wrapping_mul(inverse))
}

#[test]
fn numbers_whose_hashes_are_one() {
    const INFO: &[&str] = &["info"];
    holds("threads", INFO, 8_000, |n| {
        let mut trace = NettraceWriter::v5().info(TraceInfo::default());
        let load = trace.event_type("Microsoft-Windows-DotNETRuntime", 143, 1);
        for (at, thread) in (1..).zip(alike(n)) {
            let method = Method {
                id: thread,
                module: thread,
                start: 0x1000 + 64 * at,
                size: 64,
                names: Some(("T", "M", "void ()")),
                ..Method::default()
            };
            let payload = method.encode(1);
            trace.record(&EventSpec::new(load, at as i64, thread).payload(&payload));
        }
        trace.finish()
    });
    holds("addresses", STACKS, 8_000, |n| {
        let mut trace = NettraceWriter::v5().info(TraceInfo::default());
        let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        for (at, address) in (1..).zip(alike(n)) {
            trace.event(sample, at, address, &[address], &[2, 0, 0, 0]);
        }
        trace.finish()
    });
    holds("paths of images", INFO, 4_000, |n| {
        let mut perf = PerfWriter::new(PerfAttr::default());
        for at in 0..n as u64 {
            perf.mmap2(at, 7, 0x1000 * at, 0x1000, 0, &format!("/lib/{at:011}"));
        }
        perf.file()
    });
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Writes `n` loads of `T.M` from time `n` on, each with the id and address that `of` states.
fn load_methods(trace: &mut NettraceWriter, n: u64, of: impl Fn(u64) -> (u64, u64)) {
    let load = trace.event_type(RUNTIME, 143, 1);
    for at in 0..n {
        let (id, start) = of(at);
        let method = Method {
            id,
            start,
            size: 64,
            flags: 8,
            names: Some(("T", "M", "void ()")),
            ..Method::default()
        };
        trace.event(load, (n + at) as i64, 1, &[], &method.encode(1));
    }
}

#[test]
fn runtime_events_in_bulk() {
    holds(
        "compilations that never end",
        &["runtime", "jit"],
        8_000,
        |n| {
            let mut trace = NettraceWriter::v5().info(TraceInfo::default());
            let start = trace.event_type(RUNTIME, 145, 1);
            for at in 0..n as u64 {
                let names = ("T", "M", "void ()");
                let payload = jitting_started(1, at, 1, 0x0600_0001, 9, names, 0);
                trace.event(start, at as i64, 1, &[], &payload);
            }
            load_methods(&mut trace, n as u64, |at| (n as u64 + at, 0x1000 + 64 * at));
            trace.finish()
        },
    );
    holds("decisions about one method", &["inlining"], 8_000, |n| {
        let mut trace = NettraceWriter::v5().info(TraceInfo::default());
        let inlined = trace.event_type(RUNTIME, 185, 0);
        let rejected = trace.event_type(RUNTIME, 192, 0);
        for at in 0..n as u64 {
            let callee = format!("C{at}");
            let names = || {
                let own = ("T", "M", "void ()");
                let names = Payload::new().names(own).names(own);
                names.names(("T", &callee, "void ()"))
            };
            trace.event(inlined, at as i64, 1, &[], &names().u16(0).finish());
            let reason = names().u32(1).wide("recursive").u16(0).finish();
            trace.event(rejected, at as i64, 1, &[], &reason);
        }
        // Bodies that follow each other at one address, all with the same name.
        load_methods(&mut trace, n as u64, |_| (1, 0x1000));
        trace.finish()
    });
}
