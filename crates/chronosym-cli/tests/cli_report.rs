//! The html report: a browser uses it as a reader would, and each view has the totals of `top`.
//!
//! `CHRONOSYM_PLAYWRIGHT` names the folder of the npm package playwright-core, which drives
//! Chromium. Without it the test is left out, unless `CHRONOSYM_REQUIRE_TOOLS=1`.
//! `CHRONOSYM_SCREENSHOTS` names a folder for pictures of every view.

mod common;
mod viewers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::Payload;
use chronosym_types::escape::is_hostile;
use serde_json::Value;

use common::chronosym;
use common::served::Served;
use viewers::{has, list, runs, trace};

const TARGET: &str = "Workload!Workload.Spin.Work";

/// The library that drives Chromium, if all is there that it needs.
fn playwright() -> Option<PathBuf> {
    let library = std::env::var_os("CHRONOSYM_PLAYWRIGHT").map(PathBuf::from);
    let library = library.filter(|library| library.is_dir());
    let is_there = has("playwright-core", library.is_some());
    let runs = is_there && runs("node", "--version") && runs("chromium", "--version");
    library.filter(|_| runs)
}

/// Returns the result of a script of `viewers` in a page.
fn drive(script: &str, library: &Path, page: &Path) -> Value {
    drive_with(script, library, page, TARGET)
}

/// As [`drive`], with another method to look at.
fn drive_with(script: &str, library: &Path, page: &Path, target: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/viewers");
    let mut command = Command::new("node");
    command
        .arg(folder.join(script))
        .arg(library)
        .arg(page)
        .arg(target);
    command.args(std::env::var_os("CHRONOSYM_SCREENSHOTS"));
    let out = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    serde_json::from_slice(&out.stdout).unwrap()
}

fn report(trace: &Path, options: &[&str], folder: &Path) -> PathBuf {
    let file = folder.join("report.html");
    let mut command = chronosym();
    command.args(["-q", "stacks", "--offline", "-o"]).arg(&file);
    let out = command.arg(trace).args(options).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    file
}

/// Self and total in ns of each method or line, by its label.
fn top(trace: &Path, options: &[&str]) -> BTreeMap<String, (u64, u64)> {
    let mut command = chronosym();
    command.args(["-q", "top", "--offline", "--format", "json", "-n", "100000"]);
    let out = command.arg(trace).args(options).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    let object: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut sums = BTreeMap::new();
    for row in list(&object["rows"]) {
        let of = |key: &str| row[key]["time_ns"].as_u64().unwrap();
        let label = row["name"].as_str().unwrap().to_owned();
        sums.insert(label, (of("self"), of("total")));
    }
    sums
}

/// Self in ns by file and line, which `top` divides by method.
fn lines_of_top(trace: &Path, options: &[&str]) -> BTreeMap<(String, u64), u64> {
    let mut command = chronosym();
    command.args(["-q", "top", "--offline", "--by", "line", "--format", "json"]);
    command.args(["-n", "100000"]).arg(trace).args(options);
    let object: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let mut lines: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let rows = list(&object["rows"]).iter();
    for row in rows.filter(|row| row["file"].is_string()) {
        let file = row["file"].as_str().unwrap().to_owned();
        let key = (file, row["line"].as_u64().unwrap());
        *lines.entry(key).or_default() += row["self"]["time_ns"].as_u64().unwrap();
    }
    lines
}

/// As [`lines_of_top`], of a report.
fn lines_of(files: &Value) -> BTreeMap<(String, u64), u64> {
    let mut lines = BTreeMap::new();
    for file in list(files) {
        for line in list(&file[1]) {
            let key = (
                file[0].as_str().unwrap().to_owned(),
                line[0].as_u64().unwrap(),
            );
            lines.insert(key, line[1].as_u64().unwrap());
        }
    }
    lines
}

fn of_table(rows: &Value) -> BTreeMap<String, (u64, u64)> {
    let row = |row: &Value| {
        let of = |key: &str| row[key].as_u64().unwrap();
        let label = row["label"].as_str().unwrap().to_owned();
        (label, (of("self"), of("total")))
    };
    list(rows).iter().map(row).collect()
}

fn pairs(rows: &Value) -> Vec<(String, u64)> {
    let pair = |row: &Value| {
        (
            row[0].as_str().unwrap().to_owned(),
            row[1].as_u64().unwrap(),
        )
    };
    list(rows).iter().map(pair).collect()
}

#[test]
fn every_view_has_the_totals_of_top() {
    let Some(library) = playwright() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let trace = trace("clr10/traces/all.nettrace.zip");
    let workload = common::arg("clr10/workload");
    let symbols = ["--symbols", &workload, "--sources", &workload];
    let file = report(&trace, &symbols, folder.path());
    let seen = drive("report.mjs", &library, &file);
    assert_eq!(seen["requests"], Value::Array(Vec::new()));
    assert_eq!(seen["errors"], Value::Array(Vec::new()));
    assert_eq!(seen["title"], "all.nettrace.zip");

    let expected = top(&trace, &symbols[..2]);
    let whole: u64 = expected.values().map(|sums| sums.0).sum();
    let (_, total) = expected[TARGET];
    assert_eq!(of_table(&seen["table"]), expected);
    assert_eq!(seen["all"], whole);
    // Helpers are charged to their callers: nothing is lost, and their own time is gone.
    let presented = of_table(&seen["presented"]);
    let sum_of =
        |sums: &BTreeMap<String, (u64, u64)>| sums.values().map(|sums| sums.0).sum::<u64>();
    assert_eq!(
        (sum_of(&presented), &seen["presentedAll"]),
        (whole, &whole.into())
    );
    let helpers = |sums: &BTreeMap<String, (u64, u64)>| {
        let of = sums.iter().filter(|(name, _)| name.contains("PollGC"));
        of.map(|(_, sums)| sums.0).sum::<u64>()
    };
    assert!(helpers(&presented) == 0 && helpers(&expected) > 0);
    assert_eq!(seen["rawByKey"], true);
    assert_eq!(seen["zoomed"], 1);
    assert!(seen["selected"].as_str().unwrap().contains("Spin.Work("));
    assert_eq!(seen["zoomedOut"], true);
    let sum = |pairs: &[(String, u64)]| pairs.iter().map(|pair| pair.1).sum::<u64>();
    let inverted = pairs(&seen["inverted"]);
    for (label, ns) in &inverted {
        assert_eq!(*ns, expected[label].0, "{label}");
    }
    assert_eq!(sum(&inverted), whole);
    let threads = top(&trace, &["--by", "thread"]);
    let mut of_threads: Vec<u64> = threads.values().map(|sums| sums.0).collect();
    of_threads.sort_by(|a, b| b.cmp(a));
    let shown: Vec<u64> = pairs(&seen["threads"]).iter().map(|pair| pair.1).collect();
    assert_eq!(shown, of_threads);
    // Work calls Step, so the matching samples are those that contain either.
    let matching = seen["matching"].as_u64().unwrap();
    assert!(matching >= total && matching < whole, "{matching}");
    assert!(seen["found"].as_str().unwrap().ends_with(" %"));
    assert_eq!(seen["searchAfter"], "");
    assert!(seen["tableRows"].as_u64().unwrap() > 10);
    let (callers, callees) = (pairs(&seen["callers"]), pairs(&seen["callees"]));
    assert_eq!((&*callers[0].0, callers[0].1), (TARGET, total));
    assert_eq!((&*callees[0].0, callees[0].1), (TARGET, total));
    assert!(callers.len() > 1 && callees.len() > 1);

    let range: Vec<u64> = list(&seen["range"])
        .iter()
        .map(|ns| ns.as_u64().unwrap())
        .collect();
    let [from, to] = [range[0], range[1]].map(|ns| format!("{ns}ns"));
    let ranged = top(
        &trace,
        &["--symbols", &workload, "--from", &from, "--to", &to],
    );
    assert_eq!(of_table(&seen["rangeTable"]), ranged);
    let ranged_whole: u64 = ranged.values().map(|sums| sums.0).sum();
    assert!(ranged_whole > whole / 10 && ranged_whole < whole / 2);
    assert_eq!(seen["rangeAll"], ranged_whole);
    assert_eq!(seen["rangeCallees"], ranged[TARGET].1);
    assert_eq!(seen["rangeAgain"], seen["range"]);

    let lines = lines_of_top(&trace, &symbols[..2]);
    assert_eq!(lines_of(&seen["sources"]), lines);
    assert!(seen["hotLines"].as_u64().unwrap() > 0);
    assert!(seen["text"].as_str().unwrap().contains("static"));

    assert_eq!(seen["keys"]["view"], "sandwich");
    assert!(seen["keys"]["func"].is_u64());
    assert!(!seen["spoken"].as_str().unwrap().is_empty());
    assert_eq!(seen["level"], "3");
    assert_eq!((&seen["keyZoom"], &seen["keyBack"]), (&2.into(), &1.into()));
    assert_eq!(list(&seen["keyRange"]).len(), 2);
    assert!(seen["rangeText"].as_str().unwrap().contains(" to "));
    assert!(seen["keyRangeAfter"].is_null());
    assert_eq!((&seen["help"], &seen["unnamed"]), (&1.into(), &0.into()));
    for size in list(&seen["sizes"]) {
        assert!(size["overflow"].as_i64().unwrap() <= 0, "{size}");
        assert!(list(&size["cut"]).is_empty(), "{size}");
        assert!(
            list(&size["panel"])
                .iter()
                .all(|side| side.as_u64().unwrap() > 150),
            "{size}"
        );
        let is_drawn = |colors: &Value| colors.as_u64().unwrap() > 4;
        assert!(list(&size["colors"]).iter().all(is_drawn), "{size}");
    }
    is_accessible(&seen);
}

/// Chromium's accessibility tree has a role and a name for all that can be used, and Tab reaches it
/// from top to bottom.
fn is_accessible(seen: &Value) {
    for (view, nodes) in seen["accessible"].as_object().unwrap() {
        let nodes = list(nodes);
        let of = |role: &str| nodes.iter().filter(|node| node["role"] == role).count();
        for landmark in [
            "banner",
            "navigation",
            "main",
            "complementary",
            "slider",
            "searchbox",
        ] {
            assert_eq!(of(landmark), 1, "{view}: {landmark}");
        }
        assert_eq!(of("tab"), 5, "{view}");
        for node in nodes {
            let is_named = !node["name"].as_str().unwrap().is_empty();
            let must_be = node["focusable"] == true || node["role"] == "treeitem";
            assert!(is_named || !must_be, "{view}: {node}");
        }
        let (role, count) = match view.as_str() {
            "flame" => ("tree", 1),
            "sandwich" => ("tree", 2),
            "table" => ("grid", 1),
            "source" => ("table", 1),
            _ => ("main", 1),
        };
        assert_eq!(of(role), count, "{view}: {role}");
        // The order of the page; few stops, however many threads and rows there are.
        let stops: Vec<&str> = (list(&seen["stops"][view]).iter())
            .map(|stop| stop.as_str().unwrap().split_once(' ').unwrap().1)
            .collect();
        let mut parts = stops.clone();
        parts.dedup();
        let page = ["header", "section", "nav", "main", "aside"];
        let places: Vec<_> = parts
            .iter()
            .map(|part| page.iter().position(|p| p == part))
            .collect();
        assert!(places.is_sorted() && places.len() >= 4, "{view}: {parts:?}");
        assert!(stops.len() < 40, "{view}: {stops:?}");
    }
    assert_eq!(list(&seen["threadByKeys"]).len(), 1);
    let spoken = seen["threadSpoken"].as_str().unwrap();
    assert!(
        spoken.starts_with("thread (") && spoken.contains(" s of it on-CPU"),
        "{spoken}"
    );
    assert_eq!(list(&seen["sortedBy"])[1], "descending");
    assert_eq!(seen["sortFocus"], "total ▾");
}

/// Sums by name without parameters: which names need them depends on the other functions.
fn merged(sums: BTreeMap<String, (u64, u64)>) -> BTreeMap<String, (u64, u64)> {
    let mut merged = BTreeMap::new();
    for (name, (own, total)) in sums {
        let name = name.split_once('(').map_or(&*name, |(name, _)| name);
        let sum: &mut (u64, u64) = merged.entry(name.to_owned()).or_default();
        *sum = (sum.0 + own, sum.1 + total);
    }
    merged
}

/// A page that has a few samples of all: its server answers what is selected.
#[test]
fn every_selection_of_a_served_report_has_the_totals_of_top() {
    let Some(library) = playwright() else {
        return;
    };
    // One of every few samples, or merged in slices.
    for (name, symbols, target, most, is_sliced) in [
        (
            "clr10/traces/all.nettrace.zip",
            "clr10/workload",
            TARGET,
            "100",
            false,
        ),
        (
            "clr8/shop/shop.nettrace.zip",
            "clr8/shop",
            "Shop!Shop.Catalog.Distance",
            "20000",
            true,
        ),
    ] {
        let (trace, folder) = (trace(name), common::arg(symbols));
        let symbols = ["--symbols", &folder];
        let mut command = chronosym();
        command.args(["-q", "serve", "--offline", "--max-report-samples", most]);
        let served = Served::report({
            command.arg(&trace).args(symbols);
            command
        });
        let page = served.ask("GET", &served.own("/"), &[], "").body;
        let header = viewers::report_header(&page);
        assert_eq!(header["slice"].is_u64(), is_sliced);
        assert_eq!(header["every"].as_u64().unwrap() > 1, !is_sliced);
        let url = format!("http://{}/{}/", served.host, served.token);
        let seen = drive_with("live.mjs", &library, Path::new(&url), target);
        let few: u64 = most.parse().unwrap();
        assert!(seen["merged"].as_u64().unwrap() <= few + few / 4);
        let top = |options: &[&str]| merged(top(&trace, &[&symbols[..], options].concat()));
        let of_table = |rows: &Value| merged(of_table(rows));
        let sum = |sums: &BTreeMap<String, (u64, u64)>| sums.values().map(|it| it.0).sum::<u64>();
        assert_eq!(of_table(&seen["all"]), top(&[]));
        assert!(!seen["status"].as_str().unwrap().contains("approximate"));

        let range = list(&seen["range"]).iter();
        let range: Vec<String> = range.map(|ns| format!("{ns}ns")).collect();
        let range = ["--from", &range[0], "--to", &range[1]];
        let ranged = top(&range);
        assert_eq!(of_table(&seen["table"]), ranged);
        assert_eq!(seen["graph"], sum(&ranged));
        assert_eq!(seen["callees"], ranged[target].1);
        let lines = lines_of_top(&trace, &[&symbols[..], &range].concat());
        assert_eq!(lines_of(&seen["lines"]), lines);
        let running = top(&[&range[..], &["--running"]].concat());
        assert_eq!(of_table(&seen["running"]), running);
        assert!(sum(&running) < sum(&ranged));
        let tid = seen["tid"].as_str().unwrap();
        let thread = top(&[&range[..], &["--tid", tid]].concat());
        assert_eq!(of_table(&seen["thread"]), thread);
        assert_eq!(of_table(&seen["again"]), thread);
        assert!(sum(&thread) > 0 && sum(&thread) < sum(&ranged));

        // Only queries to the server; the one that was prevented is an error of the console.
        let requests = list(&seen["requests"]).iter();
        let mut requests = requests.map(|url| url.as_str().unwrap());
        assert!(
            requests
                .all(|url| url.starts_with("#raw=1") || url.starts_with("query") || url.is_empty())
        );
        assert_eq!(list(&seen["errors"]).len(), 1, "{}", seen["errors"]);
        assert!(seen["failure"].as_str().unwrap().contains("no answer"));
    }
}

#[test]
fn source_is_in_the_report_only_if_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace("clr10/traces/all.nettrace.zip");
    let workload = common::arg("clr10/workload");
    let options = ["--symbols", &workload, "--sources", &workload];
    let header = |options: &[&str]| {
        let file = report(&trace, options, folder.path());
        let text = std::fs::read_to_string(file).unwrap();
        viewers::report_header(&text)
    };
    let found = header(&options);
    let sources = found["sources"].as_object().unwrap();
    assert!(!sources.is_empty());
    let folders = [&workload, env!("CARGO_MANIFEST_DIR")];
    for source in sources.values() {
        assert!(source["text"].as_str().unwrap().contains("class"));
        let from = source["from"].as_str().unwrap();
        assert!(
            folders.iter().all(|folder| !from.contains(folder)),
            "{from}"
        );
    }
    assert_eq!(
        header(&[&options[..], &["--no-source"]].concat())["sources"],
        serde_json::json!({})
    );
    assert_eq!(header(&options[..2])["sources"], serde_json::json!({}));
    // The byte order mark of a file is no text.
    let shop = ["--sources", &common::arg("clr8/shop")];
    let file = report(
        &self::trace("clr8/shop/shop.nettrace.zip"),
        &shop,
        folder.path(),
    );
    let sources = viewers::report_header(&std::fs::read_to_string(file).unwrap());
    let text = sources["sources"]["0"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("// A small web service"),
        "{}",
        &text[..40]
    );
}

/// Inlined and rejected calls are those of `lines`.
#[test]
fn source_lines_mark_calls_that_the_jit_inlined_or_rejected() {
    let Some(library) = playwright() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let trace = trace("clr8/known/inlining.nettrace.zip");
    let known = common::arg("clr8/known");
    let options = ["--symbols", &known, "--sources", &known];
    let mut command = chronosym();
    command.args(["-q", "lines", "--offline", "--format", "json"]);
    let out = command.args(options).arg(&trace).arg("Known.*").output();
    let object: Value = serde_json::from_slice(&out.unwrap().stdout).unwrap();
    let mut expected: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for call in list(&list(&object["files"])[0]["calls"]) {
        let callee = call["callee"].as_str().unwrap();
        let text = match call["rejected"].as_str() {
            None => format!("{callee} is inlined"),
            Some(reason) => format!("{callee} is not inlined: {reason}"),
        };
        let line = expected.entry(call["line"].as_u64().unwrap()).or_default();
        line.push(text);
    }
    let file = report(&trace, &options, folder.path());
    let marks = drive("source.mjs", &library, &file);
    let mut shown = BTreeMap::new();
    for mark in list(&marks) {
        let (line, text) = (mark[0].as_u64().unwrap(), mark[2].as_str().unwrap());
        let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let has = |part: &str| lines.iter().any(|line| line.contains(part));
        let sign = mark[1].as_str().unwrap();
        assert_eq!(sign.contains('⤵'), has(" is inlined"), "{mark}");
        assert_eq!(sign.contains('✕'), has(" is not inlined: "), "{mark}");
        assert_eq!(mark[2], mark[3]);
        shown.insert(line, lines);
    }
    assert_eq!(shown, expected);
    assert!(
        shown
            .values()
            .flatten()
            .any(|line| line.contains("noinline"))
    );
}

/// What the page says of time is true of the samples, and the runtime's events have lanes without
/// any sample.
#[test]
fn the_page_states_what_its_time_is_of() {
    let Some(library) = playwright() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let words = |trace: &Path| drive("words.mjs", &library, &report(trace, &[], folder.path()));
    for (name, of) in [
        (common::LINUX, "of CPU time, "),
        ("clr10/traces/all.nettrace.zip", "of thread time, "),
    ] {
        let seen = words(&trace(name));
        assert_eq!(seen["errors"], Value::Array(Vec::new()));
        assert!(seen["status"].as_str().unwrap().contains(of), "{seen}");
    }
    let collections = folder.path().join("collections.nettrace");
    std::fs::write(&collections, without_samples()).unwrap();
    let seen = words(&collections);
    let lanes = list(&seen["lanes"])
        .iter()
        .map(|lane| lane.as_str().unwrap());
    assert!(lanes.eq(["samples", "GC"]), "{seen}");
    let details = seen["details"].as_str().unwrap();
    assert!(details.starts_with("No samples"), "{details}");
    assert!(details.contains("chronosym runtime"), "{details}");
}

/// A collection, and no sample.
fn without_samples() -> Vec<u8> {
    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
    let mut writer = NettraceWriter::v4();
    let start = writer.event_type(RUNTIME, 1, 2);
    let stop = writer.event_type(RUNTIME, 2, 1);
    let began = Payload::new().u32(1).u32(0).u32(0).u32(0).u16(0).u64(1);
    writer.event(start, 1_000_000, 1, &[], &began.finish());
    let ended = Payload::new().u32(1).u32(0).u16(0).finish();
    writer.event(stop, 3_000_000, 1, &[], &ended);
    writer.finish()
}

/// Names of a trace and fragments of an address are text wherever the page shows them.
#[test]
fn hostile_names_and_fragments_steer_no_view() {
    let Some(library) = playwright() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("x.nettrace");
    std::fs::write(&trace, common::names::event_pipe()).unwrap();
    let pair = folder.path().join("pair.html");
    let mut command = chronosym();
    command.args(["-q", "diff", "-o"]).arg(&pair);
    let out = command.args([&trace, &trace]).output().unwrap();
    assert!(out.status.success());
    for file in [report(&trace, &[], folder.path()), pair] {
        let seen = drive("names.mjs", &library, &file);
        for kind in ["requests", "errors", "dialogs"] {
            assert_eq!(seen[kind], Value::Array(Vec::new()), "{kind}");
        }
        let texts = list(&seen["texts"]);
        for text in texts.iter().map(|text| text.as_str().unwrap()) {
            let line = text.lines().find(|line| line.contains(is_hostile));
            assert_eq!(line, None);
        }
        let shown = |part: &str| {
            texts
                .iter()
                .any(|text| text.as_str().unwrap().contains(part))
        };
        assert!(shown("</script><script>alert(1)</script>"));
        // Only the script of the page.
        assert!(list(&seen["scripts"]).iter().all(|count| *count == 1));
        let fits = |over: &Value| over.as_i64().unwrap() <= 0;
        assert!(list(&seen["overflow"]).iter().all(fits));
        for state in list(&seen["states"]) {
            assert!(["flame", "table"].iter().any(|view| state["view"] == *view));
            assert!(state["function"].is_null() && state["file"].is_null());
        }
    }
}

#[test]
fn two_traces_are_side_by_side() {
    let Some(library) = playwright() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let traces = ["default", "all"].map(|name| trace(&format!("clr10/traces/{name}.nettrace.zip")));
    let file = folder.path().join("diff.html");
    let mut command = chronosym();
    command
        .args(["-q", "diff", "--offline", "--raw", "-o"])
        .arg(&file);
    let out = command.args(&traces).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    let seen = drive("diff.mjs", &library, &file);
    assert_eq!(seen["requests"], Value::Array(Vec::new()));
    assert_eq!(seen["errors"], Value::Array(Vec::new()));
    let sides = traces.each_ref().map(|trace| top(trace, &[]));
    let wholes = sides
        .each_ref()
        .map(|side| side.values().map(|sums| sums.0).sum::<u64>());
    for (side, amounts) in sides.iter().zip(list(&seen["amounts"])) {
        for (label, ns) in pairs(&amounts[1]) {
            assert_eq!(side.get(&label).map(|sums| sums.0), Some(ns), "{label}");
        }
    }
    let changes = list(&seen["changes"]);
    for change in changes {
        let label = change[0].as_str().unwrap();
        for side in [0, 1] {
            let (own, total) = sides[side].get(label).copied().unwrap_or_default();
            let share = |ns: u64| ns as f64 / wholes[side] as f64;
            let is = |shown: &Value, ns| (shown.as_f64().unwrap() - share(ns)).abs() < 1e-12;
            assert!(
                is(&change[1][side], own) && is(&change[2][side], total),
                "{change}"
            );
        }
    }
    // Noise is what the text diff calls noise, where neither is at the edge: samples of one entry
    // are taken as equal there.
    let mut diff = chronosym();
    diff.args([
        "-q",
        "diff",
        "--offline",
        "--raw",
        "--format",
        "json",
        "-n",
        "9999",
    ]);
    let diff = diff.args(&traces).output().unwrap();
    let diff: Value = serde_json::from_slice(&diff.stdout).unwrap();
    let noise: BTreeMap<&str, bool> = (list(&diff["methods"]).iter())
        .map(|it| (it["name"].as_str().unwrap(), it["noise"] == true))
        .collect();
    let (mut same, mut other, mut noisy) = (0, 0, 0);
    for pair in list(&seen["noise"]) {
        let Some(&expected) = noise.get(pair[0].as_str().unwrap()) else {
            continue;
        };
        let is_same = pair[1] == expected;
        (same, other) = (same + usize::from(is_same), other + usize::from(!is_same));
        noisy += usize::from(expected);
    }
    assert!(50 * other < same && same > 200, "{same} {other}");
    assert!(noisy > 20 && noisy < same - 20, "{noisy} of {same}");
    assert!(list(&seen["noise"]).is_sorted_by_key(|pair| pair[1] == true));
    // The largest change of self comes first, and noise last.
    let noise_begins = list(&seen["noise"]).iter().position(|pair| pair[1] == true);
    let by = |change: &Value| {
        let own = |side: usize| change[1][side].as_f64().unwrap();
        (own(1) - own(0)).abs()
    };
    for part in [
        &changes[..noise_begins.unwrap()],
        &changes[noise_begins.unwrap()..],
    ] {
        assert!(part.is_sorted_by(|a, b| by(a) >= by(b)));
    }
    let matching = seen["matching"].as_u64().unwrap();
    assert!(matching > 0 && matching < changes.len() as u64);
    assert_eq!(seen["all"], changes.len());
    let zooms = list(&seen["zooms"]);
    // As far as the other trace has the methods.
    let (clicked, other) = (list(&zooms[0]), list(&zooms[1]));
    let is_same = |(a, b): (&Value, &Value)| a == b || b.is_null();
    assert!(clicked.iter().zip(other).all(is_same), "{zooms:?}");
    assert!(clicked.len() > 1 && clicked[..2] == other[..2]);
    assert!(seen["selected"].as_str().unwrap().contains("Spin.Work"));
    assert_eq!(seen["ranges"], serde_json::json!([true, false]));
    assert_ne!(seen["ranged"], seen["changes"]);
    assert!(
        list(&seen["sizes"])
            .iter()
            .all(|over| over.as_i64().unwrap() <= 0)
    );
}
