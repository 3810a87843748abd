//! Inputs: files, pipes, zip and gzip files, whole and damaged.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::*;

const FOLDED: [&str; 3] = ["stacks", "--format", "folded"];

fn folded(path: &std::path::Path) -> Run {
    let mut args = FOLDED.to_vec();
    args.push(path.to_str().unwrap());
    run(&args)
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
fn a_damaged_archive_costs_only_the_damaged_part() {
    let trace = unzipped(LINUX);
    let whole = folded(&testdata(LINUX)).stdout;
    let backwards: Vec<u8> = trace.iter().rev().copied().collect();
    for (name, bytes) in [
        ("gzip", gzipped(&trace)),
        ("zip", zipped(&[("a.nettrace", &trace)])),
        (
            "zip of two",
            zipped(&[("a.nettrace", &trace), ("b", &backwards)]),
        ),
        ("zip in gzip", gzipped(&zipped(&[("a.nettrace", &trace)]))),
    ] {
        // The first of two is whole: a cut costs the second.
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
fn a_damaged_gzip_file_is_read_up_to_the_damage() {
    let trace = unzipped(LINUX);
    let whole = folded(&file(&trace)).stdout;
    let sound = gzipped(&trace);
    let checksum = sound.len() - 8;
    let middle = sound.len() / 2;
    let flip = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at..at + 4].iter_mut().for_each(|b| *b ^= 0xff);
        bytes
    };
    let followed = [&sound, &b"something else"[..]].concat();
    for (name, bytes, costs) in [
        ("wrong checksum", flip(checksum), false),
        ("trailing bytes", followed, false),
        ("flipped bytes", flip(middle), true),
        ("cut", sound[..middle].to_vec(), true),
    ] {
        let path = file(&bytes);
        let run = folded(&path);
        assert_eq!(run.status, 0, "{name}: {}", run.stderr);
        assert!(
            run.stderr.contains("note:") && run.stderr.contains("(gzip) is damaged"),
            "{name}: {}",
            run.stderr
        );
        assert!(!run.stdout.is_empty(), "{name}");
        assert_eq!(run.stdout != whole, costs, "{name}");
        // `info` has the damage among its results.
        let info = common::run(&["info", "-q", path.to_str().unwrap()]);
        assert!(info.stdout.contains("(gzip) is damaged"), "{name}");
        assert_eq!(info.stderr, "", "{name}");
        let info = common::run(&["info", "-q", "--format", "json", path.to_str().unwrap()]);
        let info: serde_json::Value = serde_json::from_str(&info.stdout).unwrap();
        let diagnostics = info["diagnostics"].as_array().unwrap();
        let damaged = |d: &serde_json::Value| d.as_str().unwrap().contains("(gzip) is damaged");
        assert!(diagnostics.iter().any(damaged), "{name}: {diagnostics:?}");
    }
}

#[test]
fn a_wrong_checksum_in_a_zip_file_is_among_the_results_of_info() {
    let trace = unzipped(LINUX);
    let mut zip = zipped(&[("a.nettrace", &trace)]);
    // The checksum is in the central directory at the end.
    let list = zip.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    zip[list + 16] ^= 0xff;
    let path = file(&zip);
    let info = run(&["info", "-q", path.to_str().unwrap()]);
    assert_eq!(info.status, 0, "{}", info.stderr);
    assert!(
        info.stdout.contains("(a.nettrace) is damaged"),
        "{}",
        info.stdout
    );
}

#[test]
fn recordings_are_not_mixed() {
    let linux = unzipped(LINUX);
    let (a, b) = (file(&linux), file(&unzipped(R2R)));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let gzip = file(&gzipped(&linux));
    let zip = file(&zipped(&[
        ("readme", b"text"),
        ("a", &linux),
        ("b", &linux),
    ]));
    for command in ["stacks", "events", "info"] {
        for (files, words) in [
            (vec![a, a], vec![a, "same file"]),
            (vec![a, b], vec![a, b, "one by one"]),
            (vec![a, gzip.to_str().unwrap()], vec![a, "(gzip)"]),
            (vec![zip.to_str().unwrap()], vec!["(a)", "(b)"]),
        ] {
            let mut args = vec![command];
            args.extend(&files);
            let run = run(&args);
            assert_eq!((run.status, run.stdout.as_str()), (1, ""), "{args:?}");
            for word in words {
                assert!(run.stderr.contains(word), "{args:?}: {}", run.stderr);
            }
        }
    }
}

#[test]
fn a_perf_map_without_a_process_is_reported() {
    let map = file(b"1000 10 name\n");
    let map = format!("77={}", map.to_str().unwrap());
    let run = run(&["top", &arg(R2R), "--perf-map", &map]);
    assert_eq!(run.status, 0);
    assert!(
        run.stderr.contains("process id 77") && run.stderr.contains("Workload (6155)"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
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
fn only_results_are_printed_without_a_terminal() {
    let run = run(&["top", &arg(R2R)]);
    assert_eq!(run.stderr, "");
    assert!(!run.stdout.contains('\x1b'));
    let colour = common::run(&["--color", "always", "top", &arg(R2R)]);
    assert!(colour.stdout.contains('\x1b'));
    let mut parts = colour.stdout.split("\x1b[");
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let (number, text) = part.split_once('m').unwrap();
        assert!(number.bytes().all(|c| c.is_ascii_digit()), "{number}");
        plain.push_str(text);
    }
    assert_eq!(plain, run.stdout);
}

/// PerfView packs PDBs next to the trace, each under its identity; that of another build is not
/// used. They may also be loose in the zip file, or next to the trace itself.
#[test]
fn symbol_files_shipped_with_a_trace_are_found_by_identity() {
    let read = |name: &str| std::fs::read(testdata(name)).unwrap();
    let trace = unzipped("clr31/workload/traces/all.nettrace.zip");
    let pdb = read("clr31/workload/Workload.pdb");
    let image = read("clr31/workload/Workload.dll");
    let image = chronosym_pdb::pe::PeImage::parse(&image).unwrap();
    let id = image.portable_codeview().unwrap().id;
    let lines_of = |path: &str| {
        let listed = run(&["stacks", "--format", "folded", "--lines", path]);
        assert_eq!(listed.status, 0, "{}", listed.stderr);
        let frames = listed.stdout.lines().flat_map(|line| line.split(';'));
        frames
            .filter(|f| f.starts_with("Workload!") && f.contains("Spin.Work:"))
            .count()
    };
    let lines = |name: &str| {
        let packed = file(&zipped(&[("all.nettrace", &trace), (name, &pdb)]));
        lines_of(packed.to_str().unwrap())
    };
    let own = format!("symbols/Workload.pdb/{:#}FFFFFFFF/Workload.pdb", id.guid);
    assert!(lines(&own) > 0);
    assert!(lines("Workload.pdb") > 0);
    let folder = tempfile::tempdir().unwrap();
    let beside = folder.path().join("all.nettrace");
    std::fs::write(&beside, &trace).unwrap();
    std::fs::write(folder.path().join("Workload.pdb"), &pdb).unwrap();
    let beside = beside.to_str().unwrap();
    assert!(lines_of(beside) > 0);
    assert!(run(&["info", beside]).stdout.contains("Workload.pdb"));
    let other = "symbols/Workload.pdb/00112233445566778899AABBCCDDEEFFFFFFFFFF/Workload.pdb";
    assert_eq!(lines(other), 0);
}
