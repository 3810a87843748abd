//! OTLP profiles as input: what `stacks` writes is read with the same totals, and `otlp` changes only
//! what it names.

mod common;

use std::collections::BTreeMap;

use common::*;

const TRACES: [&str; 3] = [
    "clr10/traces/all.nettrace.zip",
    "clr10/traces/linux.nettrace.zip",
    "clr31/workload/traces/all.nettrace.zip",
];

fn otlp(trace: &str) -> Vec<u8> {
    let file = file(b"");
    let out = file.to_str().unwrap();
    let symbols = testdata("clr10/workload");
    let trace = testdata(trace);
    let args = ["stacks", "--offline", "--format", "otlp", "-o", out];
    let mut args = args.to_vec();
    args.extend([
        "--symbols",
        symbols.to_str().unwrap(),
        trace.to_str().unwrap(),
    ]);
    assert_eq!(run(&args).status, 0);
    std::fs::read(&file).unwrap()
}

/// Samples by function and line: as leaf, and at all. Folded stacks omit the signatures that OTLP
/// needs to keep overloads apart.
fn totals(folded: &str) -> BTreeMap<(String, bool), u64> {
    let mut totals = BTreeMap::new();
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        let frames = stack.split(';').skip(2).map(|frame| {
            let name = frame.split('(').next().unwrap();
            let line = frame.rsplit_once(' ').map(|(_, line)| line);
            let line = line.filter(|line| frame.contains('(') && line.contains(':'));
            format!(
                "{name}{}",
                line.map_or(String::new(), |line| format!(" {line}"))
            )
        });
        let mut frames: Vec<String> = frames.collect();
        let leaf = frames.last().unwrap().clone();
        frames.sort();
        frames.dedup();
        for frame in frames {
            *totals.entry((frame, false)).or_default() += count;
        }
        *totals.entry((leaf, true)).or_default() += count;
    }
    totals
}

#[test]
fn what_stacks_writes_is_read_with_the_same_totals() {
    for trace in TRACES {
        let (path, symbols) = (testdata(trace), testdata("clr10/workload"));
        let folded = ["stacks", "--offline", "--lines", "--format", "folded"];
        let mut args = folded.to_vec();
        args.extend([
            "--symbols",
            symbols.to_str().unwrap(),
            path.to_str().unwrap(),
        ]);
        let before = run(&args);
        let written = file(&otlp(trace));
        let mut args = folded.to_vec();
        args.extend(["--input", "otlp", written.to_str().unwrap()]);
        let after = run(&args);
        assert_eq!((before.status, after.status), (0, 0), "{}", after.stderr);
        let (before, after) = (totals(&before.stdout), totals(&after.stdout));
        assert!(before.len() > 100);
        assert_eq!(before, after, "{trace}");
    }
}

#[test]
fn every_report_takes_them() {
    let bytes = otlp(TRACES[0]);
    let written = file(&bytes);
    let path = written.to_str().unwrap();
    let top = run(&["top", "--offline", "--input", "otlp", path]);
    assert!(
        top.stdout.contains("Workload!Workload.Spin.Work"),
        "{}",
        top.stdout
    );
    let info = run(&["info", "--input", "otlp", path]);
    assert!(
        info.stdout.contains("the profile itself"),
        "{}",
        info.stdout
    );
    let zipped = file(&zipped(&[("a.otlp", &bytes)]));
    let zipped = run(&[
        "top",
        "--offline",
        "--input",
        "otlp",
        zipped.to_str().unwrap(),
    ]);
    assert_eq!(zipped.stdout, top.stdout);
    let undetected = run(&["top", path]);
    assert_eq!(undetected.status, 1);
    assert!(
        undetected.stderr.contains("--input otlp"),
        "{}",
        undetected.stderr
    );
}

#[test]
fn nothing_is_changed_without_symbol_files() {
    let bytes = otlp(TRACES[1]);
    let (from, to) = (file(&bytes), file(b""));
    let args = [from.to_str().unwrap(), "-o", to.to_str().unwrap()];
    let done = run(&[&["otlp", "--offline"][..], &args].concat());
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stderr.contains("0 of "), "{}", done.stderr);
    assert!(std::fs::read(&to).unwrap() == bytes);

    let refused = run_with_input(&["otlp", "--offline", "-o", args[2]], b"{\"a\":1}");
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("JSON"), "{}", refused.stderr);
    // An input is not overwritten.
    let same = run(&["otlp", args[0], "-o", args[0]]);
    assert_eq!(same.status, 1, "{}", same.stderr);
    assert!(std::fs::read(&from).unwrap() == bytes);
}
