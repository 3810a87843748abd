//! Symbol files from a server, through the whole program: fetched once, kept, and never fetched
//! unasked.

mod common;

use std::path::Path;
use std::sync::atomic::Ordering;

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

#[test]
fn converted_symbols_answer_like_the_symbol_file() {
    let folder = tempfile::tempdir().unwrap();
    let pdb = folder.path().join("small.pdb");
    std::fs::copy(arg("pdb-small/x86_64/small.pdb"), &pdb).unwrap();
    // A file that was just written is not converted.
    let hour = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let file = std::fs::File::options().append(true).open(&pdb).unwrap();
    file.set_modified(hour).unwrap();
    let cache = folder.path().join("cache");
    let (pdb, stored) = (pdb.to_str().unwrap(), cache.join("converted"));
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
    let groups = std::fs::read_dir(stored).unwrap();
    let files = groups.flat_map(|group| std::fs::read_dir(group.unwrap().path()).unwrap());
    assert_eq!(files.count(), 3);
}
