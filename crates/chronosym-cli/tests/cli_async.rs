//! `--async`: the chains of awaits that `testdata/clr8/chain/Chain.cs` has by construction.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{run, testdata};
use serde_json::Value;

const CHAIN: &str = "clr8/chain/chain.nettrace.zip";

/// Returns the methods of the program on a stack, outermost first: without kick-off methods.
fn methods<'s>(outermost_first: impl IntoIterator<Item = &'s str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for frame in outermost_first {
        let frame = frame.strip_prefix("Chain!").unwrap_or(frame);
        // `+<Load>d__4.MoveNext`, `+<>c.<Load>b__8_0`, `.Load`.
        let of_type = frame.strip_prefix("Chain");
        let Some(frame) = of_type.filter(|rest| rest.starts_with(['+', '.'])) else {
            continue;
        };
        let frame = frame.trim_start_matches(['+', '.', '<']);
        let name = frame.strip_prefix(">c.<").unwrap_or(frame);
        let name = name.split(['>', '.', '(']).next().unwrap();
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    names.join(" ")
}

/// Returns the samples of each stack that ends in `Spin`.
fn chains(args: &[&str], trace: &str) -> BTreeMap<String, u64> {
    let trace = testdata(trace).display().to_string();
    let stacks = ["stacks", "--format", "folded", "--no-threads", "--offline"];
    let result = run(&[&stacks[..], args, &[&*trace]].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let mut chains: BTreeMap<String, u64> = BTreeMap::new();
    for line in result.stdout.lines() {
        let (stack, samples) = line.rsplit_once(' ').unwrap();
        *chains.entry(methods(stack.split(';'))).or_default() += samples.parse::<u64>().unwrap();
    }
    chains.retain(|names, _| names.ends_with(" Spin"));
    chains
}

#[test]
fn callers_are_the_methods_that_await() {
    let logical = chains(&["--async"], CHAIN);
    let names: Vec<&str> = logical.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Main Invoices LoadInvoice Parse Spin",
            "Main Offload Work Spin",
            "Main Orders LoadOrder Parse Spin",
        ]
    );
    // None is lost or counted twice, and none has such a chain on its thread.
    let physical = chains(&[], CHAIN);
    assert_eq!(
        logical.values().sum::<u64>(),
        physical.values().sum::<u64>()
    );
    assert!(
        physical.keys().all(|names| !names.starts_with("Main")),
        "{physical:?}"
    );
}

#[test]
fn top_counts_the_samples_of_awaited_methods_for_their_callers() {
    let trace = testdata(CHAIN).display().to_string();
    let total = |args: &[&str]| {
        let json = ["top", "--format", "json", "-n", "1000", "--offline", &trace];
        let result = run(&[&json[..], args].concat());
        let top: serde_json::Value = serde_json::from_str(&result.stdout).unwrap();
        let rows = top["rows"].as_array().unwrap().iter();
        let of = |name: &str| {
            let mut rows = rows.clone();
            let row = rows.find(|row| row["name"].as_str().unwrap().contains(name));
            row.map_or(0, |row| row["total"]["samples"].as_u64().unwrap())
        };
        (of("<LoadOrder>d__4"), of("<Orders>d__3"))
    };
    let (load, orders) = total(&["--async"]);
    assert!(orders >= load && load > 10, "{load} {orders}");
    let (load, orders) = total(&[]);
    assert!(orders < load, "{load} {orders}");
}

#[test]
fn a_trace_without_tasks_loses_only_plumbing_and_says_so() {
    let trace = testdata("clr8/shop/shop.nettrace.zip")
        .display()
        .to_string();
    let stacks = ["stacks", "--format", "folded", "--offline", &trace];
    let (plain, logical) = (run(&stacks), run(&[&stacks[..], &["--async"]].concat()));
    assert_eq!(logical.status, 0, "{}", logical.stderr);
    assert!(
        logical.stderr.contains("record --profile async"),
        "{}",
        logical.stderr
    );
    let samples = |folded: &str| {
        let counts = folded.lines().filter_map(|line| line.rsplit_once(' '));
        counts.map(|(_, n)| n.parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(samples(&plain.stdout), samples(&logical.stdout));
    let starts = |folded: &str| folded.contains("AsyncMethodBuilderCore.Start;");
    assert!(starts(&plain.stdout) && !starts(&logical.stdout));
}

/// Runs `stacks` in a format and parses what it writes.
fn json(format: &str, args: &[&str]) -> Vec<Value> {
    let trace = testdata(CHAIN).display().to_string();
    let stacks = ["stacks", "--format", format, "--offline", &trace];
    let result = run(&[&stacks[..], args].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let values = serde_json::Deserializer::from_str(&result.stdout);
    values.into_iter().map(Result::unwrap).collect()
}

#[test]
fn json_lines_keep_their_frames_and_add_the_logical_ones() {
    let mut chains: BTreeMap<String, u64> = BTreeMap::new();
    let mut lines = json("jsonl", &["--async"]);
    for line in &mut lines {
        let stack = line.as_object_mut().unwrap().remove("async_frames");
        let stack = stack.unwrap_or(line["frames"].clone());
        let frames = stack.as_array().unwrap().iter().rev();
        let names = methods(frames.filter_map(|frame| frame["name"].as_str()));
        *chains.entry(names).or_default() += 1;
    }
    chains.retain(|names, _| names.ends_with(" Spin"));
    assert_eq!(chains, self::chains(&["--async"], CHAIN));
    assert_eq!(lines, json("jsonl", &[]));
    // In lines of their own, as many stacks.
    let table = json("jsonl", &["--async", "--stacks", "table"]);
    let samples = table.iter().filter(|line| line["time_ns"].is_u64());
    let logical = samples.filter_map(|line| line["async_stack"].as_u64());
    let is_known = |stack| table.iter().any(|line| line["stack_id"] == stack);
    let logical: Vec<u64> = logical.collect();
    assert!(!logical.is_empty() && logical.into_iter().all(is_known));
}

#[test]
fn formats_with_a_time_axis_show_logical_callers() {
    let trace = testdata(CHAIN).display().to_string();
    // Adjacent samples of one stack are one there.
    let of_speedscope = |args: &[&str]| {
        let mut chains: BTreeSet<String> = BTreeSet::new();
        let file = json("speedscope", args).remove(0);
        let frames = file["shared"]["frames"].as_array().unwrap();
        let name = |frame: &Value| frames[frame.as_u64().unwrap() as usize]["name"].as_str();
        for profile in file["profiles"].as_array().unwrap() {
            for stack in profile["samples"].as_array().unwrap() {
                let names = stack.as_array().unwrap().iter().filter_map(name);
                chains.insert(methods(names));
            }
        }
        chains.retain(|names| names.ends_with(" Spin"));
        chains
    };
    let of_folded = |args: &[&str]| chains(args, CHAIN).into_keys().collect::<BTreeSet<_>>();
    assert_eq!(of_speedscope(&["--async"]), of_folded(&["--async"]));
    assert_eq!(of_speedscope(&[]), of_folded(&[]));
    let dir = tempfile::tempdir().unwrap();
    for format in ["firefox", "perfetto", "html"] {
        let written = |args: &[&str]| {
            let path = dir.path().join("out");
            let path = path.to_str().unwrap();
            let stacks = [
                "stacks",
                "--format",
                format,
                "-o",
                path,
                "--offline",
                &trace,
            ];
            let result = run(&[&stacks[..], args].concat());
            assert_eq!(result.status, 0, "{}", result.stderr);
            std::fs::read(path).unwrap()
        };
        assert!(written(&["--async"]) != written(&[]), "{format}");
    }
}

#[test]
fn a_trace_without_the_needed_events_says_what_to_record() {
    let trace = testdata(CHAIN).display().to_string();
    for command in ["top", "stacks"] {
        let result = run(&[command, "--by", "activity", "--offline", &trace]);
        assert_eq!(result.status, 0);
        assert!(result.stdout.contains("[no activity]"), "{}", result.stdout);
        assert!(
            result.stderr.contains("Microsoft-AspNetCore-Hosting"),
            "{}",
            result.stderr
        );
    }
    let result = run(&["stacks", "--approximate-inlines", "--offline", &trace]);
    assert_eq!(result.status, 0);
    let profile = "chronosym record --profile inlining";
    assert!(result.stderr.contains(profile), "{}", result.stderr);
}

#[test]
fn counters_state_the_processors_that_were_used() {
    let trace = testdata(CHAIN).display().to_string();
    let result = run(&["runtime", "counters", "--format", "json", &trace]);
    let report: serde_json::Value = serde_json::from_str(&result.stdout).unwrap();
    let counters = report["counters"].as_array().unwrap();
    let named = |name: &str| counters.iter().find(|it| it["name"] == name).unwrap();
    let usage = named("cpu-usage");
    assert_eq!(
        (&usage["kind"], &usage["unit"]),
        (&"mean".into(), &"%".into())
    );
    // Two methods spin for most of the time, on at most two processors.
    let most = usage["max"].as_f64().unwrap();
    assert!(most > 1.0 && most <= 100.0, "{most}");
    // The first value is no share of its interval.
    assert_eq!(
        (&usage["mean"], usage["values"].as_array().unwrap().len()),
        (&usage["max"], 2)
    );
    // An increase per second: as many as the values state.
    let items = named("threadpool-completed-items-count");
    assert_eq!(items["kind"], "increment");
    let values = items["values"].as_array().unwrap();
    let sum = |field: &str| {
        values
            .iter()
            .map(|it| it[field].as_f64().unwrap())
            .sum::<f64>()
    };
    let mean = items["mean"].as_f64().unwrap();
    assert!(
        (mean - sum("value") / sum("interval_s")).abs() < 1e-9,
        "{mean}"
    );

    let summary = run(&["summary", "--offline", &trace]).stdout;
    assert!(summary.contains(", 0."), "{summary}");
    assert!(summary.contains(" of 2 CPUs used"), "{summary}");
    for command in ["info", "top", "stacks"] {
        let text = run(&[command, "--offline", &trace]).stdout;
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let line = "by EventCounters: cpu-usage ";
        assert!(text.contains(line), "{command}: {text}");
        assert!(text.contains("; thread pool: at most "), "{text}");
    }
    let text = run(&["runtime", "counters", &trace]).stdout;
    assert!(text.contains("% of 2 processors: "), "{text}");
    let none = run(&[
        "runtime",
        "counters",
        &testdata("clr8/shop/shop.nettrace.zip")
            .display()
            .to_string(),
    ]);
    assert_eq!(none.status, 0);
    assert!(
        none.stdout
            .contains("System.Runtime:0:4:EventCounterIntervalSec=1"),
        "{}",
        none.stdout
    );
}
