//! The live map against the model: at the end, and at every moment before.

mod model;

use std::sync::{Arc, RwLock};

use chronosym_timeline::{AddrRange, End, Id, LiveMap, Occupant, Snapshot, Start, VersionedMap};
use model::Model;
use proptest::prelude::*;

fn index(i: usize) -> Id {
    Id::from_index(i).unwrap()
}

/// Makes enough changes without effect for the next snapshot to build a frozen map.
fn rebuild(live: &mut LiveMap, inserted: usize) {
    let mut ids = (0..inserted).map(index);
    let end = ids.find_map(|id| Some((id, live.get(id)?.end)));
    if let Some((id, end)) = end {
        (0..100).for_each(|_| live.set_end(id, end));
        live.snapshot();
    }
}

fn agree(snapshot: &Snapshot, occupants: &[Occupant]) {
    let model = Model::new(occupants);
    let times = model.times();
    for addr in model.addresses() {
        let expected = model.occupants(addr);
        for &time in &times {
            let answer = snapshot.lookup(addr, time);
            assert_eq!(
                answer.id,
                model.lookup(addr, time),
                "{addr:#x} at {time} of {occupants:#?}"
            );
            assert_eq!(
                model::bounds(&snapshot.neighbours(addr, time)),
                model::nearest(&expected, time),
                "next to {time} at {addr:#x} of {occupants:#?}"
            );
        }
        let mut answered: Vec<_> = snapshot.occupants(addr).collect();
        for &(id, lifetime) in &answered {
            let instant = model::instant(&occupants[id.index()]);
            assert_eq!(snapshot.lifetime(id, addr, instant), Some(lifetime));
            let unknown = index(occupants.len());
            assert_eq!(snapshot.lifetime(unknown, addr, instant), None);
        }
        // Empty lifetimes at one instant have no order among themselves.
        let mut expected = expected;
        expected.sort_by_key(|(id, lifetime)| (lifetime.from, lifetime.to, *id));
        answered.sort_by_key(|(id, lifetime)| (lifetime.from, lifetime.to, *id));
        assert_eq!(answered, expected, "{addr:#x} of {occupants:#?}");
    }
}

/// One event of a session.
#[derive(Clone, Copy, Debug)]
enum Event {
    Insert(usize),
    End(usize),
    NotAfter(usize),
}

/// A session as it would be delivered: no end before its start, events in time order, occupants in
/// the order of insertion.
fn session(most: usize) -> impl Strategy<Value = (Vec<Occupant>, Vec<(u64, Event)>)> {
    model::history(most).prop_map(|mut occupants| {
        let instant = |o: &Occupant| match o.start {
            Start::At(t) | Start::Before(t) => t,
            Start::Unbounded => o.not_before,
        };
        for o in &mut occupants {
            if let End::At(t) = o.end {
                o.end = End::At(t.max(instant(o)));
            }
            o.not_after = o.not_after.max(instant(o));
        }
        occupants.sort_by_key(instant);
        let mut events = Vec::new();
        for (i, o) in occupants.iter().enumerate() {
            events.push((instant(o), Event::Insert(i)));
            if let End::At(t) | End::After(t) = o.end {
                events.push((t.max(instant(o)), Event::End(i)));
            }
            if o.not_after < u64::MAX {
                events.push((o.not_after, Event::NotAfter(i)));
            }
        }
        events.sort_by_key(|(time, _)| *time);
        (occupants, events)
    })
}

fn feed(live: &mut LiveMap, occupants: &[Occupant], event: Event) {
    match event {
        Event::Insert(i) => {
            let known = Occupant {
                end: End::Open,
                not_after: u64::MAX,
                ..occupants[i]
            };
            assert_eq!(live.insert(known), index(i));
        }
        Event::End(i) => live.set_end(index(i), occupants[i].end),
        Event::NotAfter(i) => live.set_not_after(index(i), occupants[i].not_after),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn in_any_order_the_end_is_the_same(
        occupants in model::history(10),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 10),
        drafts in prop::collection::vec(prop::option::weighted(0.3, 0_u64..40), 10),
        rebuilds in prop::collection::vec(prop::bool::weighted(0.3), 10),
    ) {
        let mut live = LiveMap::new();
        // Each end becomes known after its own or a later insertion.
        for (i, draft) in drafts.iter().enumerate().take(occupants.len()) {
            feed(&mut live, &occupants, Event::Insert(i));
            if rebuilds[i] {
                rebuild(&mut live, i + 1);
            }
            // An end may turn out to be wrong: a rundown lists code that was considered unloaded.
            if let Some(draft) = *draft {
                live.set_end(index(i), End::At(draft));
            }
            for (late, end) in ends.iter().enumerate().take(i + 1) {
                if late + end.index(occupants.len() - late) == i {
                    feed(&mut live, &occupants, Event::NotAfter(late));
                    feed(&mut live, &occupants, Event::End(late));
                }
            }
        }
        agree(&live.snapshot(), &occupants);
    }

    #[test]
    fn final_answers_do_not_change(
        (occupants, events) in session(10),
        rebuilds in prop::collection::vec(prop::bool::weighted(0.2), 40),
    ) {
        let mut live = LiveMap::new();
        let model = Model::new(&occupants);
        let (addresses, times) = (model.addresses(), model.times());
        let mut before: Option<(Snapshot, Vec<Option<Id>>)> = None;
        for (&(time, event), rebuilds) in events.iter().zip(rebuilds.iter().cycle()) {
            live.advance(time);
            feed(&mut live, &occupants, event);
            if *rebuilds {
                rebuild(&mut live, occupants.len());
            }
            let snapshot = live.snapshot();
            let answers = |snapshot: &Snapshot| {
                let queries = addresses.iter().flat_map(|addr| times.iter().map(move |time| (addr, time)));
                queries.map(|(addr, time)| snapshot.id(*addr, *time)).collect::<Vec<_>>()
            };
            // Changes do not reach earlier snapshots.
            if let Some((snapshot, expected)) = before {
                prop_assert_eq!(answers(&snapshot), expected);
            }
            let answered = answers(&snapshot);
            for &addr in &addresses {
                for &time in &times {
                    let answer = snapshot.lookup(addr, time);
                    prop_assert!(answer.provisional || answer.id == model.lookup(addr, time));
                    prop_assert!(answer.provisional || time < snapshot.watermark());
                    prop_assert_eq!(snapshot.find(addr, time).map(|found| found.0), answer.id);
                }
            }
            before = Some((snapshot, answered));
        }
        prop_assert_eq!(live.late(), 0);
        live.finish();
        agree(&live.snapshot(), &occupants);
        prop_assert!(!live.snapshot().lookup(0, 0).provisional);
    }

    #[test]
    fn forgetting_does_not_change_later_answers(
        (occupants, events) in session(12),
        horizons in prop::collection::vec(prop::option::weighted(0.3, 0_u64..10), 40),
        rebuilds in prop::collection::vec(prop::bool::weighted(0.2), 37),
    ) {
        let mut live = LiveMap::new();
        let (mut horizon, mut gone) = (0, Vec::new());
        let steps = events.iter().zip(horizons.iter().cycle()).zip(rebuilds.iter().cycle());
        for ((&(time, event), back), rebuilds) in steps {
            live.advance(time);
            feed(&mut live, &occupants, event);
            if *rebuilds {
                rebuild(&mut live, occupants.len());
            }
            if let Some(back) = back {
                horizon = horizon.max(time.saturating_sub(*back));
                gone.extend(live.forget_before(horizon));
            }
        }
        let model = Model::new(&occupants);
        for &id in &gone {
            prop_assert!(model.rectangles[id.index()].lifetime.to <= horizon);
        }
        prop_assert_eq!(live.len() + gone.len(), occupants.len());
        let snapshot = live.snapshot();
        for addr in model.addresses() {
            for time in model.times() {
                let (answer, expected) = (snapshot.lookup(addr, time).id, model.lookup(addr, time));
                if time >= horizon {
                    prop_assert_eq!(answer, expected, "{:#x} at {}", addr, time);
                } else {
                    // Forgotten occupants have no answer, and no other occupant replaces them.
                    prop_assert!(answer.is_none() || answer == expected, "{:#x} at {}", addr, time);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Overlapping ranges, some of them wide: many changes between snapshots, and few.
    #[test]
    fn many_occupants_with_snapshots_in_between_answer_like_the_frozen_map(
        occupants in model::heap(),
        pauses in prop::collection::vec(1_usize..150, 1..20),
        order in any::<u64>(),
    ) {
        let mut live = LiveMap::new();
        let mut pauses = pauses.iter().cycle();
        let mut until_snapshot = 0;
        let mut changed = |live: &mut LiveMap| {
            until_snapshot -= 1;
            if until_snapshot <= 0 {
                until_snapshot = *pauses.next().unwrap() as i64;
                live.snapshot();
            }
        };
        for i in 0..occupants.len() {
            feed(&mut live, &occupants, Event::Insert(i));
            changed(&mut live);
        }
        let mut ids: Vec<usize> = (0..occupants.len()).collect();
        ids.sort_by_key(|&i| (i as u64).wrapping_mul(order | 1));
        for i in ids {
            feed(&mut live, &occupants, Event::End(i));
            changed(&mut live);
        }
        let (live, frozen) = (live.snapshot(), VersionedMap::new(&occupants));
        for (id, occupant) in frozen.ids().zip(&occupants) {
            let (range, lifetime) = (occupant.range, frozen.lifetime(id));
            let middle = range.start() + (range.last() - range.start()) / 2;
            for addr in [range.start().saturating_sub(1), range.start(), middle, range.last()] {
                for time in [lifetime.from.saturating_sub(1), lifetime.from, lifetime.to] {
                    prop_assert_eq!(live.id(addr, time), frozen.lookup(addr, time));
                    let near = [live.neighbours(addr, time), frozen.neighbours(addr, time)];
                    prop_assert_eq!(model::bounds(&near[0]), model::bounds(&near[1]));
                }
            }
            let found = live.lifetime(id, middle, model::instant(occupant));
            prop_assert_eq!(found, Some(lifetime));
        }
    }
}

#[test]
fn nobody_is_never_final_before_the_end() {
    let range = AddrRange::sized(0x1000, 0x100).unwrap();
    let mut live = LiveMap::new();
    assert!(live.is_empty());
    live.advance(100);
    assert!(live.snapshot().lookup(0x1000, 50).provisional);
    // A rundown proves that something was there all the time.
    let id = live.insert(Occupant::new(range, Start::Before(100), End::Open));
    let answer = live.snapshot().lookup(0x1000, 50);
    assert_eq!((answer.id, answer.provisional), (Some(id), false));
    assert!(live.snapshot().lookup(0x1000, 100).provisional);
    assert!(!live.is_empty() && !live.snapshot().finished());
    live.finish();
    assert!(!live.snapshot().lookup(0x1000, 100).provisional);
    assert!(live.snapshot().finished());
}

#[test]
fn late_occupants_are_counted_and_taken_in() {
    let range = AddrRange::sized(0x1000, 0x100).unwrap();
    let mut live = LiveMap::new();
    live.advance(100);
    let id = live.insert(Occupant::new(range, Start::At(99), End::Open));
    assert_eq!(live.late(), 1);
    assert_eq!(live.snapshot().lookup(0x1000, 99).id, Some(id));
}

#[test]
fn forgetting_bounds_memory() {
    for publishes in [false, true] {
        forgetting_bounds_memory_of(publishes);
    }
}

fn forgetting_bounds_memory_of(publishes: bool) {
    let mut live = LiveMap::new();
    let mut most = 0;
    for time in 0..60_000_u64 {
        // Always new addresses, and each body lives for 100 units of time.
        let range = AddrRange::sized(0x1000 + time * 48, 40).unwrap();
        live.insert(Occupant::new(range, Start::At(time), End::At(time + 100)));
        if publishes {
            live.snapshot();
        }
        if time % 1000 == 999 {
            live.advance(time);
            live.forget_before(time);
            assert!(live.len() <= 100);
            most = most.max(live.memory_bytes());
        }
    }
    assert!(most < 64 << 10, "{most} bytes");
}

#[test]
fn readers_see_whole_steps_while_the_writer_works() {
    const STEPS: u64 = 3000;
    let range = AddrRange::sized(0x1000, 0x100).unwrap();
    let mut live = LiveMap::new();
    let latest = RwLock::new(Arc::new(live.snapshot()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut seen = 0;
                loop {
                    // The occupant of step t lives in [t, t + 1), and all steps up to the watermark
                    // are complete.
                    let snapshot = latest.read().unwrap().clone();
                    let now = snapshot.watermark();
                    assert!(now >= seen, "time went back");
                    seen = now;
                    for time in now.saturating_sub(3)..now {
                        let answer = snapshot.lookup(0x10ff, time);
                        assert_eq!(answer.id, Some(index(time as usize)));
                        assert!(!answer.provisional);
                    }
                    assert_eq!(snapshot.lookup(0x1000, now).id, None);
                    if snapshot.finished() {
                        return;
                    }
                }
            });
        }
        for time in 0..STEPS {
            let id = live.insert(Occupant::new(range, Start::At(time), End::Open));
            live.set_end(id, End::At(time + 1));
            live.advance(time + 1);
            if time == STEPS - 1 {
                live.finish();
            }
            *latest.write().unwrap() = Arc::new(live.snapshot());
            live.forget_before(time.saturating_sub(5));
        }
    });
}

#[test]
fn occupants_are_reported_until_forgotten() {
    let range = AddrRange::sized(0x1000, 0x10).unwrap();
    let mut live = LiveMap::new();
    let mut occupant = Occupant::new(range, Start::At(5), End::Open);
    let id = live.insert(occupant);
    assert_eq!(live.get(id), Some(&occupant));
    (occupant.end, occupant.not_after) = (End::At(9), 30);
    live.set_end(id, End::At(9));
    live.set_not_after(id, 30);
    assert_eq!(live.get(id), Some(&occupant));
    assert_eq!(live.forget_before(9), [id]);
    assert_eq!(live.get(id), None);
}
