//! The first screen: `chronosym TRACE`, and the user methods that `top` leads with.

use std::collections::BTreeMap;

use serde_json::Value;

mod common;
mod viewers;
use common::terminal::run_in_terminal;
use common::{arg, run, testdata};

const TRACES: [&str; 6] = [
    // A web service, and asynchronous methods alone.
    "clr8/shop/shop.nettrace.zip",
    "clr8/chain/chain.nettrace.zip",
    "clr10/traces/all.nettrace.zip",
    "clr10/traces/linux.nettrace.zip",
    "clr10/traces/r2r.nettrace.zip",
    "clr31/live/traces/full.nettrace.zip",
];

fn stdout(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!(run.status, 0, "{args:?}: {}", run.stderr);
    run.stdout
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).expect("json")
}

/// Modules of the test programs.
const MODULES: [&str; 7] = [
    "Chain", "Live", "Plugin", "PluginA", "PluginB", "Shop", "Workload",
];

/// Whether a frame is of the test programs' own modules.
fn is_user(frame: &Value) -> bool {
    let module = frame["module"].as_str().unwrap_or_default();
    let name = frame["name"].as_str();
    name.is_some_and(|name| !name.starts_with("dynamicClass.")) && MODULES.contains(&module)
}

/// The time of each user method by one line a sample: without blocked threads, for the innermost
/// user frame.
fn user_time(trace: &str) -> BTreeMap<String, u64> {
    let mut times: BTreeMap<String, u64> = BTreeMap::new();
    for line in stdout(&["stacks", "--format", "jsonl", trace]).lines() {
        let sample: Value = serde_json::from_str(line).expect("json");
        let frames = sample["frames"].as_array().expect("frames");
        let user = frames.iter().find(|frame| is_user(frame));
        if sample["activity"] == "blocked" {
            continue;
        }
        if let Some(frame) = user {
            let text = |field: &str| frame[field].as_str().unwrap_or("?").to_owned();
            let name = format!("{}!{}", text("module"), text("name"));
            *times.entry(name).or_default() += sample["weight_ns"].as_u64().expect("a time");
        }
    }
    times
}

/// A label without the signature of overloads.
fn bare(name: &str) -> String {
    name.split('(').next().unwrap_or(name).to_owned()
}

#[test]
fn top_leads_with_the_user_methods_that_take_most_time() {
    for trace in TRACES.map(arg) {
        let times = user_time(&trace);
        let hottest = times.iter().max_by_key(|(_, ns)| **ns).expect("user code");
        let top = json(&["top", "--format", "json", "-n", "1000", &trace]);
        let rows = top["user_code"].as_array().expect("user methods");
        assert_eq!(
            bare(rows[0]["name"].as_str().unwrap()),
            bare(hottest.0),
            "{trace}"
        );
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for row in rows {
            let ns = row["total"]["time_ns"].as_u64().expect("a time");
            *found
                .entry(bare(row["name"].as_str().unwrap()))
                .or_default() += ns;
        }
        found.retain(|_, ns| *ns > 0);
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for (name, ns) in &times {
            *expected.entry(bare(name)).or_default() += ns;
        }
        assert_eq!(found, expected, "{trace}");

        let text = stdout(&["top", &trace]);
        let table = text.split_once("\nuser code:").expect("a table").1;
        let first = table.lines().nth(2).expect("a row");
        assert!(first.contains(&*bare(hottest.0)), "{first}");
        assert!(!stdout(&["top", "--all", &trace]).contains("user code:"));
    }
}

#[test]
fn a_trace_alone_is_summarized() {
    for trace in TRACES.map(arg) {
        let text = stdout(&[&trace]);
        assert_eq!(stdout(&["summary", &trace]), text);
        assert!((3..=10).contains(&text.lines().count()), "{text}");
        assert!(text.contains("Next: `chronosym "), "{text}");
        assert!(
            text.lines()
                .all(|line| line.len() <= 100 || line.contains(&*trace)),
            "{text}"
        );
        let summary = json(&["summary", "--format", "json", &trace]);
        let info = json(&["info", "--format", "json", &trace]);
        assert_eq!(summary["duration_ns"], info["duration_ns"]);
        assert_eq!(summary["samples"], info["frames"]["self"]["total"]);
    }
}

/// All traces of the repository.
fn all_traces() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![testdata("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(".nettrace.zip") {
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// At most ten lines in a terminal of 80 columns; what matters most is never left out.
#[test]
fn a_summary_has_ten_lines() {
    if !viewers::runs("script", "--version") {
        return;
    }
    let traces = all_traces();
    assert!(traces.len() > 15);
    for trace in &traces {
        let text = run_in_terminal(80, &["-q", "summary", "--offline", trace]);
        assert!((3..=10).contains(&text.lines().count()), "{trace}\n{text}");
        let is_short = |line: &str| line.chars().count() <= 80 || line.contains(&**trace);
        assert!(text.lines().all(is_short), "{trace}\n{text}");
        let text = text.replace("\n  ", " ");
        let summary = json(&["summary", "--format", "json", "--offline", trace]);
        let says = |part: &str, field: &str| {
            let is_known = !summary[field].is_null();
            assert_eq!(text.contains(part), is_known, "{trace}: {field}\n{text}");
        };
        says("hottest is ", "hottest");
        says("the hottest method's source lines", "no_lines");
        assert!(text.contains("Next: `chronosym "), "{text}");
        let unnamed = summary["unnamed"].as_f64().unwrap_or(0.0);
        assert_eq!(text.contains("the names of "), unnamed >= 0.01, "{text}");
    }
}

/// No row is wider than the terminal; a wider one has longer bars and names.
#[test]
fn top_fits_the_terminal() {
    if !viewers::runs("script", "--version") {
        return;
    }
    let trace = arg("clr8/shop/shop.nettrace.zip");
    let [narrow, wide] = [80, 160].map(|columns| {
        let text = run_in_terminal(columns, &["-q", "top", "--offline", "-n", "20", &trace]);
        let wider = text.lines().find(|line| line.chars().count() > columns);
        assert_eq!(wider, None, "{columns}");
        let bars = text.lines().map(|line| line.matches('█').count());
        let bars = bars.max().unwrap_or(0);
        let row = text.lines().find(|line| line.contains("WaitNative"));
        (bars, row.expect("a row").trim_end().chars().count())
    });
    assert!(
        narrow.0 >= 4 && wide.0 > 2 * narrow.0,
        "{narrow:?} {wide:?}"
    );
    assert!(wide.1 > 80 && narrow.1 > 60, "{narrow:?} {wide:?}");
}

/// Names are those of `top`.
#[test]
fn the_summary_spells_names_as_in_csharp() {
    let trace = arg("clr8/shop/shop.nettrace.zip");
    let waiting = stdout(&["top", "--waiting", "--all", "-n", "1", &trace]);
    let text = stdout(&[&trace]).replace("\n  ", " ");
    let method = "System.Net.Sockets!Interop.Sys.ReceiveMessage";
    assert!(waiting.contains(method), "{waiting}");
    assert!(text.contains(&format!("mostly in {method}:")), "{text}");
}

/// A symbol file is advised only where it would give lines.
#[test]
fn the_summary_says_why_lines_are_unknown() {
    let text = |trace: &str| stdout(&[&arg(trace)]).replace("\n  ", " ");
    let file = "the hottest method's source lines (`chronosym symbols`)";
    assert!(text("clr10/traces/all.nettrace.zip").contains(file));
    let map = "the hottest method's source lines (no IL map for its native code)";
    assert!(text("clr10/traces/linux.nettrace.zip").contains(map));
    let summary = json(&[
        "summary",
        "--format",
        "json",
        &arg("clr10/traces/linux.nettrace.zip"),
    ]);
    assert_eq!(summary["no_lines"], "NoILMap");
}

/// The summary states the counts of the runtime's events.
#[test]
fn the_summary_counts_the_events_of_the_runtime() {
    let trace = arg("clr10/traces/all.nettrace.zip");
    let summary = json(&["summary", "--format", "json", &trace]);
    let info = json(&["info", "--format", "json", &trace]);
    let events = |id: u64| {
        let events = info["events"].as_array().expect("events").iter();
        let of = events
            .filter(|it| it["provider"] == "Microsoft-Windows-DotNETRuntime" && it["id"] == id);
        of.map(|it| it["count"].as_u64().unwrap()).sum::<u64>()
    };
    for (field, id) in [("collections", 1), ("exceptions", 80), ("compiled", 145)] {
        assert_eq!(summary[field], events(id), "{field}");
    }
    let sampler = info["suspensions"].as_array().expect("suspensions").iter();
    let sampler = sampler
        .clone()
        .find(|it| it["by_sampler"] == true)
        .expect("it sampled");
    assert_eq!(summary["sampler_suspensions"], sampler["count"]);
    assert_eq!(summary["sampler_ns"], sampler["time_ns"]);
}

/// Without samples and without events there is a sentence on what to do.
#[test]
fn traces_without_samples_are_summarized() {
    let trace = arg("clr10/traces/all.nettrace.zip");
    let text = stdout(&["summary", "--format", "text", &trace, "--max-markers", "0"]);
    assert!(text.contains("Next: "), "{text}");
}

/// A saved timeline is described as what it is, not as a recording without samples.
#[test]
fn a_saved_timeline_is_summarized() {
    let folder = tempfile::tempdir().unwrap();
    let saved = |options: &[&str]| {
        let file = folder.path().join("x.chrono");
        let file = file.to_str().unwrap().to_owned();
        let trace = arg("clr10/traces/all.nettrace.zip");
        stdout(&[&["save", "-o", &file, &trace], options].concat());
        file
    };
    let file = saved(&[]);
    let text = stdout(&[&file]).replace("\n  ", " ");
    assert!(text.contains("saved without samples"), "{text}");
    assert!(
        text.contains(&format!("`chronosym methods {file}`")),
        "{text}"
    );
    let info = stdout(&["info", &file]).replace("\n  ", " ");
    assert!(info.contains("Save it again with --with-samples"), "{info}");
    assert!(
        info.contains(&format!("next: chronosym methods {file}")),
        "{info}"
    );

    let file = saved(&["--with-samples"]);
    let text = stdout(&[&file]).replace("\n  ", " ");
    assert!(text.contains("The runtime had 32 collections"), "{text}");
    assert!(!text.contains("chronosym runtime"), "{text}");
    for report in [vec!["runtime"], vec!["runtime", "gc"], vec!["inlining"]] {
        let run = run(&[&report[..], &[&file]].concat());
        assert_eq!(run.status, 1, "{report:?}: {}", run.stdout);
        assert!(
            run.stderr.contains("a saved timeline has no events"),
            "{}",
            run.stderr
        );
    }
}
