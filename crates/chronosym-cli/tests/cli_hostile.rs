//! Files made to take all time and memory there is: answered, or refused with a reason, within
//! bounds.
#![cfg(target_os = "linux")]

mod bounded;
mod common;

use std::process::Command;

use bounded::{bounded, path};
use chronosym_support::etl::{At, EtlWriter, Op, Options, Process, StackMode};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::synthetic;
use chronosym_support::trace::TraceInfo;
use common::*;

/// A trace of wall-clock samples: thread, stack.
fn trace(samples: impl IntoIterator<Item = (u64, Vec<u64>)>) -> Vec<u8> {
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for (time, (thread, stack)) in (1..).zip(samples) {
        trace.event(sample, time * 1000, thread, &stack, &2_u32.to_le_bytes());
    }
    trace.finish()
}

#[test]
fn a_perf_map_of_ranges_in_ranges() {
    const DEPTH: u64 = 40_000;
    let lines = (0..DEPTH).map(|i| format!("{:x} {:x} m{i}\n", 0x10_0000 + i, 2 * (DEPTH - i)));
    let map = file(lines.collect::<String>().as_bytes());
    let samples = (0..DEPTH).map(|i| (1, vec![0x10_0000 + i]));
    let trace = file(&trace(samples));
    let map = format!("{}={}", TraceInfo::default().process_id, path(&map));
    let run = bounded(&[
        "stacks",
        "--format",
        "folded",
        "--perf-map",
        &map,
        path(&trace),
    ]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), DEPTH as usize);
    assert!(run.stdout.contains(";m39999 1\n"), "{:.300}", run.stdout);
}

#[test]
fn a_hundred_thousand_stacks_are_whole() {
    let mut trace = Vec::new();
    synthetic::nettrace(1_000, 100_000, 100_000, &mut trace).expect("memory");
    let trace = file(&trace);
    let run = bounded(&["stacks", "--format", "folded", path(&trace)]);
    assert_eq!((run.status, &*run.stderr), (0, ""));
    assert!(!run.stdout.contains("left out"));
}

#[test]
fn one_deep_stack_on_many_threads() {
    let stack: Vec<u64> = (0..8_000).map(|i| 0x10_0000 + i * 16).collect();
    let trace = file(&trace((1..=10_000).map(|thread| (thread, stack.clone()))));
    let run = bounded(&["stacks", "--format", "text", path(&trace)]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("10,000 "), "{:.300}", run.stdout);
    // The memory of the nodes is reached before their number.
    assert!(run.stderr.contains("--max-memory"), "{}", run.stderr);
    assert!(run.stderr.contains(" of 10000 samples are left out"));
    // Without a node a thread it is one stack.
    let run = bounded(&["stacks", "--format", "folded", "--no-threads", path(&trace)]);
    assert_eq!((run.status, &*run.stderr), (0, ""));
    assert_eq!(run.stdout.lines().count(), 1);
    assert!(run.stdout.ends_with(" 10000\n"));
}

#[test]
fn one_long_kernel_part_under_many_user_parts() {
    const KERNEL: u64 = 0xffff_f800_0000_0000;
    const USERS: i64 = 1_000;
    let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let process = Process {
        pid: 7,
        image: "app.exe",
        ..Process::default()
    };
    w.process(At::us(1), Op::Start, &process).unwrap();
    w.thread(At::us(2), Op::Start, 7, 70).unwrap();
    for i in 1..=USERS {
        let at = At::us(i * 10);
        w.sample(at, KERNEL, 70).unwrap();
        for (mode, key) in [(StackMode::Kernel, 1), (StackMode::User, 1 + i as u64)] {
            w.stack_key(At::us(i * 10 + 1), mode, at, 7, 70, key)
                .unwrap();
        }
    }
    let end = At::us(USERS * 10 + 100);
    let kernel: Vec<u64> = (0..7_000).map(|i| KERNEL + 16 * i).collect();
    w.stack_definition(end, 35, 1, &kernel).unwrap();
    for i in 1..=USERS as u64 {
        w.stack_definition(end, 35, 1 + i, &[0x10_0000 + 16 * i])
            .unwrap();
    }
    let trace = file(&w.finish().unwrap());
    let run = bounded(&["info", path(&trace)]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let run = bounded(&["top", path(&trace)]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("1,000 "), "{:.300}", run.stdout);
}

#[test]
fn a_pipe_without_a_writer_is_not_an_object_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for device in [path(&pipe), "/dev/zero", path(folder.path())] {
        for option in ["--obj", "--pdb"] {
            let run = bounded(&["symbolize", option, device, "0x1000"]);
            assert_eq!(run.status, 1, "{option} {device}: {}", run.stdout);
            assert!(run.stderr.contains("not a regular file"), "{}", run.stderr);
        }
    }
}

#[test]
fn limits_can_be_set_and_are_named_when_they_are_reached() {
    let trace = file(&trace(
        (1..=10).map(|thread| (thread, vec![0x1000, 0x2000, 0x3000])),
    ));
    let all = bounded(&["stacks", "--format", "folded", path(&trace)]);
    assert_eq!((all.status, &*all.stderr), (0, ""));
    assert_eq!(all.stdout.lines().count(), 10);
    let few = bounded(&[
        "stacks",
        "--format",
        "folded",
        "--max-tree-nodes",
        "14",
        path(&trace),
    ]);
    assert_eq!(few.status, 0);
    // No samples are lost.
    assert_eq!(few.stdout.lines().count(), 10, "{}", few.stdout);
    assert!(
        few.stdout.contains(";[frames left out] 1\n"),
        "{}",
        few.stdout
    );
    assert!(few.stderr.contains("9 of 10 samples"), "{}", few.stderr);
    let map = file(b"1000 10 name\n2000 10 name\n");
    let map = format!("{}={}", TraceInfo::default().process_id, path(&map));
    let small = [
        "info",
        "--max-perf-map-bytes",
        "20",
        "--perf-map",
        &map,
        path(&trace),
    ];
    let run = bounded(&small);
    assert!(
        run.stderr.contains("--max-perf-map-bytes"),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn a_full_disk_under_every_stream_ends_no_run_in_a_panic() {
    let trace = file(&trace([(1, vec![0x1000])]));
    for command in ["info", "stacks", "top", "events", "methods", "modules"] {
        let full = || {
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap()
        };
        let status = chronosym()
            .args([command, path(&trace)])
            .stdout(full())
            .stderr(full())
            .status()
            .unwrap();
        // There is neither method nor module to list.
        let writes = !["methods", "modules"].contains(&command);
        assert_eq!(status.code(), Some(i32::from(writes)), "{command}");
        // Results are complete although notes cannot be written.
        let output = chronosym()
            .args([command, path(&trace)])
            .stderr(full())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}");
    }
}
