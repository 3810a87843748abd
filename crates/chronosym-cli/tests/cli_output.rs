//! `-o`: the content of the named file, and what remains unchanged.

mod common;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

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
        &["threads", trace, "-o", trace],
        &["symbols", trace, "-o", link],
        &["lines", trace, "Main", "-o", trace],
        &["diff", &arg(R2R), trace, "-o", trace],
        &["methods", trace, "-o", trace],
        &["modules", trace, "-o", trace],
        &["explain", trace, "0x1", "-o", trace],
        &["symbolize", "--trace", trace, "0x1", "-o", link],
        &["symbolize", "--obj", trace, "0x1", "-o", trace],
        &["symbolize", "--pdb", trace, "0x1", "-o", trace],
        &["top", trace, "--perf-map", map, "-o", map],
    ] {
        let mut refused = run(args);
        // Nor is it by a command that takes the format from the extension.
        if refused.stderr.contains("the extension is none of") {
            assert_eq!(refused.status, 2, "{args:?}");
            refused = run(&[args, &["--format", "text"]].concat());
        }
        assert_eq!(refused.status, 1, "{args:?}");
        assert!(
            refused.stderr.contains("would overwrite"),
            "{args:?}: {}",
            refused.stderr
        );
    }
    assert!(std::fs::read(trace).unwrap() == bytes);
    assert_eq!(std::fs::read(map).unwrap(), b"1000 10 name\n");
    let through_stdin = chronosym()
        .args(["events", "--format", "text", "-", "-o", trace])
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
    for (command, format, old) in [("events", "text", false), ("stacks", "folded", true)] {
        let path = directory.path().join(command);
        if old {
            std::fs::write(&path, b"old").unwrap();
        }
        let out = path.to_str().unwrap();
        let run = run(&[
            command,
            &arg(R2R),
            "--to",
            "1ns",
            "--format",
            format,
            "-o",
            out,
        ]);
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

/// Results are written under another name until they are complete.
#[test]
fn a_killed_command_leaves_the_file_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    std::fs::write(&path, b"kept").unwrap();
    let mut child = chronosym()
        .args([
            "events",
            "--format",
            "jsonl",
            "-",
            "-o",
            path.to_str().unwrap(),
        ])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let trace = unzipped(REUSE);
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &trace[..trace.len() / 2]).unwrap();
    let names = || std::fs::read_dir(directory.path()).unwrap().count();
    let begin = std::time::Instant::now();
    while names() < 2 && begin.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(names(), 2, "something is written beside it");
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_rights_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("out"), directory.path().join("link"));
    std::fs::write(&path, b"old").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("out", &link).unwrap();
    let run = run(&["methods", &arg(R2R), "-o", link.to_str().unwrap()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(link.is_symlink() && std::fs::read(&path).unwrap().len() > 100);
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn results_are_complete_if_notes_cannot_be_written() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let trace = unzipped(LINUX);
    let cut = file(&trace[..trace.len() / 2]);
    let run_to = |args: &[&str]| {
        let mut command = chronosym();
        command.args(args).stderr(full.try_clone().unwrap());
        command.output().unwrap()
    };
    let cut = cut.to_str().unwrap();
    let output = run_to(&["stacks", "--format", "folded", cut]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        run(&["stacks", "--format", "folded", cut]).stdout
    );
    let nothing = run_to(&["stacks", "--to", "1ns", cut]);
    assert_eq!(nothing.status.code(), Some(0));
    assert_eq!(run_to(&["stacks", "no-such-file"]).status.code(), Some(1));
}

/// Sends a signal, and returns how the program ended.
#[cfg(unix)]
fn ended_by(signal: &str, child: &mut Child) -> ExitStatus {
    let kill = format!("kill -{signal} {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(sent.success());
    child.wait().unwrap()
}

/// Waits for a file in a folder of `before` files.
#[cfg(unix)]
fn wait_for_file(folder: &Path, before: usize, child: &mut Child) {
    while count_files(folder) == before {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn count_files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Writes a trace without its end, for which the program keeps waiting.
fn send_start(bytes: &[u8], child: &mut Child) -> std::process::ChildStdin {
    let mut stdin = child.stdin.take().unwrap();
    for part in bytes[..bytes.len() - 1].chunks(1 << 16) {
        stdin.write_all(part).unwrap();
    }
    stdin
}

#[cfg(unix)]
const SIGNALS: [(&str, i32); 3] = [("INT", 130), ("TERM", 143), ("HUP", 129)];

/// A signal that ends the program leaves neither a part of the result nor a temporary file.
#[cfg(unix)]
#[test]
fn signals_leave_no_temporary_files() {
    let bytes = unzipped(LINUX);
    for (signal, status) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        std::fs::write(&path, "before").unwrap();
        let mut child = chronosym()
            .args(["-q", "events", "--format", "jsonl", "-", "-o"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _stdin = send_start(&bytes, &mut child);
        wait_for_file(folder.path(), 1, &mut child);
        let ended = ended_by(signal, &mut child);
        assert_eq!(ended.code(), Some(status), "{signal}: {ended}");
        assert_eq!(count_files(folder.path()), 1, "{signal}");
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
    }
}

/// Nor do they leave the copy of a pipe that is read twice, or the symbol files of an archive.
#[cfg(unix)]
#[test]
fn signals_leave_no_temporary_input() {
    let bytes = unzipped(LINUX);
    let pdb = std::fs::read(testdata("clr10/workload/Workload.pdb")).unwrap();
    let archive = zipped(&[("a.nettrace", &bytes), ("symbols/Workload.pdb", &pdb)]);
    let archive = file(&archive);
    for (signal, status) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        let start = |args: &[&str]| {
            let mut command = chronosym();
            command.args(args).env("TMPDIR", folder.path());
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            command.stderr(Stdio::null()).spawn().unwrap()
        };
        let mut copying = start(&["events", "--process", "*", "-"]);
        let _stdin = send_start(&bytes, &mut copying);
        wait_for_file(folder.path(), 0, &mut copying);
        assert_eq!(ended_by(signal, &mut copying).code(), Some(status));
        assert_eq!(count_files(folder.path()), 0, "{signal}");

        let mut serving = start(&["serve", "--offline", archive.to_str().unwrap()]);
        wait_for_file(folder.path(), 0, &mut serving);
        let mut url = String::new();
        let mut stdout = BufReader::new(serving.stdout.take().unwrap());
        stdout.read_line(&mut url).unwrap();
        assert!(count_files(folder.path()) > 0, "{url}");
        assert_eq!(ended_by(signal, &mut serving).code(), Some(status));
        assert_eq!(count_files(folder.path()), 0, "{signal}");
    }
}

/// A background job, as under `nohup`, ignores the signals that its parent made it ignore.
#[cfg(target_os = "linux")]
#[test]
fn ignored_signals_stay_ignored() {
    let bytes = unzipped(LINUX);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let program = chronosym();
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(program.get_program())
        .args(["-q", "events", "--format", "jsonl", "-", "-o"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = send_start(&bytes, &mut child);
    wait_for_file(folder.path(), 0, &mut child);
    let kill = format!("kill -HUP {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    stdin.write_all(&bytes[bytes.len() - 1..]).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(std::fs::metadata(&path).unwrap().len() > 0);
}

#[test]
fn a_table_of_stacks_says_what_inline_stacks_say() {
    let trace = arg(LINUX);
    let inline = json_lines(&["stacks", "--format", "jsonl", &trace]);
    let lines = json_lines(&["stacks", "--format", "jsonl", "--stacks", "table", &trace]);
    let (mut frames, mut stacks) = (HashMap::new(), Vec::new());
    let mut samples = Vec::new();
    for mut line in lines {
        if let Some(id) = line["frame_id"].as_u64() {
            assert!(frames.insert(id, line["frame"].take()).is_none());
        } else if let Some(id) = line["stack_id"].as_u64() {
            assert_eq!(id, stacks.len() as u64);
            let ids = line["frames"].as_array().expect("numbers");
            let frames = ids
                .iter()
                .map(|id| frames[&id.as_u64().expect("a number")].clone());
            stacks.push(frames.collect::<serde_json::Value>());
        } else {
            let line_object = line.as_object_mut().expect("an object");
            let stack = line_object.remove("stack").and_then(|stack| stack.as_u64());
            line["frames"] = stacks[stack.expect("a number") as usize].clone();
            samples.push(line);
        }
    }
    assert!(stacks.len() < samples.len());
    assert_eq!(samples, inline);
}

#[test]
fn one_of_n_samples_has_the_weight_of_all() {
    let trace = arg(LINUX);
    let profiles = |more: &[&str]| -> Vec<(f64, usize)> {
        let run = run(&[&["stacks", "--format", "speedscope", &trace], more].concat());
        let file: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
        let profiles = file["profiles"].as_array().expect("profiles").iter();
        let weights = profiles.map(|profile| profile["weights"].as_array().expect("weights"));
        weights
            .map(|all| (all.iter().filter_map(|it| it.as_f64()).sum(), all.len()))
            .collect()
    };
    let (all, some) = (profiles(&[]), profiles(&["--every", "5"]));
    assert_eq!(all, profiles(&["--full"]));
    assert_eq!(all.len(), some.len());
    for (all, some) in all.iter().zip(&some) {
        assert!(some.1 <= all.1 / 2 || all.1 < 20, "{all:?} {some:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let trace = arg(REUSE);
    for args in [
        &["methods"][..],
        &["methods", "--format", "json"],
        &["events"],
        &["events", "--format", "jsonl"],
        &["stacks", "--format", "folded"],
        &["stacks", "--format", "jsonl"],
        &["stacks", "--format", "speedscope"],
        &["stacks", "--format", "firefox"],
        &["stacks", "--format", "perfetto"],
        &["stacks", "--format", "html"],
        &["stacks", "--format", "pprof"],
        &["modules", "--format", "json"],
        &["top", "--format", "json", "--all", "-n", "100000"],
        &["save"],
    ] {
        let mut child = chronosym()
            .args(args)
            .arg(&trace)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), errors.as_ref()),
            (Some(0), ""),
            "{args:?}"
        );
    }
}
