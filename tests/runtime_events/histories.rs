//! Events without partners, in bulk and in any order.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym::runtime::{
    Collections, Contention, Exceptions, Jit, Report, SuspensionTotals, keep_for_durations,
    weigh_by_duration,
};
use chronosym::{EventSelector, Options, SampleSelection, ThreadIndex, Timeline, Weight};
use chronosym_support::payload::Payload;

use crate::collections::{gc_end, gc_start, suspend};
use crate::compilations::{load, start};
use crate::exceptions::{block, thrown};
use crate::trace::{RUNTIME, Trace, all, clr, read};
use chronosym_support::random::Random;

/// An event without its time and thread: id and version, payload.
type Bare = ((u32, u32), Vec<u8>);

/// An event of a history: id and version, time and thread, payload.
type Row = ((u32, u32), (i64, u64), Vec<u8>);

/// A history in which each thread does one thing after another, in properly nested pairs.
fn history(random: &mut Random) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut time, mut number) = (0, 0);
    // By thread, the ends of what it does.
    let mut open: BTreeMap<u64, Vec<Bare>> = BTreeMap::new();
    for _ in 0..80 {
        time += random.below(20) as i64;
        let thread = 1 + random.below(3);
        let ends = open.entry(thread).or_default();
        if random.below(2) == 0
            && let Some((key, payload)) = ends.pop()
        {
            rows.push((key, (time, thread), payload));
            continue;
        }
        let at = (time, thread);
        let clr = || clr().finish();
        let mut pair = |start: Bare, end| {
            rows.push((start.0, at, start.1));
            ends.push(end);
        };
        match random.below(7) {
            0 => {
                let reason = random.below(7) as u32;
                pair(((9, 1), suspend(reason).finish()), ((3, 1), clr()));
                rows.push(((8, 1), at, clr()));
            }
            1 => {
                number += 1;
                let kind = random.below(3) as u32;
                let start = gc_start(number, kind, 0, kind).finish();
                pair(((1, 2), start), ((2, 1), gc_end(number).finish()));
            }
            2 => {
                let method = random.below(4);
                let loaded = load(method, 1, 8, "M").finish();
                pair(((145, 1), start(method, 1, "M")), ((143, 1), loaded));
            }
            3 => {
                // States a duration, which may be wrong.
                let stated = (random.below(60) as f64 - 20.0).to_bits();
                let end = Payload::new().u8(0).u16(7).u64(stated).finish();
                let start = Payload::new().u8(0).u16(7).finish();
                pair(((81, 1), start), ((91, 1), end));
            }
            4 => {
                let start = thrown("A", "", random.below(8) as u16).finish();
                pair(((80, 1), start), ((250, 0), block("handler").finish()));
            }
            5 => pair(((252, 0), block("finally").finish()), ((253, 0), clr())),
            // A version that does not exist, and an event that is cut off.
            _ => rows.push(((81, 200), at, vec![0; random.below(4) as usize])),
        }
    }
    rows
}

/// Drops, repeats and moves events.
fn damage(rows: &mut Vec<Row>, random: &mut Random) {
    let rate = 3 + random.below(20);
    let whole = std::mem::take(rows);
    for row in whole {
        match random.below(rate) {
            0 => continue,
            1 => rows.push(row.clone()),
            _ => {}
        }
        rows.push(row);
    }
    for _ in 0..random.below(20) {
        if let Some(last) = rows.len().checked_sub(1) {
            let (a, b) = (random.below(last as u64 + 1), random.below(last as u64 + 1));
            rows.swap(a as usize, b as usize);
        }
    }
}

fn timeline(rows: &[Row], options: Options) -> Arc<Timeline> {
    let mut trace = Trace::new();
    for (key, at, payload) in rows {
        trace.event_with(&[0x10], *key, *at, payload);
    }
    read(&trace.writer.finish(), options)
}

fn sums(of: impl Iterator<Item = (ThreadIndex, u64)>) -> BTreeMap<ThreadIndex, u64> {
    let mut sums = BTreeMap::new();
    of.for_each(|(thread, ns)| *sums.entry(thread).or_default() += ns);
    sums
}

/// No moment of a thread counts twice or less than nothing, whatever is lost, repeated or out of
/// order, and each start of a pair has an end or is counted.
#[test]
fn times_of_damaged_histories_stay_within_their_span() {
    let mut random = Random::new(5);
    let (mut known, mut unpaired) = ([0_u64; 4], 0);
    for round in 0..300 {
        let mut rows = history(&mut random);
        if round > 0 {
            damage(&mut rows, &mut random);
        }
        let times = || rows.iter().map(|row| row.1.0 as u64);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let span = last - first;
        let mut options = Report::options_of(&Report::ALL);
        options.markers = 10_000;
        let timeline = timeline(&rows, options);
        let (gc, jit) = (
            Collections::new(&timeline, &all()),
            Jit::new(&timeline, &all()),
        );
        let waits = Contention::new(&timeline, &all());
        let exceptions = Exceptions::new(&timeline, &all());
        let within = [
            sums(
                jit.methods
                    .iter()
                    .filter_map(|it| Some((it.thread, it.duration_ns?))),
            ),
            sums(
                waits
                    .waits
                    .iter()
                    .filter_map(|it| Some((it.waiter, it.duration_ns?))),
            ),
            sums(
                exceptions
                    .thrown
                    .iter()
                    .filter_map(|it| Some((it.thread, it.dispatch_ns?))),
            ),
        ];
        for (at, sums) in within.iter().enumerate() {
            assert!(
                sums.values().all(|&ns| ns <= span),
                "{at}: {sums:?} of {span}: {rows:?}"
            );
            known[at] += sums.values().sum::<u64>();
        }
        // Suspensions stop all threads: no two overlap.
        let suspended = [&gc.pauses, &gc.others].map(|it| it.list.iter());
        let suspended: u64 = (suspended.into_iter().flatten())
            .map(|it| it.duration_ns())
            .sum();
        assert!(suspended <= span, "{suspended} of {span}: {rows:?}");
        let totals = SuspensionTotals::of(&timeline, &timeline.markers());
        let total: u64 = totals.iter().map(|it| it.time_ns).sum();
        assert!(total <= span, "{total} of {span}: {rows:?}");
        let charged: u64 = gc.collections.iter().filter_map(|it| it.pause_ns).sum();
        assert!(charged <= suspended, "{charged} of {suspended}: {rows:?}");
        known[3] += suspended;
        let logged = |id: u32| rows.iter().filter(|row| row.0 == (id, 1)).count() as u64;
        let paired = jit.methods.iter().filter(|it| it.duration_ns.is_some());
        let paired = paired.count() as u64;
        assert_eq!(logged(145), paired + jit.unused.without_end, "{rows:?}");
        let paired = waits
            .waits
            .iter()
            .filter(|it| it.duration_ns.is_some())
            .count() as u64;
        assert_eq!(
            waits.waits.len() as u64,
            paired + waits.unused.without_end,
            "{rows:?}"
        );
        assert_eq!(logged(91), paired + waits.unused.without_start, "{rows:?}");
        unpaired += jit.unused.without_end + waits.unused.without_start;
    }
    assert!(
        known.iter().all(|&ns| ns > 1_000) && unpaired > 100,
        "{known:?}, {unpaired}"
    );
}

/// A suspension whose end is missing takes no time, and none from another one.
#[test]
fn suspensions_without_an_end_delay_no_other() {
    let mut trace = Trace::new();
    trace.event((9, 1), (100, 1), suspend(1));
    trace.event((9, 1), (150, 2), suspend(1));
    trace.event((3, 1), (200, 1), clr());
    let mut options = Report::Gc.options();
    options.markers = 10;
    let timeline = read(&trace.writer.finish(), options);
    let totals = SuspensionTotals::of(&timeline, &timeline.markers());
    let totals: Vec<_> = totals.iter().map(|it| (it.count, it.time_ns)).collect();
    assert_eq!(totals, [(2, 100)]);
    let gc = Collections::new(&timeline, &all());
    let paused: u64 = gc.pauses.list.iter().map(|it| it.duration_ns()).sum();
    assert_eq!((paused, gc.unused.without_end), (100, 1));
}

/// The weights of stacks have the same bound.
#[test]
fn weights_of_damaged_histories_stay_within_their_span() {
    let mut random = Random::new(6);
    let mut known = 0;
    for _ in 0..100 {
        let mut rows = history(&mut random);
        damage(&mut rows, &mut random);
        let last = rows.iter().map(|row| row.1.0 as u64).max().unwrap_or(0);
        for id in [81, 145] {
            let event = EventSelector::parse(&format!("{RUNTIME}/{id}")).unwrap();
            let mut options = Options::from(SampleSelection::Events(vec![event]));
            keep_for_durations(&mut options);
            let mut timeline = timeline(&rows, options);
            weigh_by_duration(Arc::get_mut(&mut timeline).unwrap());
            let mut weights = Vec::new();
            timeline.for_each_weighed_sample(&all(), |it| {
                if let Weight::Ns(ns) = it.weight {
                    weights.push((it.class.thread, ns));
                }
            });
            let sums = sums(weights.into_iter());
            assert!(
                sums.values().all(|&ns| ns <= last),
                "{id}: {sums:?} of {last}: {rows:?}"
            );
            known += sums.values().sum::<u64>();
        }
    }
    assert!(known > 1_000, "{known}");
}

/// Many activities without partners on one thread: pairing does not search them all.
#[test]
fn unpaired_events_in_bulk_are_only_counted() {
    const MANY: u64 = 40_000;
    let mut trace = Trace::new();
    for i in 0..MANY {
        trace.event_with(&[], (145, 1), (i as i64, 1), &start(i, 1, "M"));
    }
    for i in 0..MANY {
        trace.event((143, 1), ((MANY + i) as i64, 1), load(MANY + i, 1, 8, "M"));
    }
    let jit = Jit::new(&trace.read(Report::Jit), &all());
    assert_eq!(
        (jit.methods.len() as u64, jit.unused.without_end),
        (MANY, MANY)
    );

    let mut trace = Trace::new();
    for i in 0..MANY {
        trace.event((80, 1), (i as i64, 1), thrown("A", "", 2));
    }
    trace.event((252, 0), (MANY as i64, 1), block("finally"));
    for i in 0..MANY {
        trace.event((80, 1), ((MANY + i) as i64, 1), thrown("B", "", 0));
    }
    let exceptions = Exceptions::new(&trace.read(Report::Exceptions), &all());
    assert_eq!(exceptions.thrown.len() as u64, 2 * MANY);

    let mut trace = Trace::new();
    for i in 0..MANY {
        trace.event((9, 1), (i as i64, i), suspend(1));
    }
    for i in 0..MANY {
        let number = i as u32;
        trace.event((1, 2), ((MANY + i) as i64, MANY), gc_start(number, 0, 0, 0));
    }
    let gc = Collections::new(&trace.read(Report::Gc), &all());
    assert_eq!(gc.unused.without_end, 2 * MANY);
}
