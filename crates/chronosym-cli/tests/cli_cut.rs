//! A trace that is cut anywhere is read to its last whole block; nothing that was read is lost.

mod common;

use common::*;

use chronosym::{Filter, Options, Session};

/// Returns the number of samples of a trace in memory, and whether the reader reports it as
/// truncated.
fn samples(trace: &[u8]) -> (u64, bool) {
    let mut session = Session::new(Options::default());
    let diagnostics = chronosym::source::nettrace::read(trace, &mut session).unwrap();
    let timeline = session.finish();
    let count = timeline.profile(&Filter::default(), None).samples();
    (count, diagnostics.is_cut_short())
}

#[test]
fn cuts_lose_only_the_data_after_them() {
    let trace = unzipped(LINUX);
    let (all, cut_short) = samples(&trace);
    assert!(!cut_short && all > 5_000);
    // Every cut in the first blocks, and cuts at odd offsets over the whole file.
    let cuts = (8..2_000).chain((2_000..trace.len()).step_by(2_477));
    let mut before = 0;
    for cut in cuts {
        let (count, cut_short) = samples(&trace[..cut]);
        assert!(cut_short, "cut at {cut} is not noticed");
        assert!(
            count >= before,
            "cut at {cut}: {count} samples, {before} before"
        );
        before = count;
    }
    assert!(before * 10 > all * 9 && before <= all);
}

#[test]
fn the_program_prints_what_a_cut_trace_has() {
    for (path, cuts) in [(LINUX, 12), (R2R, 5)] {
        let trace = unzipped(path);
        let (mut before, mut kinds) = (0, 0);
        for cut in (1..=cuts).map(|i| trace.len() * i / (cuts + 1)) {
            let input = file(&trace[..cut]);
            let run = run(&["stacks", "--format", "folded", input.to_str().unwrap()]);
            assert_eq!(run.status, 0, "{path} at {cut}: {}", run.stderr);
            assert!(
                run.stderr.contains("cut short"),
                "{path} at {cut}: {}",
                run.stderr
            );
            let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
            let count: u64 = run.stdout.lines().map(weight).sum();
            assert!(count >= before, "{path} at {cut}");
            kinds += u64::from(count > before);
            before = count;
        }
        assert!(kinds > 2, "{path}: longer traces must have more samples");
    }
}

#[test]
fn info_reports_truncation_first() {
    let trace = unzipped(R2R);
    let input = file(&trace[..200_000]);
    let run = run(&["info", input.to_str().unwrap()]);
    assert_eq!(run.status, 0);
    assert!(run.stdout.starts_with("! CUT SHORT"), "{}", run.stdout);
    assert!(run.stdout.contains("cut short at byte"));
}
