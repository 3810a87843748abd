//! `lines`: the text of a method is the compiled one, or is reported not to be.

mod common;

use std::path::Path;

use common::*;

fn lines(sources: &Path) -> Run {
    let (symbols, sources) = (arg("clr10/workload"), sources.to_str().unwrap().to_owned());
    let (method, trace) = ("Spin.Work", arg(R2R));
    run(&[
        "lines",
        "--symbols",
        &symbols,
        "--sources",
        &sources,
        &trace,
        method,
    ])
}

const TEXT: &str = "for (int i = 0; i < 400; i++) x = Step(x, i);";

#[test]
fn source_is_found_by_the_end_of_its_path() {
    for folder in ["clr10/workload", "clr10"] {
        let run = lines(&testdata(folder));
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(
            run.stdout.contains("Program.cs, checksum agrees)"),
            "{}",
            run.stdout
        );
        let hot = run.stdout.lines().find(|line| line.contains(TEXT));
        assert!(
            hot.is_some_and(|line| line.contains("  102 ")),
            "{}",
            run.stdout
        );
    }
}

#[test]
fn another_text_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(testdata("clr10/workload/Program.cs")).unwrap();
    std::fs::write(folder.path().join("Program.cs"), text + "// changed").unwrap();
    let run = lines(folder.path());
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(
        run.stdout.contains("is not the compiled file"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains(TEXT), "{}", run.stdout);
    assert!(
        run.stdout.lines().any(|line| line.ends_with("  102")),
        "{}",
        run.stdout
    );
}

#[test]
fn without_a_source_file_there_are_line_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let run = lines(folder.path());
    assert!(
        run.stdout.contains("(no source file; see --sources)"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.lines().any(|line| line.ends_with("  102")),
        "{}",
        run.stdout
    );
}

#[test]
fn missing_data_is_reported() {
    let trace = arg(R2R);
    let run_of = |args: &[&str]| run(args);
    let method = run_of(&["lines", &trace, "No.Such.Method"]);
    assert_eq!(method.status, 1);
    assert!(
        method.stderr.contains("'No.Such.Method'"),
        "{}",
        method.stderr
    );
    let folder = run_of(&["lines", &trace, "Main", "--sources", "no-such-folder"]);
    assert_eq!(folder.status, 1);
    assert!(
        folder.stderr.contains("no-such-folder"),
        "{}",
        folder.stderr
    );
    let callers = run_of(&["top", &trace, "--callers", "No.Such.Method"]);
    assert_eq!(callers.status, 1);
    for misuse in [
        &["top", &trace, "--include", "/(/"][..],
        &["threads", &trace, "--fold", "/[/"],
        &["top", &trace, "--match", "/*/"],
        &["top", &trace, "--callers", "A", "--callees", "B"],
        &["diff", "-", "-"],
        &["diff", &trace],
        &["diff", &trace, &trace, &trace],
    ] {
        assert_eq!(run_of(misuse).status, 2, "{misuse:?}");
    }
}

#[test]
fn commands_of_one_trace_take_several_recordings() {
    let trace = arg(R2R);
    let one = run(&["diff", "--format", "json", &trace, &trace]);
    let sides = run(&["diff", "--format", "json", &trace, "--", &trace]);
    assert_eq!(
        (sides.status, &sides.stdout),
        (0, &one.stdout),
        "{}",
        sides.stderr
    );
    // Recordings that do not belong together are rejected when they are opened, not as a usage
    // error.
    for together in [
        &["lines", &trace, &trace, "Spin"][..],
        &["explain", &trace, &trace, "0x1000"],
        &["diff", &trace, &trace, "--", &trace],
    ] {
        let refused = run(together);
        assert_eq!(refused.status, 1, "{together:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("same"), "{}", refused.stderr);
    }
}

/// All formats have the same stacks.
#[test]
fn all_formats_have_the_shape() {
    let trace = arg(R2R);
    let of = |format: &str| {
        run(&[
            "stacks",
            "--format",
            format,
            "--group",
            "module",
            "--include",
            "Spin",
            &trace,
        ])
        .stdout
    };
    let folded: u64 = of("folded")
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    let jsonl = of("jsonl");
    let (samples, text) = (jsonl.lines().count() as u64, of("text"));
    assert!(samples > 100 && samples == folded, "{samples} {folded}");
    let counted = text.split(' ').next().unwrap().replace(',', "");
    assert_eq!(counted, samples.to_string(), "{text}");
    for output in [jsonl, text] {
        assert!(!output.contains("Workload.Spin"), "{output}");
    }
}
