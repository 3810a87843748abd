//! Names from a trace stay names: in no output do they control a terminal, break a line, end a
//! value or become markup; and no output reveals paths of its user's machine.

mod common;

use std::path::Path;
use std::process::Output;

use chronosym_support::etl::{At, EtlWriter, Image, Op, Options, Process};
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_types::escape::is_hostile;
use common::names::{NAMES, event_pipe, names, start};
use common::*;
use serde_json::Value;

/// Processes, images and command lines of such names.
fn etw() -> Vec<u8> {
    let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    for (index, name) in names().iter().enumerate() {
        let (pid, tid) = (100 + index as u32, 200 + index as u32);
        let at = At::us(10 * (index as i64 + 1)).pid(pid).tid(tid);
        let process = Process {
            pid,
            image: name,
            command_line: name,
            ..Process::default()
        };
        w.process(at, Op::Start, &process).unwrap();
        w.thread(at, Op::Start, pid, tid).unwrap();
        let path = format!(r"\Device\HarddiskVolume2\{name}.dll");
        let image = Image {
            base: start(index),
            size: 0x1000,
            pid,
            path: &path,
            ..Image::default()
        };
        w.image(at, Op::Load, &image).unwrap();
        w.sample(At::us(at.ns / 1000 + 5), start(index) + 16, tid)
            .unwrap();
    }
    w.finish().unwrap()
}

/// Threads and mappings of such names.
fn perf() -> Vec<u8> {
    let mut writer = PerfWriter::new(PerfAttr::default());
    // Host, system, recorder and architecture.
    for feature in 3..=6 {
        let text = NAMES[..5].concat();
        let body = writer.body().u32(text.len() as u32 + 1).name(&text);
        writer.feature(feature, body.bytes);
    }
    for (index, name) in names().iter().enumerate() {
        let (time, pid) = (1_000 * (index as u64 + 1), 100 + index as u32);
        writer.comm(time, pid, pid, name);
        writer.mmap2(
            time + 1,
            pid,
            start(index),
            0x1000,
            0,
            &format!("/x/{name}"),
        );
        writer.sample(time + 2, pid, pid, &[start(index) + 16]);
    }
    writer.round();
    writer.file()
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    /// One object or one a line.
    Json,
    /// Markup with data in a script.
    Page,
    /// Protocol buffers contain text as it is, after its length.
    Binary,
}

/// Every output of a trace.
fn outputs(trace: &str) -> Vec<(Vec<&str>, Kind)> {
    use Kind::{Binary, Json, Page, Text};
    let mut outputs = vec![
        (vec!["summary"], Text),
        (vec!["summary", "--format", "json"], Json),
        (vec!["info"], Text),
        (vec!["info", "--format", "json"], Json),
        (vec!["top", "-n", "100"], Text),
        (vec!["top", "-n", "100", "--format", "json"], Json),
        (vec!["top", "--callers", "a"], Text),
        (vec!["top", "--callers", "a", "--format", "json"], Json),
        (vec!["threads"], Text),
        (vec!["threads", "--format", "json"], Json),
        (vec!["symbols"], Text),
        (vec!["symbols", "--format", "json"], Json),
        (vec!["inlining"], Text),
        (vec!["inlining", "--format", "json"], Json),
        (vec!["runtime"], Text),
        (vec!["runtime", "--format", "json"], Json),
        (vec!["events"], Text),
        (vec!["events", "--format", "jsonl"], Json),
        (vec!["modules"], Text),
        (vec!["modules", "--format", "json"], Json),
        (vec!["methods"], Text),
        (vec!["methods", "--format", "json"], Json),
        (vec!["diff", trace], Text),
        (vec!["diff", trace, "--format", "json"], Json),
        (vec!["stacks", "--process", "nobody"], Text),
        (vec!["diff", trace, "--format", "svg"], Page),
        (vec!["diff", trace, "--format", "html"], Page),
        (vec!["explain"], Text),
        (vec!["explain", "--format", "json"], Json),
    ];
    for kind in [
        "gc",
        "jit",
        "exceptions",
        "allocations",
        "contention",
        "threadpool",
        "counters",
    ] {
        outputs.push((vec!["runtime", kind], Text));
        outputs.push((vec!["runtime", kind, "--format", "json"], Json));
    }
    for by in ["module", "thread", "process", "line", "tier"] {
        outputs.push((vec!["top", "--by", by], Text));
        outputs.push((vec!["top", "--by", by, "--format", "json"], Json));
    }
    for (format, kind) in [
        ("folded", Text),
        ("text", Text),
        ("jsonl", Json),
        ("svg", Page),
        ("html", Page),
        ("speedscope", Json),
        ("firefox", Json),
        ("perfetto", Json),
        ("pprof", Binary),
        ("otlp", Binary),
    ] {
        outputs.push((vec!["stacks", "--format", format], kind));
    }
    outputs
}

/// Runs the program in an environment with private values.
fn private(args: &[&str]) -> Output {
    chronosym()
        .args(args)
        .env("HOME", "/home/private-person")
        .env("USER", "private-person")
        .env("XDG_CACHE_HOME", "/home/private-person/.cache")
        .env("API_TOKEN", "private-token")
        .output()
        .unwrap()
}

fn check(args: &[&str], kind: Kind) -> String {
    let output = private(args);
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(!words.contains("panicked"), "{args:?}: {words}");
    for bytes in [words.as_bytes(), &output.stdout] {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains("private-"), "{args:?}: {text:.2000}");
    }
    let bad = |text: &str| text.lines().any(|line| line.contains(is_hostile));
    assert!(!bad(&words), "{args:?}: {words:?}");
    if kind == Kind::Binary {
        assert!(output.status.success() && !output.stdout.is_empty());
        return String::new();
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains(is_hostile));
    assert_eq!(line, None, "{args:?}");
    match kind {
        Kind::Json => {
            // One value, or one a line.
            let parses = |text: &str| serde_json::from_str::<Value>(text).is_ok();
            let whole = parses(&text) || text.lines().all(parses);
            assert!(whole, "{args:?}: {text:.2000}");
        }
        Kind::Page => {
            for markup in ["<script>alert", "<image", "onload=\"alert", "--><!--"] {
                assert!(!text.contains(markup), "{args:?}: {markup}");
            }
            // The data of a report is neither markup nor JSON until it is decoded.
            let Some((_, data)) = text.split_once("id=\"data\">") else {
                assert!(text.contains("<script type=\"text/plain\" id=\"trace\">"));
                return text;
            };
            let (data, _) = data.split_once("</script>").unwrap();
            let _: Value = serde_json::from_str(data).unwrap();
        }
        _ => {}
    }
    text
}

/// Checks every output of a trace.
fn check_all(trace: &str) {
    for (mut args, kind) in outputs(trace) {
        // A report comes before the traces.
        let is_report = args[0] == "runtime" && args.get(1).is_some_and(|it| *it != "--format");
        args.insert(if is_report { 2 } else { 1 }, trace);
        if args[0] == "explain" {
            args.push("0x10010");
        }
        check(&args, kind);
    }
}

/// The hostile traces by format.
fn traces() -> [(Vec<u8>, &'static str); 3] {
    [(event_pipe(), "nettrace"), (etw(), "etl"), (perf(), "perf")]
}

#[test]
fn names_stay_names_in_every_output() {
    for (bytes, format) in traces() {
        let trace = file(&bytes);
        let trace = trace.to_str().unwrap();
        check_all(trace);
        let folded = check(&["stacks", "--format", "folded", trace], Kind::Text);
        assert_eq!(folded.lines().count(), names().len(), "{format}: {folded}");
        for line in folded.lines() {
            let depth = line.split(';').count();
            assert_eq!(depth, 3, "{format}: process, thread, frame: {line}");
            assert!(line.ends_with(" 1"), "{format}: {line}");
        }
    }
}

/// Files that the program writes and reads again: timelines with and without samples, joined ones,
/// and profiles.
#[test]
fn names_stay_names_in_files_that_replace_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (bytes, format) in traces() {
        let trace = file(&bytes);
        let trace = trace.to_str().unwrap();
        let written = |file: &str, command: &[&str], read: &[&str]| {
            let words = check(&[command, &["-o", file, trace]].concat(), Kind::Text);
            assert_eq!(words, "", "{format}: {command:?}");
            // As text it is escaped when it is shown, not before.
            let top = [&["top", "-n", "100", file], read].concat();
            let shown = check(&top, Kind::Text);
            assert!(shown.contains("onerror=alert(1)"), "{top:?}: {shown}");
        };
        let saved = path("saved.chrono");
        written(&saved, &["save", "--with-samples"], &[]);
        check_all(&saved);
        written(&path("merged.chrono"), &["merge", "--with-samples"], &[]);
        let profile = path("profile.otlp");
        let as_profile = ["--input", "otlp"];
        written(&profile, &["stacks", "--format", "otlp"], &as_profile);
        for (output, kind) in [
            ("text", Kind::Text),
            ("jsonl", Kind::Json),
            ("html", Kind::Page),
        ] {
            let stacks = ["stacks", "--format", output, &profile];
            check(&[&stacks[..], &as_profile].concat(), kind);
        }
        check(&["otlp", &profile], Kind::Binary);

        let bare = path("bare.chrono");
        check(&["save", "-o", &bare, trace], Kind::Text);
        for command in ["summary", "info", "methods", "modules", "top"] {
            check(&[command, &bare], Kind::Text);
        }
        let symbolize = ["symbolize", "--trace", &bare, "0x10010"];
        check(&symbolize, Kind::Text);
    }
}

/// Tables are named after the trace and the machine, and read in place of it.
#[cfg(feature = "fleet")]
#[test]
fn names_stay_names_in_tables() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, format) in traces() {
        let tables = folder.path().join(format);
        let tables = tables.to_str().unwrap();
        let trace = file(&bytes);
        let args = [
            "export", "-o", tables, "--host", NAMES[0], "--boot", NAMES[2],
        ];
        check(
            &[&args[..], &[trace.to_str().unwrap()]].concat(),
            Kind::Text,
        );
        let shown = check(&["top", "-n", "100", tables], Kind::Text);
        assert!(shown.contains("onerror=alert(1)"), "{format}: {shown}");
        for command in ["summary", "stacks", "threads", "info", "modules"] {
            check(&[command, tables], Kind::Text);
        }
        check(&["stacks", "--format", "html", tables], Kind::Page);
    }
}

/// The name of the trace's own file is no more trusted than what is in it.
#[cfg(unix)]
#[test]
fn the_name_of_a_file_stays_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = NAMES[..11].concat().replace('/', "") + ".nettrace";
    for name in [&hostile, "</script><script>alert(1)</script>"].map(|name| name.replace('/', "")) {
        let trace = folder.path().join(name);
        std::fs::write(&trace, event_pipe()).unwrap();
        check_all(trace.to_str().unwrap());
        let missing = trace.with_extension("missing");
        let run = private(&["top", missing.to_str().unwrap()]);
        let words = String::from_utf8(run.stderr).unwrap();
        assert!(
            !words.lines().any(|line| line.contains(is_hostile)),
            "{words:?}"
        );
    }
}

#[test]
fn programs_get_names_as_they_are() {
    let trace = file(&event_pipe());
    let trace = trace.to_str().unwrap();
    let lines = check(&["stacks", "--format", "jsonl", trace], Kind::Json);
    for (line, name) in lines.lines().zip(NAMES) {
        let sample: Value = serde_json::from_str(line).unwrap();
        let frame = &sample["frames"][0];
        assert_eq!(frame["name"], format!("{name}.{name}"), "{line}");
        assert_eq!(frame["signature"], name);
    }
    for style in ["text", "json", "llvm", "gnu"] {
        for index in 0..NAMES.len() {
            let address = format!("{:#x}", start(index) + 0x10);
            let kind = if style == "json" {
                Kind::Json
            } else {
                Kind::Text
            };
            let args = ["symbolize", "--style", style, "--trace", trace, &address];
            let text = check(&args, kind);
            assert!(text.lines().count() <= 4, "{style}: {text}");
        }
    }
    let rewritten = run_with_input(&["symbolize", "--filter", "--trace", trace], b"at 0x10010.");
    assert!(
        rewritten.stdout.contains("red?]0;title?"),
        "{}",
        rewritten.stdout
    );
    assert!(!rewritten.stdout.contains(is_hostile));
}

/// A name never reaches the file system: no file is created next to the output.
#[test]
fn names_create_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("x.nettrace");
    std::fs::write(&trace, event_pipe()).unwrap();
    let mut command = chronosym();
    command.args(["stacks", "-o", "out.svg", "x.nettrace"]);
    command.current_dir(folder.path());
    assert!(command.output().unwrap().status.success());
    let names = folder.path().read_dir().unwrap().flatten();
    let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["out.svg", "x.nettrace"]);
    assert!(!Path::new("x").exists());
}

/// Text spells names as in C# and leaves out what runs async methods; `--raw` and JSON have names as
/// recorded.
#[test]
fn text_has_the_names_of_source_code() {
    let trace = arg("clr10/traces/linux.nettrace.zip");
    let stacks = |more: &[&str]| {
        let args = [&["stacks", "--event", "Universal.Events/cpu", &trace], more].concat();
        run(&args).stdout
    };
    let text = stacks(&[]);
    assert!(text.contains("Workload!Workload.Async.Level\n"), "{text}");
    assert!(text.contains("Shapes.Box<__Canon>.Map\n"), "{text}");
    assert!(!text.contains("ExecutionContext.Run"), "{text}");
    for recorded in [stacks(&["--raw"]), stacks(&["--format", "folded"])] {
        assert!(recorded.contains("Workload.Async+<Level>d__1.MoveNext"));
        assert!(recorded.contains("ExecutionContext.Run"));
    }
}
