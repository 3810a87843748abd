//! `chronosym events`: one line a record, by the contract's keys.

mod common;

use std::collections::BTreeMap;

use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::TraceInfo;
use common::*;
use serde_json::Value;

fn jsonl(args: &[&str]) -> Vec<Value> {
    let mut all = vec!["events", "--format", "jsonl"];
    all.extend(args);
    json_lines(&all)
}

#[test]
fn every_record_comes_once_in_time_order_with_the_contracts_keys() {
    for trace in [LINUX, R2R] {
        let records = jsonl(&[&arg(trace)]);
        let info: Value =
            serde_json::from_str(&run(&["info", "--format", "json", &arg(trace)]).stdout).unwrap();
        // As many of each type as `info` counts.
        let mut counts: BTreeMap<(String, u64, u64, String), (u64, u64)> = BTreeMap::new();
        let identity = |e: &Value| {
            let number = |key: &str| e[key].as_u64().unwrap_or(u64::MAX);
            let text = |key: &str| e[key].as_str().unwrap().to_owned();
            (
                text("provider"),
                number("id"),
                number("version"),
                text("name"),
            )
        };
        let mut last = 0;
        for record in &records {
            let object = record.as_object().unwrap();
            for key in object.keys() {
                let known = [
                    "time_ns", "pid", "tid", "provider", "id", "version", "name", "fields", "stack",
                ];
                assert!(known.contains(&key.as_str()), "{key}");
            }
            assert!(object["fields"].is_object());
            let time = record["time_ns"].as_u64().unwrap();
            assert!(time >= last);
            last = time;
            let (count, stacks) = counts.entry(identity(record)).or_default();
            *count += 1;
            if let Some(stack) = object.get("stack") {
                let stack = stack.as_array().unwrap();
                assert!(!stack.is_empty());
                assert!(stack.iter().all(|a| a.as_str().unwrap().starts_with("0x")));
                *stacks += 1;
            }
        }
        let events = info["events"].as_array().unwrap();
        assert_eq!(events.len(), counts.len(), "{trace}");
        for event in events {
            let (count, stacks) = counts[&identity(event)];
            assert_eq!(event["count"].as_u64().unwrap(), count, "{event}");
            assert_eq!(event["stacks"].as_u64().unwrap(), stacks, "{event}");
        }
    }
}

#[test]
fn fields_have_their_published_names_and_ids_are_hex() {
    let loads = jsonl(&[
        "--event",
        "Microsoft-Windows-DotNETRuntime/MethodLoadVerbose",
        &arg(R2R),
    ]);
    assert!(loads.len() > 400);
    for load in &loads {
        assert_eq!(load["id"], 143);
        let fields = load["fields"].as_object().unwrap();
        for key in [
            "MethodID",
            "ModuleID",
            "MethodStartAddress",
            "MethodToken",
            "MethodFlags",
        ] {
            assert!(fields[key].as_str().unwrap().starts_with("0x"), "{key}");
        }
        assert!(fields["MethodSize"].is_u64());
        assert!(fields["MethodName"].is_string());
    }
    // The trace describes no fields of the runtime's other events: of most the published ones are known.
    let thrown = jsonl(&["--event", "Microsoft-Windows-DotNETRuntime/80", &arg(R2R)]);
    let fields = &thrown[0]["fields"];
    assert_eq!(fields["ExceptionType"], "System.InvalidOperationException");
    assert!(
        fields["ExceptionHRESULT"]
            .as_str()
            .unwrap()
            .starts_with("0x80")
    );
    // The runtime describes none of its own events: the published fields are used.
    let selector = "Microsoft-Windows-DotNETRuntimeRundown/10";
    let settings = jsonl(&["--event", selector, &arg(R2R)]);
    assert_eq!(settings[0]["fields"]["LOHThreshold"], 85_000);
    // An EventSource describes its own.
    let truth = jsonl(&["--event", "Workload-Truth/1", &arg(R2R)]);
    assert!(truth.len() > 100);
    assert!(truth.iter().all(|t| {
        t["fields"]["frames"].as_str().unwrap().contains('\t')
            || t["fields"]
                .as_object()
                .unwrap()
                .values()
                .any(|v| v.as_str().is_some_and(|v| v.contains('\t')))
    }));
}

#[test]
fn filters_choose_records() {
    let trace = arg(R2R);
    let window = jsonl(&["--from", "1s", "--to", "1010ms", &trace]);
    assert!(!window.is_empty());
    let inside =
        |r: &Value| (1_000_000_000..1_010_000_000).contains(&r["time_ns"].as_u64().unwrap());
    assert!(window.iter().all(inside));
    let tid = window[0]["tid"].as_u64().unwrap();
    let of_thread = jsonl(&[
        "--from",
        "1s",
        "--to",
        "1010ms",
        "--tid",
        &tid.to_string(),
        &trace,
    ]);
    let expected: Vec<&Value> = window.iter().filter(|r| r["tid"] == tid).collect();
    assert_eq!(of_thread.iter().collect::<Vec<_>>(), expected);
    for filter in [
        ["--process", "workload"],
        ["--pid", "6155"],
        ["--pid", "6155@1s"],
    ] {
        let same = jsonl(&[
            "--from", "1s", "--to", "1010ms", filter[0], filter[1], &trace,
        ]);
        assert_eq!(same, window, "{filter:?}");
    }
    // Two passes over a pipe.
    let piped = run_with_input(
        &[
            "events",
            "--format",
            "jsonl",
            "--process",
            "Workload",
            "--to",
            "1s",
            "-",
        ],
        &unzipped(LINUX),
    );
    assert_eq!(
        piped.stdout.lines().count(),
        jsonl(&["--to", "1s", &arg(LINUX)]).len()
    );
}

#[test]
fn a_time_that_makes_no_sense_ends_nothing() {
    let mut writer = NettraceWriter::v4().info(TraceInfo {
        frequency: 10_000_000,
        ..TraceInfo::default()
    });
    let event = writer.event_type("P", 1, 0);
    for time in [10, 1 << 62] {
        writer.event(event, time, 1, &[], &[]);
    }
    writer.sequence_point();
    for time in [20, 30] {
        writer.event(event, time, 1, &[], &[]);
    }
    let path = file(&writer.finish());
    let path = path.to_str().unwrap();
    let count = |args: &[&str]| {
        run(&[&["events", path], args].concat())
            .stdout
            .lines()
            .count()
    };
    assert_eq!(count(&[]), 4);
    assert_eq!(count(&["--to", "1s"]), 3);
}

#[test]
fn what_was_lost_is_said_of_a_window_too() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 10, 1, &[], &[]);
    writer.lose(1, 5);
    writer.event(kind, 20, 1, &[], &[]);
    writer.sequence_point();
    writer.event(kind, 30, 1, &[], &[]);
    let path = file(&writer.finish());
    let path = path.to_str().unwrap();
    for (window, lines) in [(&["--from", "0"][..], 3), (&["--to", "25ns"], 2)] {
        let mut args = vec!["events", path];
        args.extend(window);
        let run = run(&args);
        assert_eq!((run.status, run.stdout.lines().count()), (0, lines));
        assert!(
            run.stderr.contains("dropped 5 events"),
            "{window:?}: {}",
            run.stderr
        );
    }
}

/// Events that the recorder dropped are not unreadable parts of the file.
#[test]
fn lost_events_are_not_unreadable_parts() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 10, 1, &[], &[]);
    writer.lose(1, 5);
    writer.event(kind, 20, 1, &[], &[]);
    writer.sequence_point();
    let whole = writer.finish();
    let info = |bytes: &[u8]| run(&["info", file(bytes).to_str().unwrap()]).stdout;
    let lost = info(&whole);
    assert!(lost.contains("5 EVENTS WERE LOST"), "{lost}");
    assert!(
        lost.contains("NO SAMPLES of a profiler are in it"),
        "{lost}"
    );
    assert!(lost.contains("\nnext: chronosym events /"), "{lost}");
    let mut damaged = whole;
    let at = damaged.len() / 2;
    damaged.splice(at..at, [0xee; 40]);
    let damaged = info(&damaged);
    assert!(damaged.contains("could be read, and parts"), "{damaged}");
}

#[test]
fn a_filter_that_selects_nothing_is_reported() {
    let trace = arg(R2R);
    for args in [
        &["events", "--to", "1ns"][..],
        &["stacks", "--format", "jsonl", "--to", "1ns"],
        &["stacks", "--format", "folded", "--to", "1ns"],
    ] {
        let mut args = args.to_vec();
        args.push(&trace);
        let loud = run(&args);
        assert_eq!((loud.status, loud.stdout.as_str()), (0, ""), "{args:?}");
        let names_filter = loud
            .stderr
            .contains("--to 0.000000s; `chronosym info TRACE`");
        assert!(names_filter, "{args:?}: {}", loud.stderr);
        args.push("-q");
        assert_eq!(run(&args).stderr, "", "{args:?}");
    }
}

/// If a filter names something that the trace does not have, the error lists what it has.
#[test]
fn a_filter_that_selects_nothing_is_rejected() {
    let trace = arg(R2R);
    let runtime = "Microsoft-Windows-DotNETRuntime";
    for (args, status, words) in [
        (&["events", "--event", "No-Such-Provider"][..], 1, runtime),
        (&["events", "--tid", "999999"], 1, "6155"),
        (&["events", "--from", "2s", "--to", "1s"], 2, "before --to"),
        (&["methods", "--from", "2s", "--to", "2s"], 2, "before --to"),
        (&["modules", "--from", "100s"], 1, "2.1"),
        (
            &["stacks", "--event", "No-Such-Provider"],
            1,
            "Microsoft-DotNETCore",
        ),
        (
            &["stacks", "--event", "Microsoft-Windows-DotNETRuntime/187"],
            1,
            "has a stack",
        ),
        (&["stacks", "--tid", "999999"], 1, "6155"),
        (&["top", "--tid", "999999"], 1, "6155"),
        (&["threads", "--from", "100s"], 1, "long"),
        (&["top", "--from", "1ns", "--to", "0"], 2, "before --to"),
    ] {
        let mut args = args.to_vec();
        args.push(&trace);
        let run = run(&args);
        assert_eq!((run.status, run.stdout.as_str()), (status, ""), "{args:?}");
        assert!(run.stderr.contains(words), "{args:?}: {}", run.stderr);
    }
    // Events with labels are read whether they are selected or not.
    let run = run(&["events", "--event", runtime, &arg(LINUX)]);
    assert_eq!(run.status, 1);
    let others = ["Universal.Events/cpu", "Universal.System/ProcessSymbol"];
    assert!(
        others.iter().all(|it| run.stderr.contains(it)),
        "{}",
        run.stderr
    );
}

#[test]
fn text_has_one_line_a_record() {
    let text = run(&["events", "--to", "100ms", &arg(R2R)]);
    let records = jsonl(&["--to", "100ms", &arg(R2R)]);
    assert_eq!(text.stdout.lines().count(), records.len());
    assert!(!text.stdout.chars().any(|c| c.is_control() && c != '\n'));
    let jitting = text
        .stdout
        .lines()
        .find(|l| l.contains("MethodJittingStarted"))
        .unwrap();
    for part in [
        "6155/",
        "Microsoft-Windows-DotNETRuntime/145",
        "MethodID=0x",
        "[stack of ",
    ] {
        assert!(jitting.contains(part), "{jitting}");
    }
}

#[test]
fn selected_events_are_those_among_all() {
    let trace = arg(R2R);
    let provider = "Microsoft-Windows-DotNETRuntime";
    let is_selected = |event: &Value| {
        event["provider"] == provider && matches!(event["id"].as_u64(), Some(80 | 143))
    };
    let mut expected = jsonl(&[&trace]);
    let all = expected.len();
    expected.retain(is_selected);
    assert!(!expected.is_empty() && expected.len() < all);
    let [thrown, loaded] = [80, 143].map(|id| format!("{provider}/{id}"));
    assert!(jsonl(&["--event", &thrown, "--event", &loaded, &trace]) == expected);
}
