//! Names out of a trace cannot steer a terminal, nor break a line.

mod common;

use common::*;

use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{Method, Module};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const HOSTILE: &str = "\x1b[31mred\nline\x07\u{9b}2J";

/// A module and a method with such names, and a sample in the method.
fn trace() -> Vec<u8> {
    let mut writer = NettraceWriter::v4();
    let module = writer.event_type(RUNTIME, 152, 2);
    let load = writer.event_type(RUNTIME, 143, 2);
    let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let path = format!("/{HOSTILE}/{HOSTILE}.dll");
    let loaded = Module {
        id: 0x77,
        il_path: &path,
        native_path: &path,
        managed_pdb: ([1; 16], 1, &path),
        ..Module::default()
    };
    let other = writer.event_type(HOSTILE, 1, 0);
    writer.event(other, 5, 1, &[], &[]);
    writer.event(module, 10, 1, &[], &loaded.encode(2));
    let method = Method {
        id: 5,
        module: 0x77,
        start: 0x1000,
        size: 0x100,
        token: 0x0600_0001,
        flags: 1,
        names: Some((HOSTILE, HOSTILE, HOSTILE)),
        ..Method::default()
    };
    writer.event(load, 20, 1, &[], &method.encode(2));
    writer.event(sample, 30, 1, &[0x1010], &[2, 0, 0, 0]);
    writer.finish()
}

#[test]
fn control_characters_of_a_trace_are_not_printed() {
    let path = file(&trace());
    let path = path.to_str().unwrap();
    for args in [
        &["info", path][..],
        &["stacks", "--format", "folded", path],
        &["stacks", "--format", "text", path],
        &["stacks", "--format", "jsonl", path],
        &["top", path],
        &["events", path],
        &["methods", path],
        &["modules", path],
        &["explain", path, "0x1010"],
        &["symbolize", "--trace", path, "0x1010"],
        &["symbolize", "--style", "llvm", "--trace", path, "0x1010"],
        &["symbolize", "--style", "json", "--trace", path, "0x1010"],
        &["stacks", "--process", "nobody", path],
    ] {
        let run = run(args);
        let text = format!("{}{}", run.stdout, run.stderr);
        // JSON escapes them where it has to.
        let is_json = args.iter().any(|arg| arg.starts_with("json"));
        let is_bad = |c: char| {
            if is_json {
                c.is_ascii_control()
            } else {
                c.is_control()
            }
        };
        let bad = text.lines().find(|line| line.contains(is_bad));
        assert_eq!(bad, None, "{args:?}");
        assert!(!text.lines().any(|l| l.starts_with("line")), "{args:?}");
        assert!(run.status != 0 || text.contains("red"), "{args:?}: {text}");
    }
    let rewritten = run_with_input(&["symbolize", "--filter", "--trace", path], b"at 0x1010.");
    assert!(
        rewritten.stdout.contains("red?line"),
        "{}",
        rewritten.stdout
    );
    assert!(!rewritten.stdout.contains(char::is_control));
}
