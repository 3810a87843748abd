//! The cost of a query does not depend on the number of occupants of the address.

use std::hint::black_box;
use std::time::{Duration, Instant};

use chronosym_timeline::{AddrRange, End, LiveMap, Occupant, Start, VersionedMap};

/// `count` lifetimes of 5 units at one address, with gaps of as many.
fn versions(count: u64) -> impl Iterator<Item = Occupant> {
    let range = AddrRange::sized(0x1000, 0x100).unwrap();
    (0..count).map(move |i| Occupant::new(range, Start::At(i * 10), End::At(i * 10 + 5)))
}

/// Returns the time of queries, in batches of a few, each the shortest of some runs: other work on
/// the machine never makes one shorter, and rarely interrupts a small batch.
fn best(questions: u64, ask: impl Fn(u64)) -> Duration {
    const FEW: u64 = 500;
    let timed = |from: u64| {
        let start = Instant::now();
        (from..from + FEW).for_each(&ask);
        start.elapsed()
    };
    let shortest = |from: u64| (0..9).map(|_| timed(from)).min().unwrap();
    (0..questions / FEW).map(|i| shortest(i * FEW)).sum()
}

/// Calls `ask` for as many times as there are versions, for a number of versions and eight times
/// that.
fn grows_as_the_number_of_questions<M>(make: impl Fn(u64) -> M, ask: impl Fn(&M, u64)) {
    let time = |count| {
        let map = make(count);
        best(count, |i| ask(&map, i.wrapping_mul(7919) % count * 10 + 7))
    };
    let (few, many) = (time(2_000), time(16_000));
    // Three times the expected time allows for caches and other work on the machine; a walk over
    // all versions takes sixty-four times as long.
    assert!(many < few * 24, "{few:?}, then {many:?}");
}

fn live(count: u64) -> chronosym_timeline::Snapshot {
    let mut map = LiveMap::new();
    for occupant in versions(count) {
        map.insert(occupant);
    }
    map.snapshot()
}

#[test]
fn live_lookups() {
    grows_as_the_number_of_questions(live, |map, time| {
        black_box(map.find(0x1080, time));
        black_box(map.find(0x1080, time - 5));
    });
}

#[test]
fn live_neighbours() {
    grows_as_the_number_of_questions(live, |map, time| {
        black_box(map.neighbours(0x1080, time));
    });
}

#[test]
fn frozen_neighbours() {
    let freeze = |count| VersionedMap::new(&versions(count).collect::<Vec<_>>());
    grows_as_the_number_of_questions(freeze, |map, time| {
        black_box(map.neighbours(0x1080, time));
    });
}
