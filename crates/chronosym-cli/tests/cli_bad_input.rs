//! Failures are reported in one clear line, with the exit status in the contract.

mod common;

use std::io::Write;

use common::*;

/// Runs a command that must be refused with status 2 and a text that holds all of these words.
fn is_misuse(args: &[&str], words: &[&str]) {
    let run = run(args);
    assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
    assert_eq!(run.stdout, "", "{args:?}");
    for word in words {
        assert!(
            run.stderr.contains(word),
            "{args:?}: no '{word}' in: {}",
            run.stderr
        );
    }
}

/// Runs a command that must fail with status 1 and one line that holds all of these words.
fn fails(args: &[&str], words: &[&str]) {
    let run = run(args);
    assert_eq!(run.status, 1, "{args:?}: {}", run.stderr);
    assert_eq!(run.stdout, "", "{args:?}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{args:?}: {}", run.stderr);
    assert!(lines[0].starts_with("chronosym: "), "{}", lines[0]);
    for word in words {
        assert!(
            lines[0].contains(word),
            "{args:?}: no '{word}' in: {}",
            lines[0]
        );
    }
}

#[test]
fn files_that_are_not_traces_are_identified() {
    let expected = "expected a .nettrace, .netperf, .etl, perf.data or LTTng trace, or a zip or gzip file with one";
    let directory = tempfile::tempdir().unwrap();
    let bytes = file(&[7; 300]);
    let empty = file(b"");
    let xml = file(b"<trace/>");
    let missing = directory.path().join("missing.nettrace");
    for command in [
        "info", "stacks", "top", "events", "methods", "modules", "threads", "symbols", "runtime",
        "inlining",
    ] {
        let with = |path: &std::path::Path, words: &[&str]| {
            fails(&[command, path.to_str().unwrap()], words);
        };
        with(&bytes, &["is not a trace", expected, "07 07 07 07"]);
        with(&empty, &["is empty", expected]);
        with(&xml, &["is not a trace", expected, "XML"]);
        with(directory.path(), &["is a directory", expected]);
        with(&missing, &["cannot open", "missing.nettrace"]);
    }
    let own = env!("CARGO_BIN_EXE_chronosym");
    fails(&["info", own], &["is not a trace", "found a"]);
}

#[test]
fn a_zip_file_without_a_trace_is_named() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("x.txt", zip::write::SimpleFileOptions::default())
        .unwrap();
    zip.write_all(b"no trace").unwrap();
    let path = file(&zip.finish().unwrap().into_inner());
    fails(
        &["info", path.to_str().unwrap()],
        &["zip file without a readable trace"],
    );
}

#[test]
fn a_wrong_process_is_answered_with_those_that_are_there() {
    let trace = arg(LINUX);
    for command in [
        "stacks", "top", "methods", "modules", "events", "threads", "symbols", "runtime",
        "inlining",
    ] {
        fails(&[command, "--pid", "99", &trace], &["99", "9787"]);
        fails(
            &[command, "--process", "nobody", &trace],
            &["nobody", "Workload (9787)"],
        );
    }
    fails(
        &["explain", "--pid", "99", &trace, "0x1"],
        &["99", "Workload (9787)"],
    );
    fails(
        &["symbolize", "--trace", &trace, "--pid", "99", "0x1"],
        &["99", "Workload (9787)"],
    );
}

#[test]
fn bad_values_are_named() {
    let trace = arg(LINUX);
    is_misuse(&["explain", &trace, "here"], &["'here'", "address", "0x"]);
    is_misuse(
        &["symbolize", "--trace", &trace, "here"],
        &["'here'", "address", "module+0x"],
    );
    is_misuse(
        &["symbolize", "--trace", &trace, "--filter", "0x1"],
        &["--filter", "ADDR"],
    );
    is_misuse(
        &["symbolize", "--trace", "-"],
        &["standard input is the trace"],
    );
    for command in ["stacks", "events", "top"] {
        is_misuse(
            &[command, "--event", "/7", &trace],
            &["'/7'", "--event", "PROVIDER/ID"],
        );
        is_misuse(
            &[command, "--from", "1,5", &trace],
            &["'1,5'", "m, s, ms, us or ns"],
        );
    }
    // Options that could have no effect are not offered.
    for command in ["methods", "modules"] {
        is_misuse(&[command, "--tid", "1", &trace], &["--tid"]);
        is_misuse(&[command, "--event", "P", &trace], &["--event"]);
    }
    fails(
        &["info", &trace, "-o", "/no/such/folder/x"],
        &["cannot write", "/no/such/folder/x"],
    );
    let text = file(b"text");
    fails(
        &["symbolize", "--obj", text.to_str().unwrap(), "1"],
        &["not an ELF, PE, Mach-O or Breakpad file"],
    );
    fails(
        &["symbolize", "--pdb", text.to_str().unwrap(), "1"],
        &["not a Windows PDB"],
    );
}

#[test]
fn wrong_usage_exits_with_2() {
    let trace = arg(LINUX);
    for args in [
        vec!["info", "--no-such-option", &trace],
        vec!["info"],
        vec!["no-such-command"],
        vec![],
        vec!["stacks", "--format", "gif", &trace],
        vec!["stacks", "--from", "1 year", &trace],
        vec!["stacks", "--pid", "me", &trace],
        vec!["symbolize", "0x1"],
        vec!["symbolize", "--trace", &trace, "--obj", &trace, "0x1"],
        vec!["completions", "no-such-shell"],
    ] {
        let run = run(&args);
        assert_eq!(run.status, 2, "{args:?}");
        assert_eq!(run.stdout, "", "{args:?}");
        assert!(!run.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_trace_alone_is_looked_at() {
    let trace = arg(LINUX);
    let summary = run(&["summary", &trace]);
    assert_eq!(run(&[&trace]).stdout, summary.stdout);
    assert_eq!(
        run(&["-q", "--color", "never", &trace]).stdout,
        summary.stdout
    );
    fails(&["no/such/file"], &["cannot open no/such/file"]);
}

#[test]
fn swapped_arguments_are_noticed() {
    let trace = arg(LINUX);
    for args in [
        &["explain", "0x1234", &trace][..],
        &["lines", "Spin.Work", &trace],
    ] {
        let run = run(args);
        assert_eq!(run.status, 2, "{args:?}");
        let right = format!("chronosym {} {} {}", args[0], args[2], args[1]);
        assert!(run.stderr.contains(&right), "{}", run.stderr);
    }
}

#[test]
fn help_is_not_an_error() {
    for args in [
        &["--help"][..],
        &["stacks", "--help"],
        &["--version"],
        &["help", "info"],
    ] {
        let run = run(args);
        assert_eq!(run.status, 0, "{args:?}");
        assert!(run.stdout.contains("chronosym"), "{args:?}");
    }
}
