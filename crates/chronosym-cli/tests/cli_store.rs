//! Symbol files from a server, through the whole program: fetched once, kept, and never fetched
//! unasked.

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use common::server::Server;
use common::*;

const TRACE: &str = "clr10/traces/memory.nettrace.zip";

/// A server that has one file, under any key whose file name is its name.
fn server_of(file: &Path) -> Server {
    let name = file.file_name().unwrap().to_str().unwrap().to_lowercase();
    let bytes = std::fs::read(file).unwrap();
    Server::new(move |path| path.ends_with(&format!("/{name}")).then(|| bytes.clone()))
}

#[test]
fn an_unwritable_cache_is_reported() {
    // A file is at the path of the folder.
    let cache = file(b"");
    let cache = cache.to_str().unwrap();
    let trace = arg(TRACE);
    let path = "srv*http://127.0.0.1:9/symbols";
    for command in ["stacks", "info", "methods"] {
        let args = [
            command,
            "--cache",
            cache,
            "--symbol-path",
            path,
            "--from",
            "1s",
            "--to",
            "1001ms",
            &trace,
        ];
        let args = match command {
            "info" => [&args[..5], &args[9..]].concat(),
            _ => args.to_vec(),
        };
        let loud = run(&args);
        assert_eq!(loud.status, 0, "{}", loud.stderr);
        // Methods need no symbol files.
        let told = loud.stderr.contains("the cache folder") && loud.stderr.contains(cache);
        assert_eq!(told, command != "methods", "{command}: {}", loud.stderr);
        let offline = run(&[&args[..], &["--offline"]].concat());
        assert!(
            !offline.stderr.contains("cache"),
            "{command}: nothing would be fetched: {}",
            offline.stderr
        );
    }
}

#[test]
fn info_reports_invalid_elements_of_a_symbol_path() {
    for command in ["top", "info"] {
        let run = run(&[command, "--symbol-path", "foo*bar", &arg(TRACE)]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(run.stderr.contains("note: symbol path: "), "{command}");
    }
}

#[test]
fn a_module_without_identity_is_reported() {
    let run = run(&["modules", &arg(REUSE)]);
    let mut lines = run.stdout.lines();
    assert!(lines.any(|l| l.contains("module Anonymously Hosted DynamicMethods Assembly")));
    assert!(
        lines
            .nth(1)
            .unwrap()
            .contains("the trace states no identity"),
        "{}",
        run.stdout
    );
}

fn lines(trace: &Path, cache: &Path, more: &[&str]) -> (usize, String) {
    let cache = cache.to_str().unwrap();
    let mut args = vec![
        "stacks",
        "--format",
        "jsonl",
        "--cache",
        cache,
        trace.to_str().unwrap(),
    ];
    args.extend(more);
    let run = run(&args);
    assert_eq!(run.status, 0, "{}", run.stderr);
    (run.stdout.matches("\"line\":").count(), run.stdout)
}

#[test]
fn a_symbol_file_is_fetched_once_and_then_kept() {
    let pdb = testdata("clr10/workload/memory/Workload.pdb");
    let server = server_of(&pdb);
    let trace = file(&unzipped(TRACE));
    let cache = tempfile::tempdir().unwrap();
    let path = format!("srv*{}", server.url);

    let (none, text) = lines(&trace, cache.path(), &[]);
    assert_eq!(none, 0);
    assert!(text.contains("\"line_reason\":\"PathNotTrusted\""));

    let (none, text) = lines(&trace, cache.path(), &["--symbol-path", &path, "--offline"]);
    assert_eq!(
        (none, server.served.load(Ordering::SeqCst)),
        (0, 0),
        "offline wins"
    );
    assert!(text.contains("\"line_reason\":\"Offline\""));

    let (fetched, text) = lines(&trace, cache.path(), &["--symbol-path", &path]);
    assert!(fetched > 100, "only {fetched} lines");
    assert!(text.contains("Program.cs"));
    assert_eq!(server.served.load(Ordering::SeqCst), 1);

    let (kept, _) = lines(&trace, cache.path(), &["--symbol-path", &path, "--offline"]);
    assert_eq!(
        (kept, server.served.load(Ordering::SeqCst)),
        (fetched, 1),
        "from the cache"
    );
}

/// If the cache cannot keep a file, it is used for this run, and the server is not blamed.
#[test]
fn a_symbol_file_is_used_without_a_cache() {
    let pdb = testdata("clr10/workload/memory/Workload.pdb");
    let server = server_of(&pdb);
    let trace = file(&unzipped(TRACE));
    let cache = file(b"");
    let path = format!("srv*{}", server.url);
    let (fetched, _) = lines(&trace, &cache, &["--symbol-path", &path]);
    assert!(fetched > 100, "only {fetched} lines");
    let args = [
        "info",
        "--cache",
        cache.to_str().unwrap(),
        "--symbol-path",
        &path,
    ];
    let run = run(&[&args[..], &[trace.to_str().unwrap()]].concat());
    assert!(
        run.stderr.contains("kept for this run only"),
        "{}",
        run.stderr
    );
    assert!(!run.stdout.contains("failed"), "{}", run.stdout);
}

/// Copies a PDB into a folder, as old as one that is converted: one that was just written is not.
fn settled_pdb(folder: &Path) -> PathBuf {
    let pdb = folder.join("small.pdb");
    std::fs::copy(arg("pdb-small/x86_64/small.pdb"), &pdb).unwrap();
    let hour = SystemTime::now() - Duration::from_secs(3600);
    let file = File::options().append(true).open(&pdb).unwrap();
    file.set_modified(hour).unwrap();
    pdb
}

/// Returns the files of converted symbols in a cache folder.
fn converted(cache: &Path) -> Vec<PathBuf> {
    let groups = std::fs::read_dir(cache.join("converted")).into_iter();
    let groups = groups.flatten().map(|group| group.unwrap().path());
    let files = groups.flat_map(|group| std::fs::read_dir(group).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn processes_convert_symbols_into_one_cache_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pdb = settled_pdb(folder.path());
    let cache = folder.path().join("cache");
    let symbolize = |when: &str| {
        let mut command = chronosym();
        command.args(["symbolize", "--pdb"]).arg(&pdb);
        command.arg("--cache").arg(&cache);
        command.args(["--symbol-cache", when, "0x1000", "0x1021", "0x10a0", "0x1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let answer = |when: &str| {
        let run = finish(symbolize(when).output().unwrap());
        assert_eq!((run.status, &*run.stderr), (0, ""));
        run.stdout
    };
    let expected = answer("off");
    for _ in 0..4 {
        let all: Vec<_> = (0..8)
            .map(|_| symbolize("always").spawn().unwrap())
            .collect();
        for process in all {
            let run = finish(process.wait_with_output().unwrap());
            assert_eq!((run.status, &*run.stderr), (0, ""));
            assert_eq!(run.stdout, expected);
        }
        let [file] = &converted(&cache)[..] else {
            panic!("{:?}", converted(&cache));
        };
        assert_eq!(answer("auto"), expected);
        std::fs::remove_file(file).unwrap();
    }
    // Killed at any moment, the last ones after they have ended.
    for ms in 0..40 {
        let mut process = symbolize("always").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        _ = process.kill();
        process.wait().unwrap();
        assert_eq!(answer("auto"), expected, "killed after {ms} ms");
        for file in converted(&cache) {
            std::fs::remove_file(file).unwrap();
        }
    }
    // Killed while it writes.
    std::fs::write(cache.join(".killed.part"), b"chronsym").unwrap();
    assert_eq!(answer("always"), expected);
    assert_eq!(answer("auto"), expected);
    assert_eq!(converted(&cache).len(), 1);
}

#[test]
fn converted_symbols_answer_like_the_symbol_file() {
    let folder = tempfile::tempdir().unwrap();
    let pdb = settled_pdb(folder.path());
    let cache = folder.path().join("cache");
    let pdb = pdb.to_str().unwrap();
    let symbolize = |when: &str, style: &str| {
        let cache = cache.to_str().unwrap();
        let source = [
            "symbolize",
            "--pdb",
            pdb,
            "--cache",
            cache,
            "--symbol-cache",
        ];
        let addresses = ["0x1000", "0x1021", "0x10a0", "0x1", "0xffffffff"];
        let run = run(&[&source[..], &[when, "--style", style], &addresses].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.stdout
    };
    for style in ["text", "json", "gnu", "llvm"] {
        let expected = symbolize("off", style);
        assert_eq!(symbolize("auto", style), expected, "the file is small");
        assert_eq!(symbolize("always", style), expected);
        assert_eq!(symbolize("auto", style), expected, "{style}");
    }
    // Text and JSON make the same query.
    assert_eq!(converted(&cache).len(), 3);
}
