//! Waits and wake-ups of a recording with context switches.

mod common;

use chronosym_support::perf::{PerfAttr, PerfWriter};
use common::run;
use serde_json::Value;

const PID: u32 = 42;
const TEXT: u64 = 0xffff_ffff_8100_0000;
/// The kernel's function in which a thread waits.
const WAIT: u64 = TEXT + 0x100;
/// The one in which another wakes it.
const WAKE: u64 = TEXT + 0x200;

/// Thread 43 waits three times, for 3, 4 and 5 ms; thread 42 ends the first two waits.
fn recording() -> PerfWriter {
    // Instruction pointer, thread, time, call chain, processor, period, raw, identifier.
    let sample_type = 0x1a7 | 1 << 10 | 1 << 16;
    let attr = |id: u64, config| PerfAttr {
        kind: 2,
        config,
        period: 1,
        sample_type,
        ids: vec![id],
        ..PerfAttr::default()
    };
    let mut perf = PerfWriter::new(attr(1, 311));
    perf.attr(attr(2, 312));
    perf.name_events(&["sched:sched_switch", "sched:sched_waking"]);
    let body = perf
        .body()
        .u32(u32::MAX)
        .u32(0)
        .words(&[TEXT, 0x1000, TEXT]);
    perf.kernel_record(1, 1, body.name("[kernel.kallsyms]_text"), 0, 0);
    perf.comm(1, PID, PID, "app");
    perf.fork(1, PID, PID, PID + 1);
    let mut event = |id: u64, ms: u64, tid: u32, ip: u64, raw: Vec<u8>| {
        let body = perf
            .body()
            .u64(id)
            .u64(ip)
            .u32(PID)
            .u32(tid)
            .u64(ms * 1_000_000);
        let body = body.u32(0).u32(0).u64(1).words(&[2, -128i64 as u64, ip]);
        let body = body.u32(raw.len() as u32).raw(&raw);
        perf.record(9, 1, body);
    };
    let mut time = 10;
    for (wait, is_woken) in [(3, true), (4, true), (5, false)] {
        for (time, from, state, to) in [(time, PID + 1, 1, PID), (time + wait, PID, 0x100, PID + 1)]
        {
            if is_woken && from == PID {
                let mut raw = vec![0; 36];
                raw[24..28].copy_from_slice(&(PID + 1).to_le_bytes());
                event(2, time, PID, WAKE + 8, raw);
            }
            let mut raw = vec![0; 68];
            raw[24..28].copy_from_slice(&u32::to_le_bytes(from));
            raw[32..40].copy_from_slice(&u64::to_le_bytes(state));
            raw[56..60].copy_from_slice(&u32::to_le_bytes(to));
            event(1, time, from, WAIT + 8, raw);
        }
        time += 10;
    }
    perf
}

#[test]
fn wakers_are_the_threads_and_stacks_that_end_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, kallsyms) = (path("perf.data"), path("kallsyms"));
    std::fs::write(&trace, recording().file()).unwrap();
    let names = [
        (TEXT, "_text"),
        (WAIT, "do_wait"),
        (WAKE, "do_wake"),
        (TEXT + 0x1000, "_etext"),
    ];
    let names = names.map(|(at, name)| format!("{at:016x} T {name}\n"));
    std::fs::write(&kallsyms, names.concat()).unwrap();
    let of = |args: &[&str]| {
        let files = ["--kallsyms", &kallsyms, &trace];
        run(&[args, files.as_slice()].concat())
    };

    let top = of(&["top", "--wakers", "do_wait"]);
    assert!(
        top.stdout.starts_with("2 wake-ups of 1 thread"),
        "{}",
        top.stdout
    );
    assert!(
        top.stdout.contains("0.007 s of waiting in total"),
        "{}",
        top.stdout
    );
    assert!(top.stdout.contains("100.0%"), "{}", top.stdout);
    assert!(top.stdout.contains("do_wake"), "{}", top.stdout);
    let missing = "1 of 3 waits (5.0 ms of 12.0 ms) have no recorded wake-up";
    assert!(top.stdout.contains(missing), "{}", top.stdout);

    let threads = of(&["threads", "--wakers", "do_wait", "--format", "json"]);
    let threads: Value = serde_json::from_str(&threads.stdout).unwrap();
    let thread = &threads["rows"][0];
    assert_eq!(
        (&thread["tid"], &thread["time_ns"]),
        (&42.into(), &7_000_000.into())
    );

    let threads = of(&["threads", "--activity", "all"]);
    let times = "from context switches, with and without stacks:\n  on-CPU ms runnable ms  blocked ms    thread  name\n";
    assert!(threads.stdout.contains(times), "{}", threads.stdout);
    assert!(
        threads
            .stdout
            .contains("       13.0         0.0        12.0        43  app\n"),
        "{}",
        threads.stdout
    );
    let threads = of(&["threads", "--activity", "all", "--format", "json"]);
    let threads: Value = serde_json::from_str(&threads.stdout).unwrap();
    let rows = threads["rows"].as_array().unwrap();
    let waiting = rows.iter().find(|row| row["tid"] == 43).unwrap();
    assert_eq!(waiting["switched"]["blocked_ns"], 12_000_000);

    // Without waits or switches, a sentence says what is missing.
    let none = of(&["top", "--wakers", "do_other"]);
    assert_eq!(none.status, 0);
    assert!(
        none.stderr
            .contains("no wait has a method that matches 'do_other'"),
        "{}",
        none.stderr
    );
    let mut plain = PerfWriter::new(PerfAttr::default());
    plain.comm(1, PID, PID, "app");
    std::fs::write(&trace, plain.file()).unwrap();
    let none = of(&["threads", "--wakers", "do_wait"]);
    assert_eq!(none.status, 0);
    assert!(
        none.stderr.contains("the trace has no context switches"),
        "{}",
        none.stderr
    );
}
