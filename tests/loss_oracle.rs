//! Certainty after losses: copies of every available trace lose blocks, buffers or records, are
//! overwritten in parts, or are cut short. No name may be wrong and `Exact` if the loss was noticed.

mod losses;

use std::path::Path;
use std::process::ExitCode;

use chronosym_conformance::{CORPUS, TESTDATA, case, unzip};
use libtest_mimic::{Arguments, Failed, Trial};

use losses::blocks::{Blocks, Version, rewritten};
use losses::{Score, etl, overwrite, perf, read};

/// Trials for a trace of a size: smaller ones are read more often.
fn trials(bytes: &[u8], most: usize) -> usize {
    const BYTES: usize = 24 << 20;
    (BYTES / bytes.len().max(1)).clamp(1, most)
}

fn main() -> ExitCode {
    let mut cases = Vec::new();
    let own = |name: &str, run: fn(&[u8]) -> Result<(), Failed>, path: &'static str| {
        Trial::test(name, move || {
            let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
            run(&unzip(&testdata.join(path), ".nettrace")?)
        })
    };
    #[rustfmt::skip]
    let traces = [
        ("nettrace_all", "clr10/traces/all.nettrace.zip"),
        ("nettrace_reuse", "clr10/traces/reuse.nettrace.zip"),
        ("nettrace_rich", "clr10/traces/rich.nettrace.zip"),
        ("nettrace_entry", "clr10/traces/entry.nettrace.zip"),
        ("nettrace_default", "clr10/traces/default.nettrace.zip"),
        ("nettrace_r2r", "clr10/traces/r2r.nettrace.zip"),
        ("nettrace_attach", "clr10/traces/attach.nettrace.zip"),
        ("nettrace_net9", "clr10/traces/net9-rich.nettrace.zip"),
        ("nettrace_memory", "clr10/traces/memory.nettrace.zip"),
        ("nettrace_3_1_reuse", "clr31/workload/traces/reuse.nettrace.zip"),
        ("nettrace_3_1_all", "clr31/workload/traces/all.nettrace.zip"),
        ("nettrace_3_1_attach", "clr31/live/traces/attach.nettrace.zip"),
        ("nettrace_3_1_full", "clr31/live/traces/full.nettrace.zip"),
        ("nettrace_8_shop", "clr8/shop/shop.nettrace.zip"),
        ("nettrace_8_chain", "clr8/chain/chain.nettrace.zip"),
        ("nettrace_8_inlining", "clr8/known/inlining.nettrace.zip"),
    ];
    cases.extend(traces.map(|(name, path)| own(name, of_nettrace, path)));
    #[rustfmt::skip]
    cases.extend([
        own("nettrace_v6_reuse", of_v6, "clr31/workload/traces/reuse.nettrace.zip"),
        own("nettrace_v6_all", of_v6, "clr10/traces/all.nettrace.zip"),
        own("netperf_v3_reuse", of_v3, "clr31/workload/traces/reuse.nettrace.zip"),
        own("netperf_v3_all", of_v3, "clr10/traces/all.nettrace.zip"),
        Trial::test("etl_remapping", || of_etl(&etl::remapping())),
        Trial::test("perf_remapping", || of_perf(&perf::remapping())),
        Trial::test("perf_two_events", || of_perf(&perf::remapping_of_two_events())),
        case(CORPUS, "nettrace_3_0_windows", |folder| of_nettrace(&unzip(&folder.join("eventpipe-dotnetcore3.0-win-x64-objver4.nettrace.zip"), ".nettrace")?)),
        case(CORPUS, "nettrace_5_macos", |folder| of_nettrace(&unzip(&folder.join("only_managed_samples.nettrace.zip"), ".nettrace")?)),
        case(CORPUS, "nettrace_v6_record_trace", |folder| of_nettrace(&std::fs::read(folder.join("record-trace.v6.nettrace"))?)),
        case(CORPUS, "etl_net_4_5_2", |folder| of_etl(&unzip(&folder.join("net.4.5.2.x64.etl.zip"), ".etl")?)),
        case(TESTDATA, "perf_net8", |folder| of_perf(&std::fs::read(folder.join("perf/net8/perf.data"))?)),
        case(TESTDATA, "perf_net10", |folder| of_perf(&std::fs::read(folder.join("perf/net10/perf.data"))?)),
        case(TESTDATA, "perf_net8_dummy", |folder| of_dummy(&std::fs::read(folder.join("perf/net8/perf.data"))?)),
        case(TESTDATA, "perf_net10_dummy", |folder| of_dummy(&std::fs::read(folder.join("perf/net10/perf.data"))?)),
        case(TESTDATA, "perf_mono_dummy", |folder| of_dummy(&unzip(&folder.join("clr31/join/mono.zip"), "perf.data")?)),
        case(TESTDATA, "perf_mono", |folder| of_perf(&unzip(&folder.join("clr31/join/mono.zip"), "perf.data")?)),
    ]);
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// Damages a trace at any place; every loss shows, or it changes no name.
fn of_damage(bytes: &[u8], most: usize) -> Result<(), Failed> {
    let (whole, mut score) = (read(bytes)?, Score::default());
    for seed in 1..=trials(bytes, most) {
        match read(&overwrite(bytes, seed as u64)) {
            Ok(damaged) => score.add(&format!("damage {seed}"), &whole, &damaged),
            Err(error) => println!("damage {seed}: {:?}", error.message()),
        }
    }
    score.check(false)
}

/// Drops runs of blocks from the first to the last, then a sixth of all: of events and stacks, and
/// of every kind.
fn dropped_blocks(bytes: &[u8], most: usize) -> Result<Score, Failed> {
    let blocks = Blocks::of(bytes);
    let (whole, mut score) = (read(bytes)?, Score::default());
    if blocks.without(|_, _| false) != bytes {
        return Err("the blocks are not the file".into());
    }
    let count = blocks.count();
    for trial in 0..trials(bytes, most) {
        // One trial alone keeps the first block, which may define all types of events.
        let sixth = (trial + 3) % 6;
        let (from, to) = (count * sixth / 6, count * sixth / 6 + 1 + count / 20);
        let is_dropped = |number: usize, has_events: bool| {
            let is_there = match trial {
                0..6 | 8..14 => (from..to).contains(&number),
                _ => (number * 7 + trial * 3).is_multiple_of(6),
            };
            is_there && (has_events || trial >= 8)
        };
        let damaged = read(&blocks.without(is_dropped))?;
        score.add(&format!("blocks {trial}"), &whole, &damaged);
    }
    Ok(score)
}

fn of_nettrace(bytes: &[u8]) -> Result<(), Failed> {
    dropped_blocks(bytes, 16)?.check(true)?;
    of_damage(bytes, 12)
}

fn of_v6(bytes: &[u8]) -> Result<(), Failed> {
    of_nettrace(&rewritten(bytes, Version::V6)?)
}

/// Nothing in the format shows that whole blocks are missing.
fn of_v3(bytes: &[u8]) -> Result<(), Failed> {
    let bytes = rewritten(bytes, Version::NetperfV3)?;
    dropped_blocks(&bytes, 4)?.check(false)?;
    of_damage(&bytes, 6)
}

fn of_etl(bytes: &[u8]) -> Result<(), Failed> {
    let (whole, mut score) = (read(bytes)?, Score::default());
    let count = chronosym_support::etl::buffers(bytes).len();
    for trial in 0..trials(bytes, 16) {
        let from = 1 + (count - 1) * trial / 16;
        let is_dropped = |number: usize| match trial % 4 {
            0..3 => (from..from + 1 + count / 30).contains(&number),
            _ => (number * 7 + trial).is_multiple_of(6),
        };
        let damaged = read(&etl::without(bytes, is_dropped))?;
        score.add(&format!("buffers {trial}"), &whole, &damaged);
    }
    score.check(true)?;
    of_damage(bytes, 12)
}

/// Drops any records of a recording with an event that only describes processes: mostly samples.
fn of_dummy(bytes: &[u8]) -> Result<(), Failed> {
    let bytes = perf::Records::of(bytes).with_dummy();
    let records = perf::Records::of(&bytes);
    let (whole, mut score) = (read(&bytes)?, Score::default());
    for trial in 0..trials(&bytes, 60) {
        let number = records.count() * trial / 60;
        if let Some(damaged) = records.lossy(number, 1 << (trial % 7)) {
            score.add(&format!("records {trial}"), &whole, &read(&damaged)?);
        }
    }
    score.check(true)
}

fn of_perf(bytes: &[u8]) -> Result<(), Failed> {
    let records = perf::Records::of(bytes);
    let (whole, mut score) = (read(bytes)?, Score::default());
    let described = (0..records.count()).filter(|&number| records.is_description(number));
    let described: Vec<_> = described.collect();
    for trial in 0..trials(bytes, 60) {
        // A record of a process or mapping, and those after it; then any.
        let number = match trial % 3 {
            0 => records.count() * trial / 60,
            _ => described[described.len() * trial / 60],
        };
        let Some(damaged) = records.lossy(number, 1 << (trial % 7)) else {
            continue;
        };
        score.add(&format!("records {trial}"), &whole, &read(&damaged)?);
    }
    score.check(true)?;
    of_damage(bytes, 30)
}
