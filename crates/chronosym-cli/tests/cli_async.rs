//! `--async`: the chains of awaits that `testdata/clr8/chain/Chain.cs` has by construction.

mod common;

use std::collections::BTreeMap;

use common::{run, testdata};

const CHAIN: &str = "clr8/chain/chain.nettrace.zip";

/// Returns the samples of each stack, as far as it is in the program: without kick-off methods.
fn chains(args: &[&str], trace: &str) -> BTreeMap<String, u64> {
    let trace = testdata(trace).display().to_string();
    let stacks = ["stacks", "--format", "folded", "--no-threads", "--offline"];
    let result = run(&[&stacks[..], args, &[&*trace]].concat());
    assert_eq!(result.status, 0, "{}", result.stderr);
    let mut chains: BTreeMap<String, u64> = BTreeMap::new();
    for line in result.stdout.lines() {
        let (stack, samples) = line.rsplit_once(' ').unwrap();
        let frames = stack
            .split(';')
            .filter_map(|frame| frame.strip_prefix("Chain!Chain"));
        let mut names: Vec<&str> = Vec::new();
        for frame in frames {
            // `+<Load>d__4.MoveNext`, `+<>c.<Load>b__8_0`, `.Load`.
            let frame = frame.trim_start_matches(['+', '.', '<']);
            let name = frame.strip_prefix(">c.<").unwrap_or(frame);
            let name = name.split(['>', '.']).next().unwrap();
            if names.last() != Some(&name) {
                names.push(name);
            }
        }
        *chains.entry(names.join(" ")).or_default() += samples.parse::<u64>().unwrap();
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

#[test]
fn formats_that_have_each_sample_refuse_it() {
    let trace = testdata(CHAIN).display().to_string();
    let result = run(&["stacks", "--async", "--format", "jsonl", &trace]);
    assert_eq!(result.status, 2);
    assert!(
        result.stderr.contains("--async applies to text"),
        "{}",
        result.stderr
    );
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
    assert!(summary.contains(", using 0."), "{summary}");
    assert!(summary.contains(" of 2 processors."), "{summary}");
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
