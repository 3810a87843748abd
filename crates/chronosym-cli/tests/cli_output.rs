//! `-o`: what stands in the file that is named, and what is left as it was.

mod common;

use std::path::Path;

use common::*;

#[test]
fn results_go_to_the_file_that_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.txt");
    let run_to = run(&["top", &arg(LINUX), "-o", path.to_str().unwrap()]);
    assert_eq!((run_to.status, run_to.stdout.as_str()), (0, ""));
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        run(&["top", &arg(LINUX)]).stdout
    );
}

#[test]
fn an_input_is_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("a.nettrace");
    let bytes = unzipped(R2R);
    std::fs::write(&trace, &bytes).unwrap();
    let link = directory.path().join("link.nettrace");
    std::fs::hard_link(&trace, &link).unwrap();
    let map = directory.path().join("perf-6155.map");
    std::fs::write(&map, b"1000 10 name\n").unwrap();
    let indirect = directory.path().join(".").join("a.nettrace");
    let [trace, link, map, indirect] =
        [&trace, &link, &map, &indirect].map(|p| p.to_str().unwrap());
    for args in [
        &["events", trace, "-o", trace][..],
        &["stacks", trace, "-o", indirect],
        &["top", trace, "-o", link],
        &["info", trace, "-o", trace],
        &["methods", trace, "-o", trace],
        &["modules", trace, "-o", trace],
        &["explain", trace, "0x1", "-o", trace],
        &["symbolize", "--trace", trace, "0x1", "-o", link],
        &["symbolize", "--obj", trace, "0x1", "-o", trace],
        &["symbolize", "--pdb", trace, "0x1", "-o", trace],
        &["top", trace, "--perf-map", map, "-o", map],
    ] {
        let run = run(args);
        assert_eq!(run.status, 1, "{args:?}");
        assert!(run.stderr.contains("would overwrite"), "{}", run.stderr);
    }
    assert!(std::fs::read(trace).unwrap() == bytes);
    assert_eq!(std::fs::read(map).unwrap(), b"1000 10 name\n");
    let through_stdin = chronosym()
        .args(["events", "-", "-o", trace])
        .stdin(std::fs::File::open(trace).unwrap())
        .output()
        .unwrap();
    assert_eq!(through_stdin.status.code(), Some(1));
    assert!(std::fs::read(trace).unwrap() == bytes);
}

#[test]
fn a_command_that_fails_leaves_the_file_as_it_was() {
    let path = file(b"kept");
    let out = path.to_str().unwrap();
    let trace = arg(R2R);
    for args in [
        &["stacks", "no-such-file", "-o", out][..],
        &["events", "no-such-file", "-o", out],
        &["events", &trace, "--pid", "99", "-o", out],
        &["events", &trace, "--process", "nobody", "-o", out],
        &["stacks", &trace, "--pid", "99", "-o", out],
        &["methods", &trace, "--pid", "99", "-o", out],
        &[
            "explain",
            &trace,
            "0x1",
            "--symbols",
            "no-such-folder",
            "-o",
            out,
        ],
        &["symbolize", "--trace", "no-such-file", "0x1", "-o", out],
        &[
            "symbolize",
            "--trace",
            &trace,
            "--symbols",
            "no-such-folder",
            "0x1",
            "-o",
            out,
        ],
        &["symbolize", "--obj", &trace, "0x1", "-o", out],
    ] {
        assert_eq!(run(args).status, 1, "{args:?}");
        assert_eq!(std::fs::read(&path).unwrap(), b"kept", "{args:?}");
    }
}

#[test]
fn no_result_is_an_empty_file() {
    let directory = tempfile::tempdir().unwrap();
    for (command, old) in [("events", false), ("stacks", true)] {
        let path = directory.path().join(command);
        if old {
            std::fs::write(&path, b"old").unwrap();
        }
        let out = path.to_str().unwrap();
        let run = run(&[command, &arg(R2R), "--tid", "999999", "-o", out]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert_eq!(std::fs::read(&path).unwrap(), b"", "{command}");
    }
}

#[test]
fn a_write_that_fails_names_the_output() {
    let full = "/dev/full";
    if !Path::new(full).exists() {
        return;
    }
    for command in ["events", "stacks", "top", "info", "methods", "modules"] {
        let run = run(&[command, &arg(R2R), "-o", full]);
        assert_eq!(run.status, 1, "{command}");
        assert!(
            run.stderr.starts_with("chronosym: cannot write /dev/full"),
            "{command}: {}",
            run.stderr
        );
    }
}
