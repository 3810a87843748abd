//! Where traces come from: files, pipes, zip and gzip files, whole and damaged.

mod common;

use std::io::{Read, Write};
use std::process::Stdio;

use common::*;

const FOLDED: [&str; 3] = ["stacks", "--format", "folded"];

fn folded(path: &std::path::Path) -> Run {
    let mut args = FOLDED.to_vec();
    args.push(path.to_str().unwrap());
    run(&args)
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_trace_is_the_same_through_every_way_in() {
    let trace = unzipped(LINUX);
    let plain = folded(&file(&trace));
    assert_eq!((plain.status, plain.stderr.as_str()), (0, ""));
    assert!(plain.stdout.lines().count() > 100);
    let gzip = gzipped(&trace);
    let ways = [
        ("zip", folded(&testdata(LINUX))),
        ("gzip", folded(&file(&gzip))),
        (
            "zip in gzip",
            folded(&file(&gzipped(&zipped(&[("t", &trace)])))),
        ),
        (
            "pipe",
            run_with_input(&["stacks", "--format", "folded", "-"], &trace),
        ),
        (
            "gzip pipe",
            run_with_input(&["stacks", "--format", "folded", "-"], &gzip),
        ),
        (
            "zip pipe",
            run_with_input(
                &["stacks", "--format", "folded", "-"],
                &zipped(&[("t", &trace)]),
            ),
        ),
    ];
    for (way, run) in ways {
        assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{way}");
        assert!(run.stdout == plain.stdout, "{way}");
    }
    #[cfg(target_os = "linux")]
    {
        let run = run_with_input(&["stacks", "--format", "folded", "/dev/stdin"], &trace);
        assert!(run.stdout == plain.stdout, "/dev/stdin");
    }
}

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
fn all_traces_of_a_zip_file_are_read() {
    let trace = unzipped(LINUX);
    let one = run(&["info", "--format", "json", &arg(LINUX)]);
    let path = file(&zipped(&[
        ("readme", b"text"),
        ("a", &trace),
        ("b", &trace),
    ]));
    let two = run(&["info", "--format", "json", path.to_str().unwrap()]);
    let cpu = |run: &Run| {
        let info: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let events = info["events"].as_array().unwrap();
        let cpu = events.iter().find(|e| e["name"] == "cpu").unwrap();
        cpu["count"].as_u64().unwrap()
    };
    assert_eq!(cpu(&two), 2 * cpu(&one));
}

#[test]
fn a_damaged_wrapper_costs_only_what_is_damaged() {
    let trace = unzipped(LINUX);
    let whole = folded(&testdata(LINUX)).stdout;
    let entry = unzipped(R2R);
    for (name, bytes) in [
        ("gzip", gzipped(&trace)),
        ("zip", zipped(&[("a.nettrace", &trace)])),
        (
            "zip of two",
            zipped(&[("a.nettrace", &trace), ("b.nettrace", &entry)]),
        ),
    ] {
        // The first of two is whole: a cut costs the second, which has no CPU samples.
        let cut = &bytes[..bytes.len() * 3 / 4];
        let run = folded(&file(cut));
        assert_eq!(run.status, 0, "{name}: {}", run.stderr);
        assert!(run.stderr.contains("note:"), "{name}: {}", run.stderr);
        assert!(!run.stdout.is_empty(), "{name}");
        assert_eq!(run.stdout == whole, name == "zip of two", "{name}");
        let quiet = chronosym()
            .args(["-q", "stacks", "--format", "folded"])
            .arg(file(cut).as_os_str())
            .output()
            .unwrap();
        assert!(quiet.stderr.is_empty(), "{name}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [
        &["events", "--format", "jsonl"][..],
        &["stacks", "--format", "jsonl"],
        &["methods"],
    ] {
        let mut child = chronosym()
            .args(args)
            .arg(testdata(R2R))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut some = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn nothing_but_results_where_no_terminal_is() {
    let run = run(&["top", &arg(R2R)]);
    assert_eq!(run.stderr, "");
    assert!(!run.stdout.contains('\x1b'));
    let colour = common::run(&["--color", "always", "top", &arg(R2R)]);
    assert!(colour.stdout.contains('\x1b'));
    let plain: String = colour
        .stdout
        .replace("\x1b[1m", "")
        .replace("\x1b[2m", "")
        .replace("\x1b[0m", "");
    assert_eq!(plain, run.stdout);
}
