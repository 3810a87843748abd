//! Waits for locks.

use chronosym::runtime::{Contention, Report};
use chronosym_support::payload::Payload;

use crate::trace::{Trace, all};
use chronosym_support::random::Random;

#[test]
fn waits_end_with_the_next_stop_of_their_thread() {
    let mut random = Random::new(3);
    for _ in 0..200 {
        let mut trace = Trace::new();
        let mut steps: Vec<(u64, u64, bool)> = Vec::new();
        let mut time = 0;
        for _ in 0..40 {
            time += random.below(5);
            let (thread, is_start) = (1 + random.below(3), random.below(2) == 0);
            steps.push((time, thread, is_start));
            let at = (time as i64, thread);
            match is_start {
                true => trace.event((81, 1), at, Payload::new().u8(0).u16(7)),
                false => trace.event((91, 0), at, Payload::new().u8(0).u16(7)),
            }
        }
        let waits = Contention::new(&trace.read(Report::Contention), &all());
        let starts = steps.iter().enumerate().filter(|(_, step)| step.2);
        let model: Vec<_> = starts
            .map(|(at, &(time, thread, _))| {
                let next = steps[at + 1..].iter().find(|step| step.1 == thread);
                next.filter(|step| !step.2).map(|step| step.0 - time)
            })
            .collect();
        let seen: Vec<_> = waits.waits.iter().map(|it| it.duration_ns).collect();
        assert_eq!(seen, model, "{steps:?}");
        let open = model.iter().filter(|it| it.is_none()).count() as u64;
        let stops = steps.iter().filter(|step| !step.2).count() as u64;
        let paired = model.len() as u64 - open;
        assert_eq!(
            (waits.unused.without_end, waits.unused.without_start),
            (open, stops - paired)
        );
    }
}

#[test]
fn locks_have_owners_and_stated_durations() {
    let start = Payload::new().u8(0).u16(7).u64(0x5000).u64(0x6000).u64(42);
    let stop = |ns: f64| Payload::new().u8(0).u16(7).u64(ns.to_bits());
    let mut trace = Trace::new();
    trace.event_with(&[0x10], (81, 2), (100, 1), &start.clone().finish());
    trace.event((91, 1), (200, 1), stop(90.0));
    // Longer than the time between the events, and no number.
    trace.event((81, 2), (300, 1), start.clone());
    trace.event((91, 1), (350, 1), stop(1e18));
    trace.event((81, 2), (400, 1), start);
    trace.event((91, 1), (450, 1), stop(f64::NAN));
    let waits = Contention::new(&trace.read(Report::Contention), &all());
    let durations: Vec<_> = waits.waits.iter().map(|it| it.duration_ns).collect();
    assert_eq!(durations, [Some(90), Some(50), Some(50)]);
    let first = &waits.waits[0];
    assert_eq!(
        (first.lock_id, first.object, first.owner_tid),
        (Some(0x5000), Some(0x6000), Some(42))
    );
    assert!(first.stack.is_some());
    assert_eq!(waits.duration_ns(), 190);
}
