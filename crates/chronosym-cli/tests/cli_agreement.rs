//! Compares numbers between the formats, and with other programs' results for the same trace.

mod common;
mod viewers;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use serde_json::Value;

use viewers::{
    Leaves, TRACES, bare, json, of_firefox, of_folded, of_otlp, of_perfetto, of_report,
    of_speedscope, of_svg, stacks, trace, whole,
};

#[test]
fn totals_are_the_same_in_each_format() {
    for name in TRACES {
        let trace = trace(name);
        let firefox = of_firefox(&json(&trace, "firefox"));
        let otlp = of_otlp(&stacks(&trace, "otlp"));
        assert_eq!(firefox, otlp, "{name}");
        let times = |leaves: &Leaves| -> BTreeMap<String, u64> {
            let times = leaves.iter().map(|(name, leaf)| (name.clone(), leaf.1));
            times.collect()
        };
        assert_eq!(
            times(&of_speedscope(&json(&trace, "speedscope"))),
            times(&firefox),
            "{name}"
        );
        assert_eq!(
            times(&of_perfetto(&json(&trace, "perfetto"))),
            times(&firefox),
            "{name}"
        );
        let svg = String::from_utf8(stacks(&trace, "svg")).unwrap();
        assert_eq!(times(&of_svg(&svg)), times(&firefox), "{name}");
        let html = String::from_utf8(stacks(&trace, "html")).unwrap();
        assert_eq!(times(&of_report(&html)), times(&firefox), "{name}");
        let folded = of_folded(&String::from_utf8(stacks(&trace, "folded")).unwrap());
        let mut counts = BTreeMap::new();
        for (name, leaf) in &firefox {
            *counts.entry(bare(name)).or_insert(0u64) += leaf.0.unwrap();
        }
        assert_eq!(folded, counts, "{name}");
        let lines = String::from_utf8(stacks(&trace, "jsonl")).unwrap();
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let weight = |line: &Value| {
            line["weight_ns"]
                .as_u64()
                .or(line["weight"].as_u64())
                .unwrap()
        };
        let sums = (lines.len() as u64, lines.iter().map(weight).sum());
        assert_eq!(whole(&firefox), sums, "{name}");
        assert!(sums.0 > 100, "{name}");
    }
}

/// The samples of each thread as JSON lines have them: time and weight in ns.
fn of_lines(trace: &str) -> BTreeMap<u64, Vec<(u64, u64)>> {
    let lines = String::from_utf8(stacks(&viewers::trace(trace), "jsonl")).unwrap();
    let mut threads: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| line[key].as_u64().unwrap();
        let thread = threads.entry(of("tid")).or_default();
        thread.push((of("time_ns"), of("weight_ns")));
    }
    threads
}

/// When each thread was in any event with a stack, ns since the trace began.
fn events_with_stacks(trace: &str) -> BTreeMap<u64, Vec<u64>> {
    let file = fs::File::open(viewers::trace(trace)).unwrap();
    let mut zip = zip::ZipArchive::new(file).unwrap();
    let mut bytes = Vec::new();
    zip.by_index(0).unwrap().read_to_end(&mut bytes).unwrap();
    let mut reader = chronosym_nettrace::Reader::new(bytes.as_slice(), Default::default()).unwrap();
    let mut threads: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    while let Some(region) = reader.next_region().unwrap() {
        for record in region.in_time_order() {
            let stack = record.stack.map(|row| region.stack(row).iter().count());
            if stack.is_some_and(|frames| frames > 0) {
                let times = threads.entry(record.thread_id).or_default();
                times.push(record.time_ns);
            }
        }
    }
    threads.values_mut().for_each(|times| times.sort_unstable());
    threads
}

/// The conversion by `dotnet-trace convert --format speedscope`: each event with a stack, of any
/// type, lasts until the thread's next one. So the time of a thread is that from its first such
/// event to its last, and differs from ours in two ways. The last tick also represents time. And
/// the profiler does not sample a thread without managed frames, such as one of the pool that waits
/// for work: ours then has no time for it, while the conversion extends its last stack, for
/// seconds.
#[test]
fn times_of_threads_are_those_of_dotnet_traces_conversion() {
    for trace in [
        "clr10/traces/all.nettrace.zip",
        "clr10/traces/default.nettrace.zip",
        "clr31/workload/traces/all.nettrace.zip",
        "clr31/live/traces/full.nettrace.zip",
    ] {
        let (ours, events) = (of_lines(trace), events_with_stacks(trace));
        // The thread that is always sampled shows when the profiler sampled.
        let always = ours.values().max_by_key(|samples| samples.len()).unwrap();
        let ticks: Vec<u64> = always.iter().map(|(time, _)| *time).collect();
        let distance = ticks
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max()
            .unwrap();
        let (mut alike, mut absent) = (0, 0);
        for (thread, samples) in ours.iter().filter(|(_, samples)| samples.len() >= 100) {
            let own: u64 = samples.iter().map(|(_, weight)| weight).sum();
            let times = &events[thread];
            let theirs = times[times.len() - 1] - times[0];
            let unseen: u64 = times
                .windows(2)
                .map(|pair| {
                    // Threads are looked at one after the other.
                    const TICK: u64 = 1_000_000;
                    let first = ticks.partition_point(|&tick| tick <= pair[0] + TICK);
                    let last = ticks.partition_point(|&tick| tick + TICK < pair[1]);
                    if last >= first + 2 {
                        pair[1] - ticks[first]
                    } else {
                        0
                    }
                })
                .sum();
            let seen = theirs - unseen;
            let bound = if unseen == 0 {
                theirs / 50
            } else {
                (seen / 50).max(distance)
            };
            assert!(
                own.abs_diff(seen) <= bound,
                "{trace}, thread {thread}: {own} ns, {theirs} by the conversion, {unseen} of them without a look"
            );
            if unseen == 0 { alike += 1 } else { absent += 1 }
        }
        assert!(alike >= 5, "{trace}: {alike}");
        assert_eq!(
            absent > 0,
            trace.contains("clr31/workload"),
            "{trace}: {absent}"
        );
    }
}

/// The markers of a Firefox profile by kind: how many, and how many of them have an end.
fn markers(file: &Value) -> BTreeMap<String, (u64, u64)> {
    let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for thread in viewers::list(&file["threads"]) {
        let markers = &thread["markers"];
        let ends = viewers::list(&markers["endTime"]).iter();
        for (data, end) in viewers::list(&markers["data"]).iter().zip(ends) {
            let kind = data["type"].as_str().unwrap().to_owned();
            let kind = kinds.entry(kind).or_default();
            *kind = (kind.0 + 1, kind.1 + u64::from(end.is_number()));
        }
    }
    kinds
}

#[test]
fn markers_are_the_events_of_the_runtime() {
    let name = "clr10/traces/all.nettrace.zip";
    let events = |id: u32| {
        let event = format!("Microsoft-Windows-DotNETRuntime/{id}");
        let trace = common::arg(name);
        let out = common::run(&["events", "--format", "jsonl", "--event", &event, &trace]);
        out.stdout.lines().count() as u64
    };
    let kinds = markers(&json(&trace(name), "firefox"));
    let count = |kind: &str| kinds[kind].0;
    assert_eq!(count("GC"), events(1));
    assert_eq!(count("pause") + count("sampler pause"), events(9));
    assert_eq!(count("exception"), events(80));
    assert_eq!(count("JIT"), events(145));
    // Each collection and pause of this trace ends in it, and each method was loaded; a throw has
    // no end.
    for (kind, (count, ended)) in &kinds {
        assert!(*count > 10, "{kinds:?}");
        let expected = if kind == "exception" { 0 } else { *count };
        assert!(
            ended.abs_diff(expected) <= count / 100,
            "{kind}: {ended} of {count}"
        );
    }

    // The limit is named, and the omitted frames are reported.
    let trace = common::arg(name);
    let arguments = [
        "stacks",
        "--format",
        "firefox",
        "--max-markers",
        "100",
        &trace,
    ];
    let run = common::run(&arguments);
    assert!(
        run.stderr
            .contains("(limit markers: --max-markers raises it)"),
        "{}",
        run.stderr
    );
    let few = markers(&serde_json::from_str(&run.stdout).unwrap());
    assert!(
        (50..=100).contains(&few.values().map(|kind| kind.0).sum::<u64>()),
        "{few:?}"
    );
}
