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

use serde_json::Value;

use common::chronosym;
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/viewers");
    let mut command = Command::new("node");
    command
        .arg(folder.join(script))
        .arg(library)
        .arg(page)
        .arg(TARGET);
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

    // Self by line, which `top` divides by method.
    let mut command = chronosym();
    command.args([
        "-q", "top", "--by", "line", "--format", "json", "-n", "100000",
    ]);
    let out = command
        .args(["--offline"])
        .arg(&trace)
        .args(&symbols[..2])
        .output()
        .unwrap();
    let object: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut lines: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for row in list(&object["rows"])
        .iter()
        .filter(|row| row["file"].is_string())
    {
        let file = row["file"].as_str().unwrap().to_owned();
        let key = (file, row["line"].as_u64().unwrap());
        *lines.entry(key).or_default() += row["self"]["time_ns"].as_u64().unwrap();
    }
    let mut shown = BTreeMap::new();
    for file in list(&seen["sources"]) {
        for line in list(&file[1]) {
            let key = (
                file[0].as_str().unwrap().to_owned(),
                line[0].as_u64().unwrap(),
            );
            shown.insert(key, line[1].as_u64().unwrap());
        }
    }
    assert_eq!(shown, lines);
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
