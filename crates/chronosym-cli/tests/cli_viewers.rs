//! What viewers are given: totals are the same in each format, and the viewers themselves show them.
//!
//! Viewers that are not installed (`go`, `chromium`; speedscope's npm package in the folder that `CHRONOSYM_SPEEDSCOPE`
//! names) are left out by name, unless `CHRONOSYM_REQUIRE_TOOLS=1`, which makes that a failure.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message;
use serde_json::Value;

use common::chronosym;

const TRACES: [&str; 2] = [
    "clr10/traces/all.nettrace.zip",
    "clr10/traces/linux.nettrace.zip",
];

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name)
}

fn stacks(trace: &Path, format: &str) -> Vec<u8> {
    let mut command = chronosym();
    command.args(["-q", "stacks", "--offline", "--format", format]);
    let out = command.arg(trace).output().unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

fn json(trace: &Path, format: &str) -> Value {
    serde_json::from_slice(&stacks(trace, format)).unwrap()
}

/// By the name of the innermost frame: samples, where the format has them, and ns.
type Leaves = BTreeMap<String, (Option<u64>, u64)>;

fn add(leaves: &mut Leaves, name: &str, samples: Option<u64>, ns: u64) {
    let leaf = leaves.entry(name.to_owned()).or_default();
    leaf.0 = samples.map(|samples| leaf.0.unwrap_or(0) + samples);
    leaf.1 += ns;
}

fn whole(leaves: &Leaves) -> (u64, u64) {
    let samples = leaves.values().filter_map(|leaf| leaf.0).sum();
    (samples, leaves.values().map(|leaf| leaf.1).sum())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn of_speedscope(file: &Value) -> Leaves {
    let frames = list(&file["shared"]["frames"]);
    let mut leaves = Leaves::new();
    for profile in list(&file["profiles"]) {
        assert_eq!(
            (&profile["type"], &profile["unit"]),
            (&"sampled".into(), &"nanoseconds".into())
        );
        let (samples, weights) = (list(&profile["samples"]), list(&profile["weights"]));
        assert_eq!(samples.len(), weights.len());
        let mut sum = 0;
        for (sample, weight) in samples.iter().zip(weights) {
            let leaf = list(sample).last().unwrap().as_u64().unwrap() as usize;
            sum += weight.as_u64().unwrap();
            add(
                &mut leaves,
                frames[leaf]["name"].as_str().unwrap(),
                None,
                weight.as_u64().unwrap(),
            );
        }
        let end = profile["endValue"].as_u64().unwrap() - profile["startValue"].as_u64().unwrap();
        assert_eq!(end, sum);
    }
    leaves
}

/// Milliseconds as they are written, in ns.
fn ns(value: &Value) -> u64 {
    let text = value.to_string();
    let (ms, rest) = text.split_once('.').unwrap_or((&text, ""));
    format!("{ms}{rest:0<6}").parse().unwrap()
}

fn of_firefox(file: &Value) -> Leaves {
    let mut leaves = Leaves::new();
    let at = |table: &Value, column: &str, row: usize| table[column][row].clone();
    let libs = list(&file["libs"]).len();
    let categories = list(&file["meta"]["categories"]);
    assert!(
        categories
            .iter()
            .any(|category| category["color"] == "grey")
    );
    for thread in list(&file["threads"]) {
        for table in ["frameTable", "funcTable", "stackTable", "resourceTable"] {
            let length = thread[table]["length"].as_u64().unwrap() as usize;
            for (name, column) in thread[table].as_object().unwrap() {
                assert!(
                    name == "length" || list(column).len() == length,
                    "{table}.{name}"
                );
            }
        }
        let samples = &thread["samples"];
        assert_eq!(samples["weightType"], "tracing-ms");
        let mut before = 0;
        for row in 0..samples["length"].as_u64().unwrap() as usize {
            let time = ns(&samples["time"][row]);
            assert!(before <= time, "samples are in the order of time");
            before = time;
            let stack = samples["stack"][row].as_u64().unwrap() as usize;
            let frame = at(&thread["stackTable"], "frame", stack).as_u64().unwrap() as usize;
            let prefix = at(&thread["stackTable"], "prefix", stack);
            assert!(prefix.as_u64().is_none_or(|prefix| prefix < stack as u64));
            let category = at(&thread["frameTable"], "category", frame)
                .as_u64()
                .unwrap();
            assert!((category as usize) < categories.len());
            let func = at(&thread["frameTable"], "func", frame).as_u64().unwrap() as usize;
            if let Some(resource) = at(&thread["funcTable"], "resource", func).as_u64() {
                let lib = at(&thread["resourceTable"], "lib", resource as usize);
                assert!((lib.as_u64().unwrap() as usize) < libs);
            }
            let name = at(&thread["funcTable"], "name", func).as_u64().unwrap() as usize;
            let name = thread["stringArray"][name].as_str().unwrap();
            add(&mut leaves, name, Some(1), ns(&samples["weight"][row]));
        }
    }
    leaves
}

fn of_otlp(bytes: &[u8]) -> Leaves {
    let data = ProfilesData::decode(bytes).unwrap();
    let tables = data.dictionary.unwrap();
    let text = |index: i32| tables.string_table[index as usize].as_str();
    assert_eq!(text(0), "");
    let mut leaves = Leaves::new();
    for resource in &data.resource_profiles {
        assert!(
            resource
                .resource
                .as_ref()
                .unwrap()
                .attributes
                .iter()
                .any(|a| a.key == "process.pid")
        );
        for profile in &resource.scope_profiles[0].profiles {
            let kind = profile.sample_type.as_ref().unwrap();
            let is_time = text(kind.type_strindex) == "time";
            assert_eq!(
                text(kind.unit_strindex),
                if is_time { "nanoseconds" } else { "count" }
            );
            for sample in &profile.samples {
                let stack = &tables.stack_table[sample.stack_index as usize];
                let location = &tables.location_table[stack.location_indices[0] as usize];
                assert!((location.mapping_index as usize) < tables.mapping_table.len());
                let function = &tables.function_table[location.lines[0].function_index as usize];
                let keys = sample
                    .attribute_indices
                    .iter()
                    .map(|&index| text(tables.attribute_table[index as usize].key_strindex));
                assert!(keys.collect::<Vec<_>>().contains(&"thread.id"));
                let value = sample.values[0] as u64;
                let (samples, time) = if is_time { (0, value) } else { (value, 0) };
                add(
                    &mut leaves,
                    text(function.name_strindex),
                    Some(samples),
                    time,
                );
            }
        }
    }
    leaves
}

/// The tree that the drawing script reads: (title, own weight by name).
fn of_svg(svg: &str) -> Leaves {
    let (_, data) = svg.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["unit"], "ns");
    let mut leaves = Leaves::new();
    for node in list(&data["nodes"]).chunks(3) {
        let name = data["frames"][node[1].as_u64().unwrap() as usize][0]
            .as_str()
            .unwrap();
        let own = node[2].as_u64().unwrap();
        if own > 0 {
            add(&mut leaves, name.trim_start_matches('~'), None, own);
        }
    }
    leaves
}

fn of_folded(folded: &str) -> BTreeMap<String, u64> {
    let mut leaves = BTreeMap::new();
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let leaf = stack.rsplit(';').next().unwrap();
        *leaves.entry(bare(leaf)).or_insert(0) += weight.parse::<u64>().unwrap();
    }
    leaves
}

/// A name as folded stacks have it, without arguments: there overloads are one.
fn bare(name: &str) -> String {
    name.split('(').next().unwrap().replace(';', ":")
}

/// The ns of all stacks on which a name is that passes.
fn through(file: &Value, passes: impl Fn(&str) -> bool) -> u64 {
    let frames = list(&file["shared"]["frames"])
        .iter()
        .map(|f| passes(f["name"].as_str().unwrap()));
    let frames: Vec<bool> = frames.collect();
    let profiles = list(&file["profiles"]).iter();
    let samples = profiles.flat_map(|p| list(&p["samples"]).iter().zip(list(&p["weights"])));
    let on = samples.filter(|(stack, _)| {
        list(stack)
            .iter()
            .any(|f| frames[f.as_u64().unwrap() as usize])
    });
    on.map(|(_, weight)| weight.as_u64().unwrap()).sum()
}

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
        let svg = String::from_utf8(stacks(&trace, "svg")).unwrap();
        assert_eq!(times(&of_svg(&svg)), times(&firefox), "{name}");
        let html = String::from_utf8(stacks(&trace, "html")).unwrap();
        assert_eq!(times(&of_svg(&html)), times(&firefox), "{name}");
        let folded = of_folded(&String::from_utf8(stacks(&trace, "folded")).unwrap());
        let mut counts = BTreeMap::new();
        for (name, leaf) in &firefox {
            *counts.entry(bare(name)).or_insert(0) += leaf.0.unwrap();
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

#[test]
fn names_tell_the_format() {
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

/// Whether a viewer is there; if it must be, that it is not is a failure.
fn has(what: &str, is_there: bool) -> bool {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(is_there || !required, "{what} is not there");
    if !is_there {
        eprintln!("{what} is not there: left out");
    }
    is_there
}

fn runs(program: &str, argument: &str) -> bool {
    let out = Command::new(program).arg(argument).output();
    has(program, out.is_ok_and(|out| out.status.success()))
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
    for (format, end) in [("svg", "</svg>"), ("html", "</body>")] {
        let mut page = String::from_utf8(stacks(&trace, format)).unwrap();
        let at = page.rfind(end).unwrap();
        page.insert_str(
            at,
            &format!("<script>//<![CDATA[\n{driver}\n//]]></script>"),
        );
        let file = folder.path().join(format!("graph.{format}"));
        fs::write(&file, page).unwrap();
        let dom = chromium(&format!("file://{}", file.display()));
        let seen = dom
            .rsplit_once("SEEN")
            .and_then(|(_, rest)| rest.split_once("NEES"));
        let seen = seen
            .unwrap_or_else(|| panic!("{format}: the script did not end"))
            .0;
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
        for leaf in list(&seen["leaves"]) {
            let name = leaf[0].as_str().unwrap().trim_start_matches('~');
            assert_eq!(leaf[1], expected[name].1, "{name}");
        }
    }
}

#[test]
fn the_site_of_speedscope_shows_each_thread() {
    let folder = std::env::var_os("CHRONOSYM_SPEEDSCOPE").map(PathBuf::from);
    let page = folder.map(|folder| folder.join("dist/release/index.html"));
    let page = page.filter(|page| page.is_file());
    if !has("speedscope", page.is_some()) || !runs("chromium", "--version") {
        return;
    }
    let page = page.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bytes = stacks(&trace(TRACES[0]), "speedscope");
    let file: Value = serde_json::from_slice(&bytes).unwrap();
    let script = folder.path().join("profile.js");
    // The site takes base64; the alphabet is that of RFC 4648.
    let base64 = base64(&bytes);
    fs::write(
        &script,
        format!("speedscope.loadFileFromBase64('a.speedscope.json', '{base64}')"),
    )
    .unwrap();
    let dom = chromium(&format!(
        "file://{}#localProfilePath={}",
        page.display(),
        script.display()
    ));
    let profiles = list(&file["profiles"]);
    assert!(profiles.len() > 2);
    for profile in profiles {
        let name = profile["name"].as_str().unwrap();
        let ms = profile["endValue"].as_u64().unwrap() as f64 / 1e6;
        let (_, row) = dom
            .split_once(&format!("<span>{name}</span>"))
            .unwrap_or_else(|| panic!("{name}: {dom}"));
        let shown = row.split_once("</tr>").unwrap().0;
        let shown = shown.rsplit_once('>').map_or(shown, |_| shown);
        let time = if ms >= 1000.0 {
            format!("{:.2}s", ms / 1e3)
        } else {
            format!("{ms:.2}ms")
        };
        assert!(shown.contains(&time), "{name}: {time} in {shown}");
    }
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
