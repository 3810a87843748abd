//! What viewers are given: they open it, and show what is in it.
//!
//! Viewers that are not installed (`go`, `chromium`; speedscope's npm package in the folder that
//! `CHRONOSYM_SPEEDSCOPE` names, Firefox Profiler's interface for terminals, `profiler-cli.js`,
//! that `CHRONOSYM_PROFILER_CLI` names) are left out by name, unless `CHRONOSYM_REQUIRE_TOOLS=1`,
//! which makes that a failure.

mod common;
mod viewers;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use common::chronosym;
use viewers::{
    Leaves, TRACES, add, has, json, list, of_firefox, of_otlp, report_header, runs, stacks,
    through, trace, whole,
};

#[test]
fn names_determine_the_format() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(TRACES[0]);
    for (name, start) in [
        ("a.svg", "<?xml"),
        ("a.html", "<!DOCTYPE"),
        ("a.speedscope.json", "{\"$schema\""),
    ] {
        let file = folder.path().join(name);
        let out = chronosym()
            .args(["-q", "stacks", "--offline", "-o"])
            .arg(&file)
            .arg(&trace)
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with(start), "{name}");
    }
}

#[test]
fn options_of_trees_take_effect_on_pictures() {
    let trace = trace(TRACES[0]);
    let stacks = |options: &[&str]| {
        let mut command = chronosym();
        command.args(["-q", "stacks", "--offline"]).args(options);
        command.args(["--symbols", &common::arg("clr10/workload")]);
        command.arg(&trace).output().unwrap()
    };
    let picture = |options: &[&str]| {
        let out = stacks(options);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{options:?}: {stderr}");
        String::from_utf8(out.stdout).unwrap()
    };
    let plain = picture(&["--format", "svg"]);
    assert!(plain.contains("class=\"box thread\"") && plain.contains("\"unit\":\"ns\""));
    assert!(!plain.contains("Spin.Work  Program.cs:"));
    let options = [
        "--format",
        "svg",
        "--no-threads",
        "--lines",
        "--weight",
        "samples",
    ];
    let other = picture(&options);
    assert!(!other.contains("class=\"box thread\""));
    assert!(other.contains("\"unit\":\"samples\""));
    assert!(other.contains("Spin.Work  Program.cs:102"));
    assert!(!picture(&[&options[..], &["--no-lines"]].concat()).contains("Program.cs:102"));
    let page = report_header(&picture(&["--format", "html"]));
    let summary = page["summary"].to_string();
    assert!(summary.contains("requested interval 1 ms, actual 13.037 ms"));
    assert_eq!(page["unit"], "time");
    let page = report_header(&picture(&["--format", "html", "--weight", "samples"]));
    assert_eq!(page["unit"], "samples");
    let names = |options: &[&str]| report_header(&picture(options))["functions"].to_string();
    assert!(names(&["--format", "html", "--lines"]).contains("Spin.Work:102\""));
    assert!(!names(&["--format", "html"]).contains("Spin.Work:102\""));
    let refused = stacks(&["--format", "html", "--weight", "bytes"]);
    assert_eq!(refused.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("--weight bytes: a report of this trace has time or samples"));
    let speedscope = picture(&["--format", "speedscope", "--lines", "--no-threads"]);
    assert!(speedscope.contains("Spin.Work:102\",\"file\":"));
    assert_eq!(speedscope.matches("\"type\":\"sampled\"").count(), 1);
    let refused = stacks(&["--format", "firefox", "--weight", "bytes"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--weight applies to folded"));
}

#[test]
fn two_traces_are_drawn_in_one_graph() {
    let folder = tempfile::tempdir().unwrap();
    let [before, after] =
        ["default", "all"].map(|n| trace(&format!("clr10/traces/{n}.nettrace.zip")));
    let file = folder.path().join("a.svg");
    let mut command = chronosym();
    command.args(["-q", "diff", "--offline", "-o"]).arg(&file);
    let out = command.args([&before, &after]).output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    let text = fs::read_to_string(file).unwrap();
    assert!(text.starts_with("<?xml") && text.contains("\"unit\":\"shares\""));
    assert!(text.contains("box more3") && text.contains("box less3"));
    assert!(!text.contains("box thread") && !text.contains("box process"));
}

#[test]
fn go_tool_pprof_reads_pprof() {
    if !runs("go", "version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cpu.pb.gz");
    for name in TRACES {
        let trace = trace(name);
        fs::write(&file, stacks(&trace, "pprof")).unwrap();
        let go = |option: &[&str]| {
            let out = Command::new("go")
                .args(["tool", "pprof"])
                .args(option)
                .arg(&file)
                .output()
                .unwrap();
            assert!(
                out.status.success(),
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
            String::from_utf8(out.stdout).unwrap()
        };
        let expected = of_otlp(&stacks(&trace, "otlp"));
        let raw = go(&["-raw"]);
        let (head, rest) = raw.split_once("Samples:\n").unwrap();
        assert!(
            head.contains("PeriodType") || head.contains("Time:"),
            "{head}"
        );
        let (samples, rest) = rest.split_once("Locations").unwrap();
        let (_, mappings) = rest.split_once("Mappings").unwrap();
        assert!(mappings.lines().count() > 1);
        assert!(
            samples.starts_with("samples/count time/nanoseconds"),
            "{}",
            &samples[..60]
        );
        let mut sums = (0, 0);
        for line in samples.lines() {
            let mut values = line.split(':').next().unwrap().split_whitespace();
            let two = (
                values.next().map(str::parse::<u64>),
                values.next().map(str::parse::<u64>),
            );
            if let (Some(Ok(count)), Some(Ok(time))) = two {
                sums = (sums.0 + count, sums.1 + time);
            }
        }
        assert_eq!(sums, whole(&expected), "{name}");
        assert!(samples.contains("thread:[") && samples.contains("process:["));
        // The hottest method is the one that all other formats have.
        let top = go(&["-top", "-sample_index=samples", "-nodecount=1"]);
        let hottest = expected.values().filter_map(|leaf| leaf.0).max().unwrap();
        let row = top.lines().last().unwrap();
        assert_eq!(
            row.split_whitespace().next().unwrap(),
            hottest.to_string(),
            "{top}"
        );
        let label = row.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
        let label = label.trim_end_matches(" (inline)");
        assert_eq!(expected[label].0, Some(hottest), "{top}");
    }
}

/// `-list` shows the source with times, from a folder other than that of the build.
#[test]
fn go_tool_pprof_lists_source() {
    if !runs("go", "version") {
        return;
    }
    let trace = trace("clr8/shop/shop.nettrace.zip");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.pb.gz");
    fs::write(&file, stacks(&trace, "pprof")).unwrap();
    let pprof = |options: &[&str]| {
        let mut go = Command::new("go");
        go.args(["tool", "pprof"]).args(options).arg(&file);
        let out = go.current_dir(folder.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{stderr}");
        String::from_utf8(out.stdout).unwrap()
    };
    let sources = trace.parent().unwrap().display();
    let list = pprof(&[
        "-list=Catalog.Distance",
        &format!("-source_path={sources}"),
        "-trim_path=/src/shop",
    ]);
    let hottest = list.lines().find(|line| line.contains(" 165:"));
    let hottest = hottest.expect(&list);
    assert!(hottest.trim_start().starts_with("611.09ms"), "{hottest}");
    assert!(hottest.ends_with("row[j] = Math.Min(change, Math.Min(row[j], row[j - 1]) + 1);"));
    // The program's module is the first mapping.
    assert!(pprof(&["-top"]).starts_with("File: Shop.dll\n"));
}

/// Rules of the Trace Event Format: asynchronous slices begin and end by category and id.
#[test]
fn perfetto_has_the_activities_of_the_runtime() {
    let trace = trace("clr8/known/events.nettrace.zip");
    let file = json(&trace, "perfetto");
    let mut open: HashMap<String, &Value> = HashMap::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut named = Vec::new();
    for event in list(&file["traceEvents"]) {
        let phase = event["ph"].as_str().unwrap();
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(phase == "M" || event["ts"].is_number(), "{event}");
        assert!(phase == "E" || event["name"].is_string(), "{event}");
        match phase {
            "M" => named.push((&event["pid"], &event["tid"])),
            _ => assert!(named.contains(&(&event["pid"], &event["tid"])), "{event}"),
        }
        let key = format!("{} {} {}", event["pid"], event["cat"], event["id"]);
        match phase {
            "b" => assert!(open.insert(key, event).is_none(), "{event}"),
            "e" => {
                let begin = open.remove(&key).expect("a begin");
                assert_eq!(begin["name"], event["name"]);
                assert!(begin["ts"].as_f64() <= event["ts"].as_f64(), "{event}");
            }
            "i" => assert_eq!(event["s"], "t"),
            _ => continue,
        }
        if phase != "e" {
            *counts.entry(event["name"].as_str().unwrap()).or_default() += 1;
        }
    }
    assert!(open.is_empty());
    let summary = chronosym()
        .args(["-q", "summary", "--format", "json"])
        .arg(&trace)
        .output()
        .unwrap();
    let summary: Value = serde_json::from_slice(&summary.stdout).unwrap();
    for (field, name) in [
        ("collections", "GC"),
        ("compiled", "JIT"),
        ("exceptions", "exception"),
        ("contentions", "contention"),
    ] {
        assert_eq!(summary[field].as_u64().unwrap(), counts[name], "{name}");
    }
}

/// The page as it is once its scripts have run.
fn chromium(url: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1300,900",
    ]);
    command.args([
        "--allow-file-access-from-files",
        "--virtual-time-budget=8000",
        "--dump-dom",
    ]);
    command.arg(format!("--user-data-dir={}", folder.path().display()));
    let out = command.arg(url).output().unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_browser_zooms_and_searches_flame_graphs() {
    if !runs("chromium", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(TRACES[0]);
    let expected = of_firefox(&json(&trace, "firefox"));
    let target = "Workload!Workload.Program.Main";
    let speedscope = json(&trace, "speedscope");
    let main = through(&speedscope, |name| name == target);
    let spin = through(&speedscope, |name| name.contains("Workload.Spin."));
    let driver = include_str!("viewers/flame.js")
        .replace("TARGET", target)
        .replace("SEARCH", "Workload\\\\.Spin\\\\.");
    let mut page = String::from_utf8(stacks(&trace, "svg")).unwrap();
    let at = page.rfind("</svg>").unwrap();
    page.insert_str(
        at,
        &format!("<script>//<![CDATA[\n{driver}\n//]]></script>"),
    );
    let file = folder.path().join("graph.svg");
    fs::write(&file, page).unwrap();
    let dom = chromium(&format!("file://{}", file.display()));
    let seen = dom
        .rsplit_once("SEEN")
        .and_then(|(_, rest)| rest.split_once("NEES"));
    let seen = seen.unwrap_or_else(|| panic!("the script did not end")).0;
    let seen = seen
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let ns = whole(&expected).1;
    assert_eq!(seen["total"], ns);
    assert_eq!(seen["inverted"], ns);
    assert_eq!(seen["joined"], ns);
    assert_eq!(seen["threads"], 0);
    assert_eq!(seen["tooWide"], 0);
    assert!(seen["labels"].as_u64().unwrap() > 50);
    assert_eq!(seen["target"], main);
    assert_eq!(
        (&seen["zoomed"], &seen["above"]),
        (&target.into(), &3.into())
    );
    assert_eq!(seen["tip"][0], target);
    assert_eq!(seen["reset"], seen["boxes"]);
    assert_eq!(seen["found"], spin);
    assert!(seen["hits"].as_u64().unwrap() > 0);
    assert!(seen["says"].as_str().unwrap().contains("match"));
    let mut leaves = Leaves::new();
    for leaf in list(&seen["leaves"]) {
        let (name, ns) = (leaf[0].as_str().unwrap(), leaf[1].as_u64().unwrap());
        add(&mut leaves, name, None, ns);
    }
    for (name, (_, ns)) in leaves {
        assert_eq!(ns, expected[&name].1, "{name}");
    }
}

/// The interface of Firefox Profiler for terminals has the viewer's own code for reading, calling
/// trees and markers.
#[test]
fn firefox_profiler_shows_threads_and_markers() {
    let program = std::env::var_os("CHRONOSYM_PROFILER_CLI").map(PathBuf::from);
    let program = program.filter(|program| program.is_file());
    if !has("profiler-cli", program.is_some()) || !runs("node", "--version") {
        return;
    }
    let (program, folder) = (program.unwrap(), tempfile::tempdir().unwrap());
    let bytes = stacks(&trace(TRACES[0]), "firefox");
    let file: Value = serde_json::from_slice(&bytes).unwrap();
    fs::write(folder.path().join("a.firefox.json"), &bytes).unwrap();
    let node = || {
        let mut command = Command::new("node");
        command.env("PROFILER_CLI_SESSION_DIR", folder.path());
        command.current_dir(&folder).arg(&program);
        command
    };
    // Does the same as `load`, which waits only half a second for the daemon, too short on a busy
    // machine.
    let daemon = ["--daemon", "a.firefox.json", "--session", "test"];
    let try_ask = |arguments: &[&str]| -> Result<Value, String> {
        let out = node().args(arguments).args(["--session", "test"]).output();
        let out = out.unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let answer = serde_json::from_slice(&out.stdout).unwrap_or(Value::Null);
        out.status.success().then_some(answer).ok_or(said)
    };
    let ask = |arguments: &[&str]| -> Value {
        let answer = try_ask(arguments);
        answer.unwrap_or_else(|said| panic!("{arguments:?}: {said}"))
    };
    // A request that is too early takes the session for a dead one and removes it: then it is
    // started again.
    let entries = || fs::read_dir(folder.path()).unwrap().count();
    let begin = |_| {
        let (running, before) = (Ends(node().args(daemon).spawn().unwrap()), entries());
        let has_begun = || {
            entries() > before || {
                std::thread::sleep(Duration::from_millis(100));
                false
            }
        };
        (0..300).any(|_| has_begun());
        std::thread::sleep(Duration::from_secs(1));
        (0..20)
            .any(|_| try_ask(&["status"]).is_ok())
            .then_some(running)
    };
    let running = (0..5).find_map(begin);
    assert!(running.is_some(), "{:?}", try_ask(&["status"]));
    let times = |thread: &Value| -> Vec<f64> {
        let times = list(&thread["samples"]["time"]).iter();
        times.map(|time| time.as_f64().unwrap()).collect()
    };
    let times: Vec<f64> = list(&file["threads"]).iter().flat_map(times).collect();
    let first = times.iter().copied().fold(f64::MAX, f64::min);
    let last = times.iter().copied().fold(0.0, f64::max);
    let range = first..last + file["meta"]["interval"].as_f64().unwrap();
    // The busiest thread is shown first, and blocked ones are idle.
    let selected = file["meta"]["initialSelectedThreads"][0].as_u64().unwrap();
    let categories = list(&file["meta"]["categories"]);
    let idle = categories
        .iter()
        .position(|category| category["name"] == "Idle");
    let is_idle = |thread: &Value| {
        let all = list(&thread["frameTable"]["category"]);
        all.iter()
            .any(|category| category.as_u64() == idle.map(|at| at as u64))
    };
    let threads = list(&file["threads"]);
    assert!(threads.iter().any(is_idle) && !threads.iter().all(is_idle));
    assert!(!is_idle(&threads[selected as usize]));
    assert_eq!(file["meta"]["product"], "Workload (5077)");
    let mut kinds = BTreeMap::new();
    for (index, thread) in list(&file["threads"]).iter().enumerate() {
        ask(&["thread", "select", &format!("t-{index}")]);
        let markers = ask(&["thread", "markers", "--json"]);
        let times = |column: &str| list(&thread["markers"][column]).iter().map(Value::as_f64);
        let starts = times("startTime").map(Option::unwrap);
        // Markers outside all samples are not shown.
        let shown = starts
            .zip(times("endTime"))
            .filter(|&(start, end)| end.unwrap_or(start) >= range.start && start < range.end);
        assert_eq!(
            markers["totalMarkerCount"],
            shown.count(),
            "{}",
            thread["name"]
        );
        for kind in list(&markers["byType"]) {
            let name = kind["markerName"].as_str().unwrap().to_owned();
            *kinds.entry(name).or_insert(0) += kind["count"].as_u64().unwrap();
        }
        let functions = ask(&["thread", "functions", "--json", "--include-idle"]);
        let own = list(&functions["functions"]).iter();
        let own: f64 = own.map(|f| f["selfSamples"].as_f64().unwrap()).sum();
        let weights = list(&thread["samples"]["weight"]).iter();
        let weights: f64 = weights.map(|ms| ms.as_f64().unwrap()).sum();
        assert!((own - weights).abs() < weights * 1e-6, "{own} of {weights}");
    }
    let expected = ["GC", "JIT", "exception", "pause", "sampler pause"];
    assert_eq!(kinds.keys().collect::<Vec<_>>(), expected);
    // As the program counts them: it throws on each round.
    assert!(kinds["exception"] > 1_000, "{kinds:?}");
}

/// A program that ends with the test.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The page of speedscope that shows a file of this name, if the site is there.
fn speedscope(name: &str, bytes: &[u8]) -> Option<String> {
    let folder = std::env::var_os("CHRONOSYM_SPEEDSCOPE").map(PathBuf::from);
    let page = folder.map(|folder| folder.join("dist/release/index.html"));
    let page = page.filter(|page| page.is_file());
    if !has("speedscope", page.is_some()) || !runs("chromium", "--version") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("profile.js");
    // The site takes base64; the alphabet is that of RFC 4648.
    let base64 = base64(bytes);
    fs::write(
        &script,
        format!("speedscope.loadFileFromBase64('{name}', '{base64}')"),
    )
    .unwrap();
    Some(chromium(&format!(
        "file://{}#localProfilePath={}",
        page?.display(),
        script.display()
    )))
}

/// The page lists a profile of this name with this time.
fn assert_profile(dom: &str, name: &str, ms: f64) {
    let (_, row) = dom
        .split_once(&format!("<span>{name}</span>"))
        .unwrap_or_else(|| panic!("{name}: {dom}"));
    let shown = row.split_once("</tr>").unwrap().0;
    let time = if ms >= 1000.0 {
        format!("{:.2}s", ms / 1e3)
    } else {
        format!("{ms:.2}ms")
    };
    assert!(shown.contains(&time), "{name}: {time} in {shown}");
}

#[test]
fn the_site_of_speedscope_shows_each_thread() {
    let bytes = stacks(&trace(TRACES[0]), "speedscope");
    let file: Value = serde_json::from_slice(&bytes).unwrap();
    let Some(dom) = speedscope("a.speedscope.json", &bytes) else {
        return;
    };
    let profiles = list(&file["profiles"]);
    assert!(profiles.len() > 2);
    for profile in profiles {
        // Gaps have no stack, and are not counted.
        let stacks = list(&profile["samples"])
            .iter()
            .zip(list(&profile["weights"]));
        let seen = stacks.filter(|(stack, _)| !list(stack).is_empty());
        let ns: u64 = seen.map(|(_, weight)| weight.as_u64().unwrap()).sum();
        assert_profile(&dom, profile["name"].as_str().unwrap(), ns as f64 / 1e6);
    }
}

/// A file for Perfetto is one of Chrome's format, which speedscope opens, too. It takes a function
/// that ends where the same function begins for an empty call: times of such threads are not compared.
#[test]
fn a_viewer_of_chrome_traces_shows_each_thread() {
    let trace = trace(common::LINUX);
    let bytes = stacks(&trace, "perfetto");
    let Some(dom) = speedscope("a.json", &bytes) else {
        return;
    };
    let file: Value = serde_json::from_slice(&bytes).unwrap();
    let mut edges: HashMap<(u64, u64, &str), char> = HashMap::new();
    let mut ambiguous = BTreeSet::new();
    let events = list(&file["traceEvents"]).iter();
    for event in events.filter(|event| event["ph"] == "B" || event["ph"] == "E") {
        let tid = event["tid"].as_u64().unwrap();
        let (name, phase) = (
            event["name"].as_str().unwrap(),
            event["ph"].as_str().unwrap(),
        );
        let time = event["ts"].as_f64().unwrap().to_bits();
        let phase = phase.chars().next().unwrap();
        if edges
            .insert((tid, time, name), phase)
            .is_some_and(|before| before != phase)
        {
            ambiguous.insert(tid);
        }
    }
    let mut command = chronosym();
    command.args([
        "-q",
        "threads",
        "--offline",
        "--format",
        "json",
        "-n",
        "1000",
    ]);
    let threads = command.arg(&trace).output().unwrap();
    let threads: Value = serde_json::from_slice(&threads.stdout).unwrap();
    let threads = list(&threads["rows"]);
    assert_eq!(threads.len(), 10);
    let mut compared = 0;
    for thread in threads {
        let (pid, tid) = (&thread["pid"], &thread["tid"]);
        let name = format!("Workload ({pid}) (pid {pid}), thread ({tid}) (tid {tid})");
        assert!(
            dom.contains(&format!("<span>{name}</span>")),
            "{name}: {dom}"
        );
        if !ambiguous.contains(&tid.as_u64().unwrap()) {
            assert_profile(
                &dom,
                &name,
                thread["time_ns"].as_u64().unwrap() as f64 / 1e6,
            );
            compared += 1;
        }
    }
    assert!(compared >= 2, "{ambiguous:?}");
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let all = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for digit in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * digit)) as usize & 63] as char;
            text.push(if digit <= chunk.len() { letter } else { '=' });
        }
    }
    text
}
