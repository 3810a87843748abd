//! `chronosym export`, with and without the feature `fleet`. What files contain is tested in `chronosym-fleet`.

mod common;

#[cfg(feature = "fleet")]
use common::file;
use common::{LINUX, arg, run};

#[cfg(not(feature = "fleet"))]
#[test]
fn without_the_feature_the_command_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let run = run(&["export", &arg(LINUX), "-o", tables.to_str().unwrap()]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("--features fleet"), "{}", run.stderr);
    assert!(!tables.exists());
    // A mistake is still a mistake.
    let read = common::run(&["stacks", "x.parquet"]);
    assert!(read.stderr.contains("--features fleet"), "{}", read.stderr);
    let mistaken = common::run(&["export", &arg(LINUX)]);
    assert_eq!(mistaken.status, 2, "{}", mistaken.stderr);
}

#[cfg(feature = "fleet")]
#[test]
fn each_recording_has_its_files_or_a_diagnostic() {
    use std::collections::BTreeSet;

    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let broken = file(b"not a trace");
    let traces = [arg(LINUX), broken.to_str().unwrap().to_owned()];
    let output = ["-o".to_owned(), tables.to_str().unwrap().to_owned()];
    let both: Vec<String> = [["export".to_owned()].as_slice(), &traces, &output].concat();
    let run = run(&both);
    assert_eq!(run.status, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("1 of 2 recordings cannot be read"),
        "{}",
        run.stderr
    );
    let names = |table: &str| {
        let files = std::fs::read_dir(tables.join(table)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    assert_eq!(names("diagnostics").len(), 2);
    for table in ["samples", "stacks", "frames", "processes", "modules"] {
        let files = names(table);
        let [file] = Vec::from_iter(&files)[..] else {
            panic!("{files:?}")
        };
        assert!(file.starts_with("linux.nettrace.zip-"), "{file}");
        assert!(file.ends_with(".parquet"), "{file}");
    }
    // Again, the recording alone: the same files.
    let alone: Vec<String> = [["export".to_owned()].as_slice(), &traces[..1], &output].concat();
    let before = names("samples");
    let again = common::run(&alone);
    assert_eq!((again.status, again.stderr.as_str()), (0, ""));
    assert_eq!(names("samples"), before);
}

#[cfg(feature = "fleet")]
#[test]
fn tables_show_what_the_trace_shows() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let tables = tables.to_str().unwrap();
    let shown = |args: &[&str]| {
        let run = run(args);
        assert_eq!(run.status, 0, "{args:?}: {}", run.stderr);
        run.stdout
    };
    for trace in [
        LINUX,
        "clr10/traces/rich.nettrace.zip",
        "clr10/traces/all.nettrace.zip",
    ] {
        let trace = arg(trace);
        _ = std::fs::remove_dir_all(tables);
        shown(&["export", &trace, "-o", tables]);
        for command in [
            ["stacks", "--format", "folded", "--weight", "time"],
            ["stacks", "--format", "folded", "--weight", "samples"],
        ] {
            let [expected, read] = [trace.as_str(), tables].map(|input| {
                let text = shown(&[command.as_slice(), &[input]].concat());
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            });
            assert_eq!(read, expected, "{trace}: {command:?}");
        }
        let totals = |input: &str| {
            let text = shown(&["top", "--format", "json", "--most", "1000000", input]);
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            let rows = json["rows"].as_array().unwrap();
            let of = |row: &serde_json::Value| (row["name"].to_string(), row["self"].to_string());
            // Code without a name is shown with its file, whose extension tables do not have.
            let rows = rows.iter().map(of).filter(|row| !row.0.ends_with(" ?\""));
            let mut rows: Vec<_> = rows.collect();
            rows.sort();
            rows
        };
        assert_eq!(totals(tables), totals(&trace), "{trace}");
        let report = folder.path().join("report.html");
        shown(&["stacks", tables, "-o", report.to_str().unwrap()]);
        assert!(report.metadata().unwrap().len() > 10_000);
    }
}

/// Both are named sums of the same samples.
#[cfg(feature = "fleet")]
#[test]
fn sums_are_smaller_than_a_compressed_profile() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["all", "linux", "memory", "rich", "reuse"] {
        let trace = arg(&format!("clr10/traces/{name}.nettrace.zip"));
        let tables = folder.path().join(name);
        let profile = folder.path().join("profile.pb.gz");
        let export = ["export", "--sums", &trace, "-o", tables.to_str().unwrap()];
        let stacks = ["stacks", "--format", "pprof", &trace, "-o"];
        for args in [
            export.as_slice(),
            &[stacks.as_slice(), &[profile.to_str().unwrap()]].concat(),
        ] {
            let run = run(args);
            assert_eq!((run.status, run.stderr.as_str()), (0, ""), "{args:?}");
        }
        let files = ["profiles", "diagnostics"].map(|table| {
            let mut files = std::fs::read_dir(tables.join(table)).unwrap();
            files.next().unwrap().unwrap().metadata().unwrap().len()
        });
        let bytes: u64 = files.iter().sum();
        let of_profile = profile.metadata().unwrap().len();
        assert!(
            bytes <= of_profile,
            "{name}: {bytes}, pprof.gz {of_profile}"
        );
    }
}
