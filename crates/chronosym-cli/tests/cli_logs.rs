//! `symbolize` on logs: replaces addresses by names from the modules that the lines name, with load
//! addresses of processes.

mod common;
#[path = "../../chronosym-symbols/tests/made/mod.rs"]
mod made;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use common::testdata;
use made::{elf, symbol};

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
    // The same from a log that has the mappings, with the file given.
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

/// A program of one function `work` at the RVA 0x1000 whose build id is this byte.
fn program(build: u8) -> Vec<u8> {
    let mut note = [4u32, 20, 3].map(u32::to_le_bytes).concat();
    note.extend(b"GNU\0");
    note.extend([build; 20]);
    let table = [
        vec![0; 24],
        symbol(1, 0x12, 0x1000, 0x40),
        symbol(6, 0x02, 0x1040, 0x10),
        symbol(6, 0x02, 0x1080, 0x20),
    ];
    elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x100]),
        (".note.gnu.build-id", 7, 2, 0x400, note),
        (".symtab", 2, 0, 0, table.concat()),
        (".strtab", 3, 0, 0, b"\0work\0twice\0".to_vec()),
    ])
}

/// A folder with a log and other files; the program's path is `app`.
fn folder_with(log: &str, build: u8) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("crash.txt"), log).unwrap();
    fs::write(folder.path().join("app"), program(build)).unwrap();
    folder
}

fn run_in(folder: &Path, args: &[&str]) -> common::Run {
    let mut command = common::chronosym();
    command.current_dir(folder).arg("symbolize").args(args);
    common::finish(command.output().unwrap())
}

#[test]
fn a_log_alone_finds_its_files_by_identity() {
    let id = "ab".repeat(20);
    let other = "cd".repeat(20);
    let log = format!(
        "#0  0x000055d0c0a01010 n/a (app + 0x1010)\n\
         #1  0x00007f0000001010 n/a (libother.so + 0x1010)\n\
         Module app with build-id {id}\nModule libother.so with build-id {other}\n"
    );
    let folder = folder_with(&log, 0xab);
    let path = folder.path();
    // No file is opened merely because it is next to the log.
    let alone = run_in(path, &["--offline", "crash.txt"]);
    assert_eq!((alone.status, &*alone.stdout), (0, &*log));
    for part in [
        "app (id abab",
        "libother.so (id cdcd",
        "1 address",
        "--obj",
        "--symbols",
    ] {
        assert!(alone.stderr.contains(part), "{}", alone.stderr);
    }
    let store = path.join("store/.build-id/ab");
    fs::create_dir_all(&store).unwrap();
    let keyed = store.join(format!("{}.debug", "ab".repeat(19)));
    fs::rename(path.join("app"), keyed).unwrap();
    let expected = log.replace("app + 0x1010", "work+0x10");
    for option in ["--symbol-path", "--symbols"] {
        let found = run_in(path, &["--offline", option, "store", "crash.txt"]);
        assert_eq!(found.stdout, expected, "{}", found.stderr);
        assert!(!found.stderr.contains("app (id"), "{}", found.stderr);
    }
    let by_variable = common::chronosym()
        .current_dir(path)
        .env("_NT_SYMBOL_PATH", "store")
        .args(["symbolize", "--offline", "crash.txt"])
        .output()
        .unwrap();
    assert_eq!(common::finish(by_variable).stdout, expected);
    let json = run_in(
        path,
        &["--symbols", "store", "--style", "json", "crash.txt"],
    );
    let first: serde_json::Value =
        serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["log_line"], &first["log_module"]),
        (&1.into(), &"app".into())
    );
    assert_eq!(first["log_id"], *id);
    let frame = &first["frames"][0];
    assert_eq!(frame["name"], "work");
    assert!(
        frame["symbol_file"].as_str().unwrap().ends_with(".debug"),
        "{frame}"
    );
}

/// `app.pdb/ID/app.sym`, the layout of `dump_syms` and Mozilla's symbol server.
#[test]
fn symbol_files_of_breakpad_are_found_in_stores() {
    let guid = "AB".repeat(16);
    let log = format!(
        "Module|app||app|{guid}0|0x55d0c0a00000|0x55d0c0a01fff|1\n\
         Module|tool.exe||tool.pdb|{guid}1A|0x7ff600000000|0x7ff600001fff|0\n\
         Module|late||late|{guid}2|0x7ff700000000|0x7ff700001fff|0\n\n\
         0|0|app||||0x1010\n0|1|tool.exe||||0x1011\n0|2|late||||0x1012\n0|3|app||||0x1020\n"
    );
    let folder = folder_with(&log, 0xab);
    let path = folder.path();
    // The last one belongs to another build than its key states.
    for (name, key, id, symbols) in [
        ("app", "0", "0", "app.sym"),
        ("tool.pdb", "1A", "1A", "tool.sym"),
        ("late", "2", "3", "late.sym"),
    ] {
        let keyed = path.join("store").join(name).join(format!("{guid}{key}"));
        fs::create_dir_all(&keyed).unwrap();
        let text = format!(
            "MODULE Linux x86_64 {guid}{id} {name}\nFILE 0 main.c\nFUNC 1000 40 0 of_{}\n1000 40 7 0\n",
            name.trim_end_matches(".pdb")
        );
        fs::write(keyed.join(symbols), text).unwrap();
    }
    for option in ["--symbols", "--symbol-path"] {
        let run = run_in(path, &["--offline", option, "store", "crash.txt"]);
        let frames: Vec<&str> = run.stdout.lines().skip(4).collect();
        let expected = [
            "0|0|app||||of_app (main.c:7)",
            "0|1|tool.exe||||of_tool (main.c:7)",
            "0|2|late||||0x1012",
            "0|3|app||||of_app (main.c:7)",
        ];
        assert_eq!(frames, expected, "{}", run.stderr);
        // Each search that failed is listed.
        let note = run.stderr.lines().find(|line| line.contains("late (id"));
        let note = note.unwrap_or_default();
        let searched = format!("late/{guid}2/late.sym");
        assert!(note.contains(&searched), "{}", run.stderr);
    }
    // By the build ID of an ELF file, whose first bytes form the id.
    let log = format!("#1 pc 00001010  /srv/app (BuildId: {})\n", "ab".repeat(20));
    fs::write(path.join("crash.txt"), log).unwrap();
    let run = run_in(path, &["--offline", "--symbols", "store", "crash.txt"]);
    assert!(
        run.stdout.contains("pc of_app (main.c:7)"),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn another_build_is_left_alone_and_reported() {
    let log = format!(
        "#1 pc 0000000000001010  /srv/app (BuildId: {})\n",
        "cd".repeat(20)
    );
    let folder = folder_with(&log, 0xab);
    for options in [&["--obj", "app"][..], &["--symbols", "."]] {
        let run = run_in(
            folder.path(),
            &[options, &["--offline", "crash.txt"]].concat(),
        );
        assert_eq!(run.stdout, log);
        assert!(run.stderr.contains("another build"), "{}", run.stderr);
    }
}

#[test]
fn functions_with_offsets_are_resolved() {
    let log = "/srv/app(work+0x10) [0x55d0c0a01010]\n\
               RIP: 0010:work+0x10/0x40 [app]\n\
               work+0x10/0x50\n\
               work+0x40/0x40\n\
               twice+0x8/0x20\n\
               twice+0x8\n\
               nothing+0x10/0x40\n\
               other!work+0x10\n";
    let folder = folder_with(log, 0xab);
    let run = run_in(folder.path(), &["--obj", "app", "crash.txt"]);
    let expected = "/srv/app(work+0x10) [0x55d0c0a01010]\n\
                    RIP: 0010:work+0x10 [app]\n\
                    ~work+0x10\n\
                    work+0x40/0x40\n\
                    twice+0x8\n\
                    twice+0x8\n\
                    nothing+0x10/0x40\n\
                    other!work+0x10\n";
    assert_eq!(run.stdout, expected, "{}", run.stderr);
    // On the command line, too; of several functions none is chosen.
    let listed = run_in(folder.path(), &["--obj", "app", "work+0x10", "twice+0x8"]);
    assert!(
        listed.stdout.starts_with("0x1010 work"),
        "{}",
        listed.stdout
    );
    assert!(
        listed.stdout.contains("several functions"),
        "{}",
        listed.stdout
    );
}

#[test]
fn equal_offsets_in_two_modules_are_kept_apart() {
    let log = "#0 0x1 (/srv/app+0x1010)\n#1 0x1 (/srv/app2+0x1010)\n";
    let folder = folder_with(log, 0xab);
    let run = run_in(folder.path(), &["--obj", "app", "crash.txt"]);
    assert_eq!(
        run.stdout,
        "#0 0x1 (work+0x10)\n#1 0x1 (/srv/app2+0x1010)\n"
    );
}

#[test]
fn a_backtrace_on_standard_input_is_a_log() {
    let folder = folder_with("", 0xab);
    let app = folder.path().join("app").display().to_string();
    let input = b"Aborted\n#0 0x1 (/srv/app+0x1010)\n";
    let run = common::run_with_input(&["symbolize", "--obj", &app], input);
    assert_eq!(run.stdout, "Aborted\n#0 0x1 (work+0x10)\n");
    assert!(run.stderr.contains("as a log"), "{}", run.stderr);
    let none = common::run(&["symbolize", "0x1000"]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("--obj"), "{}", none.stderr);
}

#[test]
fn lists_of_images_state_load_addresses() {
    let uuid = "ABABABAB-ABAB-ABAB-ABAB-ABABABABABAB";
    let ips = format!(
        "{{\"frames\":[{{\"imageOffset\":4112,\"imageIndex\":0}},{{\"imageOffset\":4112,\"imageIndex\":1}}],\n\
         \"usedImages\":[{{\"base\":4294967296,\"size\":8192,\"uuid\":\"{uuid}\",\"path\":\"/srv/app\"}},\n\
         {{\"base\":8589934592,\"size\":8192,\"uuid\":\"{uuid}\",\"path\":\"/srv/other\"}}]}}\n"
    );
    let sentry = "{\"frames\":[{\"instruction_addr\":\"0x100001010\"},{\"instruction_addr\":\"0x200001010\"}],\
        \"debug_meta\":{\"images\":[{\"image_addr\":\"0x100000000\",\"image_size\":8192,\"code_file\":\"/srv/app\"}]}}\n";
    let macos = "2   app  \t0x0000000100001010 0x100000000 + 4112\n3   app  \t0x0000000100001010 f + 4\n\
        4   other  \t0x0000000200001010 f + 4\n\nBinary Images:\n\
        \x20      0x100000000 -        0x100001fff +app (1.0) <ABABABAB-ABAB-ABAB-ABAB-ABABABABABAB> /srv/app\n";
    for (log, expected) in [
        (
            ips.clone(),
            ips.replacen("\"imageOffset\":4112", "\"imageOffset\":\"work+0x10\"", 1),
        ),
        (
            sentry.to_owned(),
            sentry.replacen("0x100001010", "work+0x10", 1),
        ),
        (
            macos.to_owned(),
            macos
                .replacen("0x100000000 + 4112", "work+0x10", 1)
                .replacen("0x0000000100001010 f", "work+0x10 f", 1),
        ),
    ] {
        let folder = folder_with(&log, 0xab);
        let run = run_in(folder.path(), &["--obj", "app", "crash.txt"]);
        assert_eq!(run.stdout, expected, "{}", run.stderr);
    }
}

/// A trace states the load addresses itself, however the log is read.
#[test]
fn images_of_a_log_do_not_move_addresses_of_a_trace() {
    let trace = testdata("clr10/traces/reuse.nettrace.zip");
    let options = ["--trace", trace.to_str().unwrap(), "--time", "1s"];
    let log = "7f49e0000000-7f49e3000000 r-xp 00000000 fd:00 7 /usr/lib/other\n#0 0x7f49e2284280\n";
    let path = common::file(log.as_bytes());
    let whole = [&["symbolize", path.to_str().unwrap()], &options[..]].concat();
    let whole = common::run(&whole);
    let filter = [&["symbolize", "--filter"], &options[..]].concat();
    let streamed = common::run_with_input(&filter, log.as_bytes());
    assert!(
        whole
            .stdout
            .ends_with("#0 Workload!Workload.Program.Main+0x40\n")
    );
    assert_eq!(streamed.stdout, whole.stdout);
}

/// Lines that arrive one by one are of the log that the first of them starts.
#[test]
fn the_kind_of_a_log_applies_to_later_lines_of_a_pipe() {
    let folder = folder_with("", 0xab);
    let mut child = common::chronosym()
        .args(["symbolize", "--filter", "--obj", "app"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for (line, expected) in [
        ("at 0x1010", "at work+0x10"),
        (
            "# A fatal error has been detected by the Java Runtime Environment:",
            "# A fatal error has been detected by the Java Runtime Environment:",
        ),
        ("at 0x1010", "at 0x1010"),
        ("C  [app+0x1010]", "C  [work+0x10]"),
    ] {
        writeln!(input, "{line}").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim_end(), expected);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}
