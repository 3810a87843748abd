//! Command lines that users get wrong: each answer states what is wrong and what to do next.

mod common;

use std::path::Path;

use common::*;

/// Files that are no complete traces, in a folder of their own.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let trace = unzipped("clr10/traces/linux.nettrace.zip");
    let zip = std::fs::read(testdata("clr10/traces/linux.nettrace.zip")).unwrap();
    write("linux.nettrace.zip", &zip);
    write("linux.nettrace.gz", &gzipped(&trace));
    let all = std::fs::read(testdata("clr10/traces/all.nettrace.zip")).unwrap();
    write("all.nettrace.zip", &all);
    write(
        "app.speedscope.json",
        b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
    );
    write("empty.nettrace", b"");
    write("text.nettrace", b"hello\n");
    write("random.etl", &[0x5f, 0xe8, 7, 0x45, 0xa, 0xa6, 0xf4, 0x58]);
    write("app.nettrace", b"MZ\x90\0");
    write("cut.zip", &zip[..zip.len() / 2]);
    write("none.zip", &zipped(&[("a.txt", b"hi")]));
    write(
        "two.zip",
        &zipped(&[("a.nettrace", &trace), ("b.nettrace", &trace)]),
    );
    write("cut.nettrace", &trace[..trace.len() / 2]);
    write("head.nettrace", &trace[..100]);
    write("prof.json", b"{\"a\":1}");
    write("x.xz", b"\xfd7zXZ\0");
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    for name in ["Workload.pdb", "Workload.dll"] {
        let file = testdata("clr10/workload").join(name);
        std::fs::copy(file, folder.path().join(name)).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling.nettrace")).unwrap();
    folder
}

/// Exit status, command line, and what the message contains. TRACE and OTHER are traces of small
/// programs. An empty list of messages means that the command line is correct.
#[rustfmt::skip]
const MISTAKES: &[(i32, &str, &[&str])] = &[
    // Files.
    (2, "top", &["<TRACE>"]),
    (1, "top nosuch.nettrace", &["cannot open nosuch.nettrace"]),
    (1, "web.nettrace", &["cannot open web.nettrace"]),
    (1, "top empty.nettrace", &["is empty", "expected a .nettrace"]),
    (1, "top text.nettrace", &["is not a trace", "expected a .nettrace"]),
    (1, "top random.etl", &["is not a trace", "5f e8 07 45"]),
    (1, "top app.nettrace", &["a Windows executable"]),
    (0, "top cut.zip", &["cut short"]),
    (1, "top none.zip", &["without a readable trace"]),
    (1, "info two.zip", &["copies of the same file"]),
    (1, "top dir", &["a directory without a trace"]),
    (1, "top prof.json", &["found JSON"]),
    (1, "top Workload.pdb", &["a portable PDB"]),
    (1, "top x.xz", &["unpack it first"]),
    (0, "stacks cut.nettrace", &["cut short"]),
    (0, "top head.nettrace", &["cut short", "no samples", "chronosym info TRACE"]),
    (1, "top TRACE TRACE", &["are the same file"]),
    (2, "diff TRACE", &["two traces are required"]),
    (1, "diff TRACE nosuch.nettrace", &["cannot open nosuch.nettrace"]),
    (1, "serve nosuch.nettrace", &["cannot open nosuch.nettrace"]),
    (1, "serve --port 22 dir", &["a directory without a trace"]),
    (1, "info dangling.nettrace", &["cannot open dangling.nettrace"]),
    (1, "top app.speedscope.json", &["found a speedscope profile"]),
    (0, "info linux.nettrace.gz", &[]),
    (1, "top TRACE OTHER", &["cannot be joined: read them one by one"]),
    (0, "diff TRACE TRACE -n 2", &[]),
    // Commands.
    (0, "help lines", &[]),
    (0, "--version", &[]),
    (2, "tpo TRACE", &["a similar subcommand exists: 'top'"]),
    (2, "stakcs TRACE", &["a similar subcommand exists: 'stacks'"]),
    (2, "version", &["use `chronosym --version`"]),
    (2, "collect -p 1", &["use `chronosym record`"]),
    (2, "record app --config x", &["`chronosym record -- app --config x` starts the program; `--name app` records"]),
    (2, "record --duration 5s bin/app.dll", &["`chronosym record --duration 5s -- dotnet bin/app.dll` starts"]),
    (2, "record 1234", &["use `--pid 1234`"]),
    (2, "convert TRACE", &["use `chronosym stacks TRACE -o FILE`"]),
    (2, "report TRACE", &["-o report.html"]),
    (2, "flamegraph TRACE", &["-o flame.svg"]),
    (2, "frobnicate TRACE", &["`chronosym --help` lists the commands"]),
    (2, "man nosuch", &["the commands are", "stacks"]),
    // Options.
    (2, "top --runing TRACE", &["'--running'"]),
    (2, "info --running TRACE", &["'--running' is an option of", "top"]),
    (2, "top --running --waiting TRACE", &["cannot be used with '--waiting'"]),
    (2, "top --top 5 TRACE", &["use `-n N`"]),
    (2, "top --cpu TRACE", &["use `--running`"]),
    (2, "methods --name Program TRACE", &["use `--match PATTERN`"]),
    (2, "top --by foo TRACE", &["possible values: method, module"]),
    (2, "top --sort name TRACE", &["possible values: self, total"]),
    (2, "top --sort self,total TRACE", &["'self'"]),
    (2, "stacks --format foo TRACE", &["possible values: folded"]),
    (2, "stacks --format csv TRACE", &["possible values: folded"]),
    (2, "top --format csv TRACE", &["possible values: text, json"]),
    (2, "top --format jsn TRACE", &["a similar value exists: 'json'"]),
    (2, "serve --port 99999 TRACE", &["65535"]),
    (2, "top -n 0 TRACE", &["a whole number from 1"]),
    (2, "top -n -1 TRACE", &["a whole number from 1"]),
    (2, "top -n abc TRACE", &["a whole number from 1"]),
    (2, "stacks --format html -n 5 TRACE", &["-n applies to text and jsonl"]),
    // Times and ids.
    (2, "top --from 1 TRACE", &["1s is in seconds, 1ns in nanoseconds"]),
    (2, "explain --time 1500 TRACE 0x1", &["1500s is in seconds, 1500ns in nanoseconds"]),
    (2, "top --pid 7@5 TRACE", &["5s is in seconds, 5ns in nanoseconds"]),
    (2, "top --from 50% TRACE", &["'50%' is not a time", "200ms"]),
    (2, "top --from 1e30s TRACE", &["is not a time"]),
    (2, "top --to 99999999999s TRACE", &["is not a time"]),
    (2, "top --from 3s --to 1s TRACE", &["--from 3.000000s is not before --to 1.000000s"]),
    (1, "top --from 100s TRACE", &["is after the trace"]),
    (1, "top --pid 99999 TRACE", &["no process id 99999; it has Workload"]),
    (1, "top -p 12122 TRACE", &["no process id 12122; it has Workload"]),
    (2, "top --pid abc TRACE", &["'abc' is not a process id"]),
    (1, "top --tid 1 TRACE", &["no samples of thread 1; there are"]),
    (1, "top --process nginx TRACE", &["no process 'nginx'; it has Workload"]),
    // Names.
    (2, "top --include /[/ TRACE", &["regular expression"]),
    (0, "top --include NoSuchThing TRACE", &["no sample passes --include NoSuchThing", "chronosym top TRACE"]),
    (0, "top --my-modules NoSuch TRACE", &["no module on a stack matches --my-modules NoSuch", "--by module"]),
    (0, "stacks --my-modules NoSuch --format html -o r.html TRACE", &["matches --my-modules NoSuch"]),
    (2, "--nosuch TRACE", &["unexpected argument '--nosuch'"]),
    (0, "stacks --exclude * TRACE", &["no sample passes --exclude *"]),
    (0, "stacks --to 1ns TRACE", &["no sample passes --to 0.000000s", "chronosym info TRACE"]),
    (0, "stacks --include Spin --to 1ns TRACE", &["no sample passes --to 0.000000s"]),
    (0, "events --event Universal.Events/cpu --to 1ns TRACE", &["no event that passes --to 0.000000s and --event Universal.Events/cpu"]),
    (0, "methods --to 1ns --match NoSuch TRACE", &["nothing to list"]),
    (1, "top --callers NoSuch TRACE", &["matches 'NoSuch'", "chronosym top"]),
    (2, "lines TRACE", &["<METHOD>", "`chronosym top TRACE` lists methods"]),
    (2, "lines Spin.Work TRACE", &["the trace comes first"]),
    (1, "lines TRACE Nope", &["matches 'Nope'", "chronosym top"]),
    (2, "explain TRACE", &["<ADDR>", "`chronosym methods TRACE` lists"]),
    (2, "explain 0x7faa364ed495 TRACE", &["the trace comes first"]),
    (2, "explain TRACE zzz", &["not an address", "chronosym methods --match"]),
    (2, "explain TRACE --offline 0x1", &["options go before or after"]),
    (2, "explain TRACE Monitor.Wait", &["not an address", "chronosym methods --match"]),
    (1, "lines TRACE System.Threading.Monitor.Wait", &["matches 'System.Threading.Monitor.Wait'", "chronosym top"]),
    (0, "top --callers MoveNext -n 3 TRACE", &[]),
    (0, "threads --running -n 2 TRACE", &[]),
    (0, "top --include [ TRACE", &[]),
    // Events.
    (1, "top --event Foo/1 TRACE", &["no Foo/1 event; there are Universal.Events/cpu"]),
    (1, "events --event ExceptionThrwn TRACE", &["no ExceptionThrwn event; there are"]),
    (1, "top --event Microsoft-Windows-DotNETRuntime/Exception OTHER", &["no Microsoft-Windows-DotNETRuntime/Exception event", "ExceptionThrown"]),
    (1, "stacks --event Microsoft-Windows-DotNETRuntime/80 TRACE", &["there are Universal.Events/cpu"]),
    (0, "top --event ExceptionThrown OTHER", &[]),
    (0, "stacks --event Microsoft-Windows-DotNETRuntime/80 --format folded OTHER", &[]),
    (0, "events --event Microsoft-Windows-DotNETRuntime OTHER", &[]),
    // Outputs.
    (0, "top --output t.txt -n 1 TRACE", &[]),
    (2, "stacks -o x.png TRACE", &["x.png: the extension is none of .svg, .html"]),
    (2, "stacks -o x.json TRACE", &[".speedscope.json", "--format"]),
    (2, "top -o x.html TRACE", &[".json, .txt", "chronosym stacks"]),
    (1, "stacks -o nodir/x.svg TRACE", &["cannot write nodir/x.svg"]),
    (1, "stacks -o dir TRACE", &["cannot write dir"]),
    (1, "stacks -o TRACE TRACE", &["would overwrite", "choose another file"]),
    // Symbols.
    (1, "top --symbols /nonexistent TRACE", &["there is no such folder"]),
    (0, "top --symbol-path srv*http://127.0.0.1:1/x TRACE", &["the symbol server http://127.0.0.1:1 failed", "chronosym symbols TRACE"]),
    (2, "symbolize 0x1234", &["--obj, --pdb, --trace"]),
    (0, "top --symbols Workload.pdb -n 1 TRACE", &[]),
    (0, "top --symbol-path https://127.0.0.1:1/symbols --offline -n 1 TRACE", &[]),
    (0, "symbolize --obj Workload.dll 0x1234", &[]),
    (0, "symbolize --pdb Workload.pdb 0x06000001", &[]),
    (0, "symbolize --trace TRACE 0x7faa358e3918", &[]),
];

#[test]
fn every_mistake_has_an_answer() {
    let folder = folder();
    let mut wrong = Vec::new();
    for (status, line, parts) in MISTAKES {
        let words = line.split(' ').map(|word| match word {
            "TRACE" => "linux.nettrace.zip",
            "OTHER" => "all.nettrace.zip",
            word => word,
        });
        let run = run_in(folder.path(), &words.collect::<Vec<_>>());
        let (is, text) = (run.status, &run.stderr);
        let lacks = parts.iter().find(|part| !text.contains(**part));
        if is != *status || lacks.is_some() {
            wrong.push(format!("{line}: status {is}, lacks {lacks:?}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!folder.path().join("x.png").exists());
}

#[cfg(unix)]
#[test]
fn devices_are_no_traces() {
    let top = |path: &str| run(&["top", path]);
    let empty = top("/dev/null");
    assert_eq!(empty.status, 1);
    assert!(
        empty
            .stderr
            .contains("/dev/null is empty: expected a .nettrace")
    );
    if Path::new("/proc/self/mem").exists() {
        let unreadable = top("/proc/self/mem");
        assert_eq!(unreadable.status, 1);
        assert!(unreadable.stderr.contains("cannot read /proc/self/mem"));
    }
}

fn run_in(folder: &Path, args: &[&str]) -> Run {
    let mut command = chronosym();
    command.args(args).current_dir(folder);
    command.env("HOME", folder).env("XDG_CACHE_HOME", folder);
    finish(command.output().unwrap())
}

/// Without a command, options may come first.
#[test]
fn options_may_precede_a_trace() {
    let trace = arg("clr10/traces/linux.nettrace.zip");
    let after = run(&[&trace, "--offline"]);
    after.assert_ended_well("TRACE --offline");
    assert_eq!(run(&["--offline", &trace]).stdout, after.stdout);
    let folder = arg("clr10/workload");
    let symbols = run(&["-q", "--symbols", &folder, "--offline", &trace]);
    symbols.assert_ended_well("--symbols DIR TRACE");
    assert!(symbols.stdout.contains("Workload"));
    // The option of a command is still rejected before it.
    let before = run(&["--offline", "top", &trace]);
    assert_eq!(before.status, 2);
    assert!(
        before.stderr.contains("'--offline' is an option of"),
        "{}",
        before.stderr
    );
}

/// Whole seconds, whole nanoseconds and zero are unambiguous.
#[test]
fn times_with_units_and_zero_are_accepted() {
    let trace = arg("clr10/traces/linux.nettrace.zip");
    for time in ["1s", "100000000ns", "0", "0.1"] {
        let run = run(&["top", "--from", time, "-n", "1", &trace]);
        run.assert_ended_well(time);
    }
}

#[test]
fn a_hyphen_is_standard_output() {
    let trace = arg("clr10/traces/linux.nettrace.zip");
    let folder = tempfile::tempdir().unwrap();
    let plain = run(&["top", &trace]).stdout;
    let hyphen = run_in(folder.path(), &["top", &trace, "-o", "-"]).stdout;
    assert_eq!(plain, hyphen);
    assert!(!folder.path().join("-").exists());
}

#[test]
fn the_extension_selects_the_format_of_tables() {
    let trace = arg("clr10/traces/linux.nettrace.zip");
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path(), &["top", &trace, "-o", "x.json"]);
    run.assert_ended_well("top -o x.json");
    let text = std::fs::read_to_string(folder.path().join("x.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
}

/// `-n` keeps the first samples, events and entries.
#[test]
fn every_listing_has_a_length() {
    let trace = arg("clr10/traces/all.nettrace.zip");
    let lines = |args: &[&str]| run(&[args, &["-n", "3", &trace]].concat()).stdout;
    let count = |args: &[&str]| lines(args).lines().count();
    assert_eq!(count(&["stacks", "--format", "jsonl"]), 3);
    assert_eq!(count(&["events"]), 3);
    assert_eq!(count(&["events", "--format", "jsonl"]), 3);
    // The process and the head of the table come first.
    assert_eq!(count(&["methods"]), 5);
    let stacks = lines(&["stacks"]);
    assert!(stacks.contains("more lines (`-n "), "{stacks}");
    let modules: serde_json::Value =
        serde_json::from_str(&lines(&["modules", "--format", "json"])).unwrap();
    let process = &modules["processes"][0];
    let listed = |name: &str| process[name].as_array().map_or(0, Vec::len);
    assert_eq!(listed("modules") + listed("images"), 3);
}

#[test]
fn an_event_is_selected_by_its_name_alone() {
    let trace = arg("clr10/traces/all.nettrace.zip");
    let by = |event: &str| run(&["stacks", "--format", "folded", "--event", event, &trace]).stdout;
    let by_name = by("exceptionthrown");
    assert!(!by_name.is_empty());
    assert_eq!(by_name, by("Microsoft-Windows-DotNETRuntime/80"));
}

#[test]
fn lines_without_a_pdb_state_the_reason() {
    let trace = arg("clr10/traces/all.nettrace.zip");
    let text = run(&["lines", &trace, "Spin.Work"]).stdout;
    assert!(text.contains("no line known"), "{text}");
    assert!(text.contains("--symbols DIR"), "{text}");
}

/// Each command has a page, and pages refer to pages that exist.
#[test]
fn manual_pages_refer_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), &["man", "--dir", "pages"]).assert_ended_well("man --dir");
    let pages = folder.path().join("pages");
    let of = |name: &str| std::fs::read_to_string(pages.join(name));
    let program = of("chronosym.1").unwrap();
    let mut references = 0;
    for word in program.replace("\\-", "-").split_whitespace() {
        if let Some(name) = word.strip_suffix("(1)") {
            references += 1;
            let page = of(&format!("{name}.1")).unwrap_or_default();
            assert!(page.contains("SEE ALSO"), "{name}");
        }
    }
    assert!(references > 15, "{references}");
    assert_eq!(run(&["man"]).stdout, program);
    assert_eq!(run(&["man", "top"]).stdout, of("chronosym-top.1").unwrap());
}

/// Limits have a help of their own, and work without being listed elsewhere.
#[test]
fn limits_have_their_own_help() {
    let limits = run(&["--help-limits"]).stdout;
    for limit in ["--max-memory", "--max-zip-entries", "--no-mmap"] {
        assert!(limits.contains(limit), "{limits}");
        assert!(!run(&["top", "--help"]).stdout.contains(limit));
    }
    assert_eq!(run(&["top", "--help-limits"]).stdout, limits);
}
