//! Whole outputs that a person has read, compared to the byte.
//!
//! `CHRONOSYM_UPDATE_GOLDEN=1 cargo test -p chronosym-cli --test cli_golden` writes them again;
//! read the difference.

mod common;

use std::path::Path;

use common::*;

/// File name, and the command line; paths of test data start with `@`.
const CASES: &[(&str, &str)] = &[
    ("info-linux.txt", "info @clr10/traces/linux.nettrace.zip"),
    (
        "info-linux.json",
        "info --format json @clr10/traces/linux.nettrace.zip",
    ),
    ("info-r2r.txt", "info @clr10/traces/r2r.nettrace.zip"),
    (
        "info-norundown.txt",
        "info @clr10/traces/norundown.nettrace.zip",
    ),
    (
        "info-norundown-perf-map.txt",
        "info --perf-map @clr10/traces/norundown.perf.map.gz @clr10/traces/norundown.nettrace.zip",
    ),
    (
        "stacks-r2r.folded",
        "stacks --format folded --from 1s --to 1020ms @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "stacks-r2r.jsonl",
        "stacks --format jsonl --from 1s --to 1003ms @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "stacks-norundown-perf-map.jsonl",
        "stacks --format jsonl --from 1s --to 1002ms --perf-map @clr10/traces/norundown.perf.map.gz @clr10/traces/norundown.nettrace.zip",
    ),
    (
        "stacks-r2r.txt",
        "stacks --format text --running --from 1s --to 1100ms @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "stacks-linux-event.txt",
        "stacks --format text --event Universal.Events/cpu --from 1s --to 1200ms --no-threads @clr10/traces/linux.nettrace.zip",
    ),
    (
        "stacks-r2r-mine.txt",
        "stacks --just-my-code --from 1s --to 1020ms @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "top-linux.json",
        "top -n 3 --sort total --format json @clr10/traces/linux.nettrace.zip",
    ),
    (
        "top-r2r-lines.txt",
        "top -n 5 --by line --running --symbols @clr10/workload @clr10/traces/r2r.nettrace.zip",
    ),
    ("runtime-all.txt", "runtime @clr10/traces/all.nettrace.zip"),
    (
        "runtime-gc-all.txt",
        "runtime gc -n 5 @clr10/traces/all.nettrace.zip",
    ),
    (
        "runtime-gc-all.json",
        "runtime gc --to 320ms --format json @clr10/traces/all.nettrace.zip",
    ),
    (
        "runtime-jit-entry.txt",
        "runtime jit -n 8 @clr10/traces/entry.nettrace.zip",
    ),
    (
        "runtime-exceptions-all.txt",
        "runtime exceptions @clr10/traces/all.nettrace.zip",
    ),
    (
        "runtime-exceptions-r2r.json",
        "runtime exceptions --format json @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "runtime-allocations-all.txt",
        "runtime allocations -n 8 @clr10/traces/all.nettrace.zip",
    ),
    (
        "runtime-contention-r2r.txt",
        "runtime contention @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "runtime-threadpool-all.txt",
        "runtime threadpool @clr10/traces/all.nettrace.zip",
    ),
    (
        "runtime-gc-known.txt",
        "runtime gc --symbols @clr8/known @clr8/known/events.nettrace.zip",
    ),
    (
        "runtime-exceptions-known.txt",
        "runtime exceptions --symbols @clr8/known @clr8/known/events.nettrace.zip",
    ),
    (
        "runtime-contention-known.txt",
        "runtime contention --symbols @clr8/known @clr8/known/events.nettrace.zip",
    ),
    (
        "inlining-known.txt",
        "inlining -n 6 --running --symbols @clr8/known @clr8/known/inlining.nettrace.zip",
    ),
    (
        "inlining-known.json",
        "inlining --format json --symbols @clr8/known @clr8/known/inlining.nettrace.zip Known.Tail",
    ),
    (
        "stacks-known-contention.folded",
        "stacks --format folded --weight time --event Microsoft-Windows-DotNETRuntime/81 @clr8/known/events.nettrace.zip",
    ),
    (
        "lines-known.txt",
        "lines --symbols @clr8/known @clr8/known/inlining.nettrace.zip Known.Hot",
    ),
    (
        "explain-known.txt",
        "explain @clr8/known/inlining.nettrace.zip 0x7f3a6d035de0",
    ),
    (
        "explain-known.json",
        "explain --format json @clr8/known/inlining.nettrace.zip 0x7f3a6d035480",
    ),
    (
        "explain-known-tail-call.txt",
        "explain @clr8/known/inlining.nettrace.zip 0x7f3a6c4e19f0",
    ),
    (
        "inlining-r2r.txt",
        "inlining @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "methods-r2r.json",
        "methods --match Inlining.Hot --format json @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "explain-r2r.json",
        "explain --time 1s --caller --format json @clr10/traces/r2r.nettrace.zip 0x7f2237486480",
    ),
    (
        "modules-r2r.json",
        "modules --format json --to 27ms @clr10/traces/r2r.nettrace.zip",
    ),
    ("top-linux.txt", "top @clr10/traces/linux.nettrace.zip"),
    ("top-r2r.txt", "top @clr10/traces/r2r.nettrace.zip"),
    (
        "top-r2r-shaped.txt",
        "top -n 8 --just-my-code --collapse-recursion --no-inlines @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "top-r2r-modules.txt",
        "top --by module --sort total @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "top-r2r-butterfly.txt",
        "top -n 4 --callers Program.Main --callees Program.Main @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "top-r2r-butterfly.json",
        "top --format json --callees Inlining.Hot @clr10/traces/r2r.nettrace.zip",
    ),
    ("threads-r2r.txt", "threads @clr10/traces/r2r.nettrace.zip"),
    (
        "threads-linux.json",
        "threads -n 2 --format json @clr10/traces/linux.nettrace.zip",
    ),
    (
        "symbols-linux.txt",
        "symbols -n 2 @clr10/traces/linux.nettrace.zip",
    ),
    (
        "lines-r2r.txt",
        "lines --symbols @clr10/workload --sources @clr10 @clr10/traces/r2r.nettrace.zip Inlining.Hot",
    ),
    (
        "diff-r2r.txt",
        "diff -n 12 @clr10/traces/r2r.nettrace.zip @clr10/traces/default.nettrace.zip",
    ),
    (
        "methods-r2r.txt",
        "methods --match Workload.Inlining @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "methods-reuse.txt",
        "methods --match dynamicClass.Generated --from 3788ms --to 3789ms @clr10/traces/reuse.nettrace.zip",
    ),
    ("modules-r2r.txt", "modules @clr10/traces/r2r.nettrace.zip"),
    (
        "explain-r2r.txt",
        "explain --time 1s --caller @clr10/traces/r2r.nettrace.zip 0x7f2237486480",
    ),
    (
        "explain-reuse.txt",
        "explain @clr10/traces/reuse.nettrace.zip 0x7f49e2418c60",
    ),
    (
        "explain-norundown.txt",
        "explain --time 1s @clr10/traces/norundown.nettrace.zip 0x7fab4f000000",
    ),
    (
        "explain-linux.txt",
        "explain @clr10/traces/linux.nettrace.zip 0x7efc9fea9756",
    ),
    (
        "symbolize-reuse.txt",
        "symbolize --trace @clr10/traces/reuse.nettrace.zip 0x7f49e2418c60 0x1",
    ),
    (
        "symbolize-reuse.json",
        "symbolize --style json --trace @clr10/traces/reuse.nettrace.zip 0x7f49e2418c60 0x1",
    ),
    (
        "events-r2r.txt",
        "events --from 65ms --to 66100us @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "events-r2r.jsonl",
        "events --format jsonl --from 65ms --to 66100us @clr10/traces/r2r.nettrace.zip",
    ),
    (
        "events-linux.txt",
        "events --from 1s --to 1002ms --event Universal.Events/cpu @clr10/traces/linux.nettrace.zip",
    ),
];

#[test]
fn outputs_are_as_they_were_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let data = testdata("");
    let data = data.to_str().unwrap();
    let update = std::env::var_os("CHRONOSYM_UPDATE_GOLDEN").is_some();
    let mut different = Vec::new();
    for (name, command) in CASES {
        let args: Vec<String> = command
            .split(' ')
            .map(|arg| arg.replace('@', data))
            .collect();
        let run = run(&args);
        assert_eq!(run.status, 0, "{command}: {}", run.stderr);
        // The location of the test data on this machine must not appear.
        let shown = format!("{}{}", run.stdout, run.stderr).replace(data, "testdata/");
        let path = folder.join(name);
        if update {
            std::fs::write(&path, shown).unwrap();
            continue;
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        if golden != shown {
            let line = golden.lines().zip(shown.lines()).position(|(a, b)| a != b);
            let line = line.unwrap_or(golden.lines().count().min(shown.lines().count()));
            different.push(format!(
                "{name}, line {}:\n- {}\n+ {}",
                line + 1,
                golden.lines().nth(line).unwrap_or("(end)"),
                shown.lines().nth(line).unwrap_or("(end)")
            ));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
