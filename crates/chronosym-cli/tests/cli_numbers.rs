//! The time that samples represent, activities of threads, and explanations of code without a name.

mod common;

use common::*;
use serde_json::Value;

/// The sum of the weights of folded lines.
fn sum(folded: &str) -> u64 {
    let weights = folded.lines().filter_map(|line| line.rsplit_once(' '));
    weights
        .map(|(_, weight)| weight.parse::<u64>().expect("a weight"))
        .sum()
}

fn folded(args: &[&str]) -> String {
    stdout(&[&["stacks", "--format", "folded"][..], args].concat())
}

fn stdout(args: &[&str]) -> String {
    let out = run(args);
    assert_eq!(out.status, 0, "{}", out.stderr);
    out.stdout
}

#[test]
fn code_without_a_name_is_one_row_for_each_image() {
    let trace = arg("clr10/traces/linux.nettrace.zip");
    let (joined, apart) = (folded(&[&trace]), folded(&["--addresses", &trace]));
    assert!(joined.contains("libcoreclr!?") && !joined.contains("!+0x"));
    assert!(apart.contains("libcoreclr!+0x") && !apart.contains("!?"));
    assert_eq!(sum(&joined), sum(&apart));
    assert!(joined.lines().count() < apart.lines().count());

    let (joined, apart) = (
        stdout(&["top", &trace]),
        stdout(&["top", "--addresses", &trace]),
    );
    assert!(joined.contains("  libcoreclr.so ?\n") && !joined.contains("libcoreclr!"));
    assert!(apart.contains("libcoreclr!+0x4b038a ("), "{apart}");
    let last = joined.lines().last().expect("a line");
    assert!(last.starts_with("next: `chronosym symbols "), "{last}");
    assert!(joined.contains("6.2% of self is unnamed:"), "{joined}");
}

#[test]
fn time_is_the_same_in_every_output() {
    let trace = arg("clr10/traces/r2r.nettrace.zip");
    let mut ns = 0;
    for line in stdout(&["stacks", "--format", "jsonl", &trace]).lines() {
        let sample: Value = serde_json::from_str(line).expect("json");
        assert_eq!(sample["weight"], 1);
        ns += sample["weight_ns"].as_u64().expect("a time");
    }
    let lines = folded(&["--weight", "time", &trace]);
    let rounding = lines.lines().count() as u64;
    assert!(sum(&lines).abs_diff(ns / 1_000) <= rounding);
    let header = format!("{:.3} s of thread time in total", ns as f64 / 1e9);
    for command in [&["top"][..], &["info"], &["stacks", "--format", "text"]] {
        let text = stdout(&[command, &[&trace]].concat());
        assert!(
            text.replace("\n            ", " ").contains(&header),
            "{command:?}"
        );
    }
}

fn json(args: &[&str]) -> Value {
    let all = ["-n", "100000", "--format", "json"];
    serde_json::from_str(&stdout(&[args, &all].concat())).expect("json")
}

/// Every table counts the same samples, and the same nanoseconds, as one line a sample does.
#[test]
fn tables_add_up_to_the_samples() {
    let trace = arg("clr10/traces/r2r.nettrace.zip");
    let mut all = (0, 0);
    for line in stdout(&["stacks", "--format", "jsonl", &trace]).lines() {
        let sample: Value = serde_json::from_str(line).expect("json");
        all.0 += 1;
        all.1 += sample["weight_ns"].as_u64().expect("a time");
    }
    let amount = |of: &Value| {
        let number = |name: &str| {
            of[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name} of {of}"))
        };
        (number("samples"), number("time_ns"))
    };
    let sum = |amounts: &mut dyn Iterator<Item = (u64, u64)>| {
        amounts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let rows = |table: &Value, what: &str| {
        let rows = table["rows"].as_array().expect("rows").iter();
        sum(&mut rows.map(|row| amount(if what.is_empty() { row } else { &row[what] })))
    };
    for by in ["method", "module", "line", "tier", "thread", "process"] {
        let table = json(&["top", "--by", by, &trace]);
        assert_eq!((amount(&table), rows(&table, "self")), (all, all), "{by}");
    }
    let threads = json(&["threads", &trace]);
    assert_eq!((amount(&threads), rows(&threads, "")), (all, all));

    let main = "Workload!Workload.Program.Main";
    let methods = json(&["top", &trace]);
    let row = methods["rows"].as_array().expect("rows").iter();
    let row = row.clone().find(|row| row["name"] == main).expect("it ran");
    let total = amount(&row["total"]);
    let butterfly = json(&["top", "--callers", main, "--callees", main, &trace]);
    assert_eq!(amount(&butterfly), all);
    assert_eq!(amount(&butterfly["total"]), total);
    let side = |name: &str| {
        let side = butterfly[name].as_array().expect("a side").iter();
        sum(&mut side.map(amount))
    };
    let own = amount(&butterfly["self"]);
    let callees = side("callees");
    assert_eq!(side("callers"), total);
    assert_eq!((callees.0 + own.0, callees.1 + own.1), total);

    let lines = stdout(&["lines", "--format", "json", &trace, main]);
    let lines: Value = serde_json::from_str(&lines).expect("json");
    assert_eq!((amount(&lines), amount(&lines["total"])), (all, total));
    assert_eq!(amount(&lines["without_line"]["total"]), total);
    let diff = json(&["diff", &trace, &trace]);
    assert_eq!(
        (amount(&diff["before"]), amount(&diff["after"])),
        (all, all)
    );
    let method = diff["methods"].as_array().expect("rows").iter();
    let method = method
        .clone()
        .find(|row| row["name"] == main)
        .expect("it ran");
    assert_eq!(amount(&method["before"]["total"]), total);
}

#[test]
fn running_and_waiting_are_the_whole() {
    let trace = arg("clr10/traces/r2r.nettrace.zip");
    let all = sum(&folded(&[&trace]));
    let (running, waiting) = (
        folded(&["--running", &trace]),
        folded(&["--waiting", &trace]),
    );
    let unknown = folded(&["--activity", "unknown", &trace]);
    assert_eq!(sum(&running) + sum(&waiting) + sum(&unknown), all);
    let runnable = folded(&["--activity", "runnable", &trace]);
    assert_eq!(runnable, running, "this runtime's flag is reliable");
    assert_eq!(folded(&["--activity", "blocked", &trace]), waiting);
    assert_eq!(sum(&folded(&["--activity", "all", &trace])), all);
    assert!(waiting.contains("Monitor.Wait") && !waiting.contains("Inlining.Hot"));
    let old = run(&["stacks", "--format", "folded", "--managed-only", &trace]);
    assert_eq!(old.stdout, running);
    assert!(old.stderr.contains("--running"));
    let both = run(&["top", "--running", "--waiting", &trace]);
    assert_eq!(both.status, 2);
}

#[test]
fn an_untrusted_flag_is_reported() {
    let top = stdout(&[
        "top",
        "-n",
        "1",
        &arg("clr10/traces/net9-rich.nettrace.zip"),
    ]);
    assert!(top.contains(", unknown 66.1%"), "{top}");
    assert!(
        top.contains("this version of the runtime flags every thread as outside managed code"),
        "{top}"
    );
    assert!(!top.contains("native or blocked"), "{top}");
}

#[test]
fn allocations_weigh_the_bytes_that_their_events_state() {
    let trace = arg("clr10/traces/all.nettrace.zip");
    let event = ["--event", "Microsoft-Windows-DotNETRuntime/10", &trace];
    let stated: u64 = stdout(&[&["events", "--format", "jsonl"][..], &event].concat())
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).expect("json");
            event["fields"]["AllocationAmount64"]
                .as_u64()
                .expect("bytes")
        })
        .sum();
    let bytes = sum(&folded(&[&["--weight", "bytes"][..], &event].concat()));
    assert_eq!((bytes, stated > 1_000_000), (stated, true));
    assert!(stdout(&[&["top"][..], &event].concat()).contains("self bytes"));
}

#[test]
fn guesses_are_marked_and_inlined_code_without_a_name_has_its_token() {
    let top = stdout(&["top", "-n", "1000", &arg("clr10/traces/entry.nettrace.zip")]);
    assert!(
        top.contains("of self has a name that is a guess (~)"),
        "{top}"
    );
    assert!(
        top.lines()
            .any(|line| line.contains("%") && line.contains("  ~System.")),
        "{top}"
    );
    let top = stdout(&[
        "top",
        "-n",
        "9",
        &arg("clr10/traces/net9-rich.nettrace.zip"),
    ]);
    // Its token, which an event states, leads to its name if the module is available.
    assert!(top.contains("  System.Private.CoreLib!0x06003b25"), "{top}");
}

/// The time of a thread that waits in a helper for the end of a suspension is charged to its
/// caller. Only text and pictures do so, with a note.
#[test]
fn helpers_of_suspensions_are_charged_to_their_callers() {
    const HELPER: &str = "PollGCWorker";
    let trace = arg("clr10/traces/r2r.nettrace.zip");
    let raw = json(&["top", &trace]);
    let rows = raw["rows"].as_array().expect("rows");
    let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
    let helper = rows.iter().find(|row| name(row).contains(HELPER));
    let charged = helper.expect("it ran")["self"]["time_ns"].as_f64().unwrap();
    let share = charged * 100.0 / raw["time_ns"].as_f64().unwrap();

    let text = stdout(&["top", "-n", "1000", &trace]);
    let note = format!("{share:.1}% of self was spent waiting for suspensions (Thread.PollGC)");
    assert!(text.contains(&note), "{text}");
    assert!(!text.contains(HELPER));
    assert!(stdout(&["top", "-n", "1000", "--raw", &trace]).contains(HELPER));
    for format in ["folded", "jsonl", "speedscope"] {
        let output = stdout(&["stacks", "--format", format, &trace]);
        assert!(output.contains(HELPER), "{format}");
    }
    for format in ["text", "svg"] {
        let output = stdout(&["stacks", "--format", format, &trace]);
        assert!(!output.contains(HELPER), "{format}");
    }
}
