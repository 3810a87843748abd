//! Faults of the machine: disks that are full or cannot be written, files that are none, traces
//! that still grow.
#![cfg(target_os = "linux")]

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::*;

/// A longer run waits for an event that never comes.
const LONGEST: Duration = Duration::from_secs(120);

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the output of a script of `sh` in a folder `$1` that is a small disk of its own, mounted
/// with `options`; `$2` is the program, the rest are `args`. `None` if disks cannot be mounted,
/// which only root can do.
fn on_a_disk(options: &str, script: &str, args: &[&str]) -> Option<String> {
    let may = Command::new("unshare").args(["-m", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("no disks can be mounted here: nothing is tested");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("mount -t tmpfs -o {options} none \"$1\" || exit 99\n{script}");
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script, "sh", path(folder.path())])
        .arg(env!("CARGO_BIN_EXE_chronosym"))
        .args(args)
        .env_remove("_NT_SYMBOL_PATH")
        .env_remove("DEBUGINFOD_URLS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!text.contains("panicked"), "{text}");
    if output.status.code() == Some(99) {
        eprintln!("no disks can be mounted here: nothing is tested");
        return None;
    }
    Some(text)
}

#[test]
fn a_full_disk_leaves_the_result_that_was_there() {
    let script = r#"
        echo kept >"$1/out"
        "$2" events --format jsonl "$3" -o "$1/out"
        echo "status $?"
        cat "$1/out"
        ls -A "$1""#;
    let Some(text) = on_a_disk("size=64k", script, &[&arg(REUSE)]) else {
        return;
    };
    assert!(text.contains("status 1\nkept\nout\n"), "{text}");
    assert!(text.contains("chronosym: cannot write "), "{text}");
    assert!(text.contains("No space left on device"), "{text}");
}

#[test]
fn a_cache_on_a_full_or_read_only_disk_costs_names_alone() {
    let trace = testdata("clr10/traces/memory.nettrace.zip");
    let plain = run(&["stacks", "--format", "folded", path(&trace)]);
    assert_eq!(plain.status, 0);
    // The server does not exist: nothing can be cached, and everything else is unchanged.
    let script = r#"
        mkdir "$1/cache"
        head -c 1000000 /dev/zero >"$1/full" 2>/dev/null
        "$2" stacks --format folded --cache "$1/cache" --symbol-path srv*http://127.0.0.1:9/ "$3" 2>/dev/null
        echo "status $?""#;
    for (options, before) in [
        ("size=16k", ""),
        ("size=64k", "mount -o remount,ro \"$1\"\n"),
    ] {
        let script = script.replace("\"$2\"", &format!("{before}\"$2\""));
        let Some(text) = on_a_disk(options, &script, &[path(&trace)]) else {
            return;
        };
        let (stacks, end) = text.split_at(text.rfind("status").unwrap());
        assert_eq!(end, "status 0\n");
        assert_eq!(stacks, plain.stdout, "{options}");
    }
}

/// Runs the program with a time limit, so that endless waits fail.
fn in_time(args: &[&str]) -> Run {
    let [out, err] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    let mut child = chronosym()
        .args(args)
        .stdout(out.reopen().unwrap())
        .stderr(err.reopen().unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > LONGEST {
            child.kill().unwrap();
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    finish(std::process::Output {
        status,
        stdout: std::fs::read(out.path()).unwrap(),
        stderr: std::fs::read(err.path()).unwrap(),
    })
}

fn fifo(folder: &Path, name: &str) -> std::path::PathBuf {
    let pipe = folder.join(name);
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    pipe
}

#[test]
fn devices_are_not_traces() {
    for device in ["/dev/zero", "/dev/null", "/dev/urandom", "/dev"] {
        let run = in_time(&["info", device]);
        assert_eq!(run.status, 1, "{device}: {}", run.stdout);
        assert!(run.stderr.starts_with("chronosym: "), "{}", run.stderr);
        assert!(run.stderr.contains(device), "{}", run.stderr);
    }
}

#[test]
fn devices_are_not_symbol_files() {
    let trace = testdata("clr10/traces/memory.nettrace.zip");
    for device in ["/dev/zero", "/dev/null", "/dev/urandom", "/dev"] {
        let map = format!("1={device}");
        let asked: [&[&str]; 4] = [
            &["symbolize", "0x1000", "--obj", device],
            &["symbolize", "0x1000", "--pdb", device],
            &["stacks", "--kallsyms", device, path(&trace)],
            &["stacks", "--perf-map", &map, path(&trace)],
        ];
        for args in asked {
            let run = in_time(args);
            run.assert_ended_well(&format!("{args:?}"));
            assert!(!run.stderr.is_empty(), "{args:?}");
        }
    }
}

#[test]
fn a_pipe_is_a_trace_and_no_symbol_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = fifo(folder.path(), "trace");
    let trace = unzipped(LINUX);
    let whole = file(&trace);
    let commands: [&[&str]; 2] = [
        &["stacks", "--format", "folded"],
        &["symbolize", "0x1000", "--trace"],
    ];
    for command in commands {
        let writer = std::thread::spawn({
            let (pipe, trace) = (pipe.clone(), trace.clone());
            move || std::fs::write(pipe, trace)
        });
        let piped = in_time(&[command, &[path(&pipe)]].concat());
        writer.join().unwrap().unwrap();
        let plain = run(&[command, &[path(&whole)]].concat());
        assert_eq!((piped.status, piped.stdout), (0, plain.stdout));
    }
    // Pipes without a writer are at the paths at which symbol files are searched for by name.
    let symbols = tempfile::tempdir().unwrap();
    for name in [
        "Workload.pdb",
        "Workload.dll",
        "libcoreclr.so",
        "libcoreclr.so.dbg",
    ] {
        fifo(symbols.path(), name);
    }
    for command in ["stacks", "symbols"] {
        let run = in_time(&[command, "--symbols", path(symbols.path()), &arg(LINUX)]);
        assert_eq!(run.status, 0, "{}", run.stderr);
    }
}

/// The trace of a process that is still running is read as far as it goes, and the missing part is
/// reported.
#[test]
fn a_growing_trace_is_read_up_to_its_end() {
    let trace = unzipped(LINUX);
    let folder = tempfile::tempdir().unwrap();
    let growing = folder.path().join("growing.nettrace");
    let mut out = std::fs::File::create(&growing).unwrap();
    let (begin, rest) = trace.split_at(trace.len() / 3);
    out.write_all(begin).unwrap();
    let writer = std::thread::spawn({
        let rest = rest.to_vec();
        move || {
            for piece in rest.chunks(rest.len() / 40) {
                out.write_all(piece).unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    });
    let mut counts = Vec::new();
    let samples = || {
        let run = run(&["stacks", "--format", "jsonl", path(&growing)]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        run.stdout.lines().count()
    };
    while !writer.is_finished() {
        counts.push(samples());
    }
    writer.join().unwrap();
    counts.push(samples());
    assert!(counts.is_sorted(), "{counts:?}");
    let whole = file(&trace);
    let whole = run(&["stacks", "--format", "jsonl", path(&whole)]);
    assert_eq!(counts.last(), Some(&whole.stdout.lines().count()));
}

/// If threads cannot be spawned for lack of memory for stacks, their work is done without them.
#[test]
fn no_thread_can_be_started() {
    let trace = testdata("clr10/traces/memory.nettrace.zip");
    let (object, pdb) = (
        testdata("pdb-small/x86_64/small.exe"),
        testdata("pdb-small/x86_64/small.pdb"),
    );
    let addresses: Vec<String> = (0..3000).map(|at| format!("{:#x}", 0x1000 + at)).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let asked: [&[&str]; 4] = [
        &["stacks", "--format", "folded", path(&trace)],
        &["symbolize", "--rva", "--obj", path(&object)],
        &["symbolize", "--pdb", path(&pdb)],
        &["serve", path(&trace)],
    ];
    for args in asked {
        let more = if args[0] == "symbolize" {
            &*addresses
        } else {
            &[]
        };
        let mut without = chronosym();
        without.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
        let without = finish(without.args(args).args(more).output().unwrap());
        if args[0] == "serve" {
            assert_eq!(without.status, 1, "{}", without.stderr);
            assert!(
                without.stderr.contains("cannot start a thread: "),
                "{}",
                without.stderr
            );
            continue;
        }
        let with = run(&[args, more].concat());
        assert_eq!(
            (without.status, without.stderr),
            (0, with.stderr),
            "{args:?}"
        );
        assert_eq!(without.stdout, with.stdout, "{args:?}");
    }
}
