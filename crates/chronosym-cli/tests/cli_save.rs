//! `chronosym save` and `chronosym merge`.

mod common;

use common::*;
use serde_json::Value;

/// Returns what `symbolize` answers for some addresses of a process.
fn answers(trace: &str, pid: u64, addresses: &[String]) -> Vec<Value> {
    let pid = pid.to_string();
    let mut args = vec!["symbolize", "--style", "json", "--trace", trace];
    args.extend(["--pid", &pid]);
    args.extend(addresses.iter().map(String::as_str));
    let mut answers = json_lines(&args);
    for answer in &mut answers {
        without_times(answer);
    }
    answers
}

/// Removes the times, which count from the start of the earliest recording.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("_ns"));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Returns the pid of the only process, and every fiftieth start of its code.
fn code(trace: &str) -> (u64, Vec<String>) {
    let listing = &json_lines(&["methods", "--format", "json", trace])[0]["processes"][0];
    let methods = listing["methods"].as_array().unwrap();
    let addresses = methods.iter().step_by(50).map(|method| &method["address"]);
    let addresses = addresses.map(|address| address.as_str().unwrap().to_owned());
    (listing["pid"].as_u64().unwrap(), addresses.collect())
}

#[test]
fn merged_processes_keep_their_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [one, both] = [path("one.chrono"), path("both.chrono")];
    let traces = [arg(REUSE), arg("clr10/traces/rich.nettrace.zip")];
    assert_eq!(run(&["save", &traces[0], "-o", &one]).status, 0);
    assert_eq!(run(&["merge", &one, &traces[1], "-o", &both]).status, 0);
    for trace in &traces {
        let (pid, addresses) = code(trace);
        assert!(addresses.len() > 20);
        assert_eq!(
            answers(trace, pid, &addresses),
            answers(&both, pid, &addresses)
        );
    }
}

#[test]
fn a_recording_is_merged_once() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("twice.chrono");
    let trace = arg(REUSE);
    let refused = run(&["merge", &trace, &trace, "-o", out.to_str().unwrap()]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("are the same recording"),
        "{}",
        refused.stderr
    );
    assert!(!out.exists());
}
