//! `symbolize` on logs: names in place of addresses, of the modules that the lines name, with load addresses of processes.

mod common;

use std::fs;
use std::path::Path;

use common::testdata;

fn image() -> String {
    testdata("pdb-small/x86_64/small.exe").display().to_string()
}

/// Runs `symbolize` on a log with these bytes.
fn run_log(log: &[u8], options: &[&str]) -> common::Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crash.txt");
    fs::write(&path, log).unwrap();
    let path = path.display().to_string();
    let image = image();
    let command = [&["symbolize", "--offline", "--obj", &image, &path], options].concat();
    common::run(&command)
}

fn name_at(rva: &str) -> String {
    let run = common::run(&[
        "symbolize",
        "--obj",
        &image(),
        "--rva",
        "--style",
        "llvm",
        rva,
    ]);
    run.stdout.lines().next().unwrap().to_owned()
}

#[test]
fn a_log_has_names_of_the_modules_that_its_lines_name() {
    let (known, other) = (
        "#0  0x0000 n/a (small.exe + 0x1627)",
        "#1  0x0000 n/a (other.exe + 0x1627)",
    );
    let log = format!("{known}\r\n{other}\r\nallocated 0x140001627 bytes\r\nat 0x140001627\r\n");
    let run = run_log(log.as_bytes(), &[]);
    let name = name_at("0x1627");
    let lines: Vec<&str> = run.stdout.split("\r\n").collect();
    assert!(
        lines[0].starts_with("#0  0x0000 n/a (") && lines[0].contains(&name),
        "{lines:?}"
    );
    assert_eq!(lines[1..3], [other, "allocated 0x140001627 bytes"]);
    assert!(lines[3].contains(&name), "{lines:?}");
    // Without the file, no byte changes.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crash.txt");
    fs::write(&path, &log).unwrap();
    let empty = folder.path().display().to_string();
    let alone = common::run(&[
        "symbolize",
        "--symbols",
        &empty,
        &path.display().to_string(),
    ]);
    assert_eq!((alone.status, alone.stdout), (0, log));
}

#[test]
fn utf_16_stays_utf_16() {
    let text = "\u{feff}Fault: (small.exe + 0x1627)\r\n";
    let bytes = text.encode_utf16().flat_map(u16::to_le_bytes);
    let bytes: Vec<u8> = bytes.collect();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.txt");
    run_log(&bytes, &["-o", &out.display().to_string()]);
    let out = fs::read(&out).unwrap();
    let units = out
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let out = String::from_utf16(&units.collect::<Vec<_>>()).unwrap();
    assert!(
        out.starts_with("\u{feff}Fault: (") && out.contains(&name_at("0x1627")),
        "{out}"
    );
}

#[test]
fn a_load_address_makes_addresses_those_of_the_process() {
    let image = image();
    let run = |options: &[&str]| {
        let command = [&["symbolize", "--style", "llvm", "--obj", &image], options].concat();
        common::run(&command)
    };
    let by_base = run(&["--base", "0x7ff600000000", "0x7ff600001627"]);
    assert_eq!(by_base.stdout, run(&["--rva", "0x1627"]).stdout);
    let below = run(&["--base", "0x7ff600000000", "0x7ff5ffffffff"]);
    assert!(below.stdout.starts_with("??"), "{}", below.stdout);
    let none = common::run(&["symbolize", "--base", "0x1000", "0x1627"]);
    assert_eq!(none.status, 2, "{}", none.stderr);
    let mixed = common::run(&["symbolize", "--obj", &image, &image, "0x1627"]);
    assert_eq!(mixed.status, 2, "{}", mixed.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn addresses_of_a_running_process_are_resolved() {
    let address = format!(
        "{:#x}",
        addresses_of_a_running_process_are_resolved as fn() as usize
    );
    let name = "addresses_of_a_running_process_are_resolved";
    let pid = std::process::id().to_string();
    let live = common::run(&["symbolize", "--offline", "--process-maps", &pid, &address]);
    assert!(
        live.stdout.starts_with(&address) && live.stdout.contains(name),
        "{} {}",
        live.stdout,
        live.stderr
    );
    // The same out of a log that has the mappings, and the file given.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("hs_err.log");
    fs::write(&log, format!("C  [x]\nat {address}\n{maps}")).unwrap();
    let exe = std::env::current_exe().unwrap();
    let paths: [&Path; 2] = [&exe, &log];
    let [exe, log] = paths.map(|path| path.display().to_string());
    let run = common::run(&["symbolize", "--offline", "--obj", &exe, &log]);
    let line = run.stdout.lines().nth(1).unwrap_or_default();
    assert!(line.contains(name), "{line}: {}", run.stderr);
    assert!(run.stdout.ends_with(&maps));
}
