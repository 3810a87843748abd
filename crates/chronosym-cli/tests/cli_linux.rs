//! Recordings of Linux on the command line: names of the kernel, and the recordings that `info`
//! reports as joined.

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
fn kallsyms_name_only_their_own_kernel() {
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
        "its kernel starts at 0xffffffff81200000, that of the recording at 0xffffffff81000000";
    assert!(other.stderr.contains(why), "{}", other.stderr);
    std::fs::write(path("none"), "hello\n").unwrap();
    let none = stacks("none");
    assert_eq!(none.status, 1);
    assert!(none.stderr.contains("not a list"), "{}", none.stderr);
    // The attempts are reported for the image.
    let modules = run(&["modules", trace.as_str(), "--kallsyms", &path("other")]);
    assert!(modules.stdout.contains("starts at"), "{}", modules.stdout);
}

#[test]
fn info_reports_the_process_of_a_container() {
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
    let line = "app.nettrace: code of its process, 42, whose own id is 1 (same clock)";
    assert!(found.stdout.contains(line), "{}", found.stdout);
    assert!(
        found.stdout.contains("[kernel]                 pid 0"),
        "{}",
        found.stdout
    );
}

/// `perf record --threads` writes a folder: `data` with the header, `data.N` with most records.
#[test]
fn a_folder_of_a_recorder_with_threads_is_read_as_one_recording() {
    let mut perf = PerfWriter::new(PerfAttr::default());
    perf.comm(1, 7, 7, "app");
    perf.mmap2(2, 7, 0x1000, 0x10_0000, 0, "/lib/a.so");
    for at in 0..100_u64 {
        let tid = 7 + (at % 3) as u32;
        perf.sample(10 + at, 7, tid, &[0x1000 + 16 * at, 0x2000]);
    }
    let whole = perf.file();
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let (data, size) = (number(40), number(48));
    // Each record goes to one of three files, as each thread of the recorder has its own
    // processors.
    let mut files: [Vec<u8>; 3] = Default::default();
    let (mut at, mut count) = (data, 0);
    while at < data + size {
        let length = u16::from_le_bytes(whole[at + 6..at + 8].try_into().unwrap()) as usize;
        // The main file has the first ones.
        let file = if count < 2 { 0 } else { 1 + count % 2 };
        files[file].extend(&whole[at..at + length]);
        (at, count) = (at + length, count + 1);
    }
    assert!(files.iter().all(|file| !file.is_empty()), "{count}");
    let [first, second, third] = files;
    let moved = (size - first.len()) as u64;
    let mut main = [&whole[..data], &first, &whole[data + size..]].concat();
    main[48..56].copy_from_slice(&(first.len() as u64).to_le_bytes());
    let features: u32 = main[72..104].iter().map(|byte| byte.count_ones()).sum();
    for feature in 0..features as usize {
        let at = data + first.len() + 16 * feature;
        let offset = u64::from_le_bytes(main[at..at + 8].try_into().unwrap()) - moved;
        main[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("data", main), ("data.0", second), ("data.1", third)] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let folder = folder.path().to_str().unwrap();
    let whole = common::file(&whole);
    for command in [
        &["stacks", "--format", "folded", "--addresses"][..],
        &["threads"],
    ] {
        let run_on = |path: &str| {
            let run = run(&[command, &["--offline", path]].concat());
            run.assert_ended_well(path);
            run.stdout
        };
        let expected = run_on(whole.to_str().unwrap());
        assert!(expected.contains("app"), "{expected:.300}");
        assert_eq!(run_on(folder), expected);
    }
}

/// An IL map is missing only for managed code; native code that a recorder named lacks a symbol file.
#[test]
fn native_code_lacks_no_il_map() {
    let mut seen = [0, 0];
    let trace = common::arg(common::LINUX);
    for sample in common::json_lines(&["stacks", "--offline", "--format", "jsonl", &trace]) {
        for frame in sample["frames"].as_array().unwrap() {
            let reason = match frame["module"].as_str() {
                _ if frame["evidence"] != "ProcessSymbol" => continue,
                Some("libc" | "ld-linux-x86-64" | "libstdc++") => "PathNotTrusted",
                Some("vmlinux") => "NoSymbolFile",
                Some(_) => "NoILMap",
                None => continue,
            };
            assert_eq!(frame["line_reason"], reason, "{frame}");
            seen[usize::from(reason == "NoILMap")] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 1_000), "{seen:?}");
}
