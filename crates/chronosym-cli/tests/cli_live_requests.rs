//! Awaits, activities and candidate inlinees of live programs. `testdata/clr8/requests` knows its own:
//! it runs on `CHRONOSYM_DOTNET_8`, the `dotnet` host of .NET 8, and within Sarif.Multitool of
//! `CHRONOSYM_SINGLE_FILES` (startup hook). The newer programs there run alone.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{run, single_files, variable};
use serde_json::Value;

/// Loader, JIT and its decisions; tasks and their activities; the program's own.
const EVENTS: &str = "Microsoft-Windows-DotNETRuntime:4000181038:5,\
    System.Threading.Tasks.TplEventSource:fa:4,Requests:ffffffffffffffff:5,\
    Microsoft-DotNETCore-SampleProfiler:0:5";
const ROUNDS: &str = "30";

/// Records a program; returns the trace, in a folder that is removed in the end, and its output.
fn record(command: &mut Command) -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("live.nettrace");
    let ran = command
        .env("TMPDIR", folder.path())
        .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
        .env("DOTNET_EnableEventPipe", "1")
        .env("DOTNET_EventPipeOutputPath", &trace)
        .env("DOTNET_EventPipeConfig", EVENTS)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    (folder, trace.display().to_string(), output)
}

/// Returns the time in µs of each folded stack.
fn folded(args: &[&str], trace: &str) -> Vec<(String, f64)> {
    let stacks = ["stacks", "--format", "folded", "--weight", "time"];
    let rest = ["--no-threads", "--offline", trace];
    let result = run(&[&stacks[..], args, &rest[..]].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let stack = |line: &str| {
        let (stack, us) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), us.parse().unwrap())
    };
    result.stdout.lines().map(stack).collect()
}

/// Returns the methods of the program on a stack, outermost first; an async method and its
/// continuation are one.
fn methods(stack: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for frame in stack.split(';') {
        // `Requests+<Load>d__3.MoveNext`, `Requests.<Main>`, `Requests.Spin`.
        let Some(frame) = frame.strip_prefix("Requests!Requests") else {
            continue;
        };
        let name = frame.trim_start_matches(['+', '.', '<']);
        let name = name.split(['>', '.', '(']).next().unwrap();
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    names.join(" ")
}

fn check_requests(command: &mut Command) {
    let (_folder, trace, output) = record(command);
    // What each request spun, in ns.
    let spun = |line: &str| line.rsplit_once(' ')?.1.parse::<f64>().ok();
    let spun = output.lines().filter_map(spun).sum::<f64>() / 1e3;
    assert!(spun > 0.0, "{output}");

    // All of that has an activity, and nothing else does.
    let (mut with, mut without, mut other) = (0.0, 0.0, 0.0);
    for (stack, us) in folded(&["--by", "activity"], &trace) {
        let names = methods(&stack);
        match (names.contains("Spin"), stack.contains("[no activity]")) {
            (true, is_without) if !names.contains("Inlined") => match is_without {
                true => without += us,
                false => with += us,
            },
            (true, false) => other += us,
            _ => {}
        }
    }
    println!(
        "spun {spun} µs; with an activity {with}, without {without}, outside requests {other}"
    );
    // On a busy machine, the program also counts time in which it had no processor.
    assert!(with > 0.3 * spun && with < 1.2 * spun);
    assert!(without < 0.02 * with && other == 0.0);

    // Callers are the methods that await.
    let mut chains: BTreeMap<String, f64> = BTreeMap::new();
    for (stack, us) in folded(&["--async"], &trace) {
        let names = methods(&stack);
        if names.ends_with(" Spin") {
            *chains.entry(names).or_default() += us;
        }
    }
    println!("{chains:?}");
    let all: f64 = chains.values().sum();
    let expected = [
        "Main Request Spin",
        "Main Request Load Spin",
        "Main Inlined Leaf Spin",
    ];
    let of_expected = expected.map(|chain| chains.get(chain).copied().unwrap_or(0.0));
    assert!(of_expected.iter().all(|us| *us > 0.05 * all));
    assert!(of_expected.iter().sum::<f64>() > 0.95 * all);

    // `Leaf` is called by `Middle`, which is inlined.
    let inlined = |args: &[&str]| {
        let mut of: BTreeMap<bool, f64> = BTreeMap::new();
        for (stack, us) in folded(args, &trace) {
            let names = methods(&stack);
            if names.contains("Inlined") && names.contains("Leaf") {
                *of.entry(names.contains("Inlined Middle Leaf")).or_default() += us;
            }
        }
        of.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(inlined(&[]), [false]);
    assert_eq!(inlined(&["--approximate-inlines"]), [true]);
}

#[test]
fn requests_have_their_activities_callers_and_inlinees() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clr8/requests");
    let program = program.join("Requests.dll");
    if let Some(host) = variable("CHRONOSYM_DOTNET_8") {
        check_requests(Command::new(host).arg(&program).arg(ROUNDS));
    }
    let mut single = single_files().into_iter();
    if let Some(other) = single.find(|file| file.ends_with("Sarif.Multitool")) {
        let hook = program.canonicalize().unwrap();
        let mut command = Command::new(other);
        check_requests(
            command
                .env("DOTNET_STARTUP_HOOKS", hook)
                .env("REQUESTS_ROUNDS", ROUNDS),
        );
    }
}

/// A sample: time, thread, weight, and its frames without candidate inlinees.
type Sample = (u64, u64, u64, Vec<String>);

/// Returns the samples, and the number of distinct stacks with candidate inlinees.
fn samples(args: &[&str], trace: &str) -> (Vec<Sample>, usize) {
    let stacks = [
        "stacks",
        "--format",
        "jsonl",
        "--stacks",
        "table",
        "--offline",
    ];
    let result = run(&[&stacks[..], args, &[trace]].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let (mut frames, mut stacks) = (BTreeMap::new(), BTreeMap::new());
    let (mut samples, mut with_candidates) = (Vec::new(), 0);
    for line in result.stdout.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| row[name].as_u64().unwrap_or(0);
        if let Some(frame) = row.get("frame") {
            let is_guess = frame["inlined"] == true && frame["certainty"] == "Approximate";
            frames.insert(number("frame_id"), (!is_guess).then(|| frame.to_string()));
        } else if let Some(of_stack) = row.get("frames") {
            let all = of_stack.as_array().unwrap().iter();
            let all: Vec<Option<String>> = all
                .map(|id| frames[&id.as_u64().unwrap()].clone())
                .collect();
            with_candidates += usize::from(all.iter().any(Option::is_none));
            let all: Vec<String> = all.into_iter().flatten().collect();
            stacks.insert(number("stack_id"), all);
        } else if row.get("stack").is_some() {
            let stack = stacks[&number("stack")].clone();
            samples.push((number("time_ns"), number("tid"), number("weight_ns"), stack));
        }
    }
    (samples, with_candidates)
}

/// Nothing is known of what these programs do: no sample is lost, and candidates are only added.
#[test]
fn newer_runtimes_keep_every_sample() {
    let is_newer = |file: &PathBuf| file.ends_with("dist/azmcp");
    for program in single_files().into_iter().filter(is_newer) {
        let (_folder, trace, _) = record(Command::new(&program).arg("--help"));
        let total = |args: &[&str]| -> f64 { folded(args, &trace).iter().map(|it| it.1).sum() };
        let all = total(&[]);
        assert!(all > 0.0);
        for args in [&["--async"][..], &["--by", "activity"]] {
            // Each stack is rounded to µs.
            assert!(
                (total(args) / all - 1.0).abs() < 0.01,
                "{program:?} {args:?}"
            );
        }
        let (plain, none) = samples(&[], &trace);
        let (with, candidates) = samples(&["--approximate-inlines"], &trace);
        println!(
            "{program:?}: {} samples, {candidates} stacks with candidates",
            plain.len()
        );
        assert_eq!(none, 0);
        assert_eq!(plain.len(), with.len());
        let differ = plain.iter().zip(&with).find(|(plain, with)| plain != with);
        assert_eq!(differ, None, "{program:?}");
    }
}
