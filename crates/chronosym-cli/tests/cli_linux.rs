//! Recordings of Linux on the command line: what names the kernel, and what `info` says of what was joined.

mod common;

use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::trace::TraceInfo;
use common::run;

const TEXT: u64 = 0xffff_ffff_8100_0000;

/// One sample in the kernel, 16 bytes into `do_work`.
fn recording() -> PerfWriter {
    let mut perf = PerfWriter::new(PerfAttr::default());
    let body = perf.body().u32(u32::MAX).u32(0);
    let body = body.words(&[TEXT, 0x1000, TEXT]);
    perf.kernel_record(1, 1, body.name("[kernel.kallsyms]_text"), 0, 0);
    perf.comm(1_000, 42, 42, "app");
    let sample = perf.body().u64(TEXT + 0x110).u32(42).u32(42).u64(2_000);
    let sample = sample.u32(0).u32(0).u64(1_000_000).u64(2);
    perf.record(9, 1, sample.words(&[-128i64 as u64, TEXT + 0x110]));
    perf
}

fn kallsyms(base: u64) -> String {
    let rows = [(0, "_text"), (0x100, "do_work"), (0x1000, "_etext")];
    let rows = rows.map(|(at, name)| format!("{:016x} T {name}\n", base + at));
    rows.concat()
}

#[test]
fn kallsyms_name_the_kernel_that_they_are_of_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let trace = path("perf.data");
    std::fs::write(&trace, recording().file()).unwrap();
    for (name, base) in [("own", TEXT), ("other", TEXT + 0x20_0000)] {
        std::fs::write(path(name), kallsyms(base)).unwrap();
    }
    let stacks = |name: &str| {
        run(&[
            "stacks",
            trace.as_str(),
            "--format",
            "folded",
            "--kallsyms",
            &path(name),
        ])
    };
    let own = stacks("own");
    assert_eq!(
        own.stdout,
        "app (42);app (42);[kernel.kallsyms]!do_work 1\n"
    );
    assert_eq!(own.stderr, "");
    let other = stacks("other");
    assert_eq!(other.stdout, "app (42);app (42);[kernel.kallsyms]!? 1\n");
    let why =
        "its kernel stands at 0xffffffff81200000, that of the recording at 0xffffffff81000000";
    assert!(other.stderr.contains(why), "{}", other.stderr);
    std::fs::write(path("none"), "hello\n").unwrap();
    let none = stacks("none");
    assert_eq!(none.status, 1);
    assert!(none.stderr.contains("no list"), "{}", none.stderr);
    // What was tried is said of the image.
    let modules = run(&["modules", trace.as_str(), "--kallsyms", &path("other")]);
    assert!(modules.stdout.contains("stands at"), "{}", modules.stdout);
}

#[test]
fn info_says_which_process_a_container_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (perf, runtime) = (path("perf.data"), path("app.nettrace"));
    std::fs::write(&perf, recording().file()).unwrap();
    let info = TraceInfo {
        process_id: 1,
        qpc_start: 1_500,
        ..TraceInfo::default()
    };
    std::fs::write(&runtime, NettraceWriter::v4().info(info).finish()).unwrap();
    let found = run(&["info", perf.as_str(), &runtime, "--map-pid", "1=42"]);
    let line = "app.nettrace: code of its process, 42, which calls itself 1 (same clock)";
    assert!(found.stdout.contains(line), "{}", found.stdout);
    assert!(
        found.stdout.contains("[kernel]                 pid 0"),
        "{}",
        found.stdout
    );
}
