//! A naive model of the map, and random histories for it.
#![allow(dead_code)]

mod judge;

use chronosym_timeline::{AddrRange, End, Occupant, Start};
pub(crate) use judge::*;
use proptest::prelude::*;

/// A base for ranges: both ends of the address space, addresses far apart, and two that are nearly
/// adjacent.
fn base() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(0x7f00_0000_0000_u64),
        1 => Just(0),
        1 => Just(u64::MAX - 300),
        1 => Just(0x7f00_0001_0000),
        1 => Just(0x7f00_0000_0000 + (1 << 32) - 150),
        1 => Just(0xffff_8000_0000_0000),
    ]
}

pub(crate) fn range() -> impl Strategy<Value = AddrRange> {
    let size =
        prop_oneof![6 => 1_u64..40, 3 => 1_u64..300, 1 => Just(1_u64 << 33), 1 => any::<u64>()];
    (base(), 0_u64..300, size)
        .prop_map(|(base, offset, size)| {
            let start = base.saturating_add(offset);
            AddrRange::new(start, start.saturating_add(size.saturating_sub(1))).unwrap()
        })
        .boxed()
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0_u64..40, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)]
}

pub(crate) fn start() -> impl Strategy<Value = Start> {
    prop_oneof![6 => time().prop_map(Start::At), 4 => time().prop_map(Start::Before), 1 => Just(Start::Unbounded)]
}

pub(crate) fn end() -> impl Strategy<Value = End> {
    prop_oneof![3 => time().prop_map(End::At), 2 => time().prop_map(End::After), 2 => Just(End::Open)]
}

/// Any occupant, senseless ones (that end before they start) too.
pub(crate) fn occupant() -> impl Strategy<Value = Occupant> {
    let not_before = prop_oneof![3 => Just(0_u64), 1 => time()];
    let not_after = prop_oneof![3 => Just(u64::MAX), 1 => time()];
    (range(), start(), end(), not_before, not_after).prop_map(
        |(range, start, end, not_before, not_after)| Occupant {
            range,
            start,
            end,
            not_before,
            not_after,
        },
    )
}

/// A history: up to `most` occupants, many of them at an address that was used before.
pub(crate) fn history(most: usize) -> impl Strategy<Value = Vec<Occupant>> {
    let reuse = prop::option::weighted(0.4, any::<prop::sample::Index>());
    prop::collection::vec((occupant(), reuse), 0..most).prop_map(|drawn| {
        let mut occupants: Vec<Occupant> = Vec::new();
        for (mut occupant, reuse) in drawn {
            if let Some(index) = reuse.filter(|_| !occupants.is_empty()) {
                occupant.range = index.get(&occupants).range;
            }
            occupants.push(occupant);
        }
        occupants
    })
}

/// Adjacent ranges, each used up to 150 times, some repeatedly within a very short time.
pub(crate) fn eras() -> impl Strategy<Value = Vec<Occupant>> {
    let gap = prop_oneof![Just(0_u64), 1_u64..40, Just(40_000), Just(70_000)];
    let size = prop_oneof![1_u64..40, Just(30_000), Just(65_536), Just(70_000)];
    let lifetimes = prop::collection::vec((0_u64..3, 0_u64..4), 0..150);
    let places = prop::collection::vec((gap, size, lifetimes), 1..7);
    let unit = prop_oneof![Just(1_u64), Just(1000), Just(1 << 40)];
    let wide = prop::option::of((0_u64..200, 0_u64..200));
    (base(), places, unit, any::<bool>(), wide).prop_map(|(base, places, unit, far, wide)| {
        let mut occupants = Vec::new();
        let mut next = base;
        for (gap, size, lifetimes) in places {
            let start = next.saturating_add(gap);
            let Some(range) = AddrRange::sized(start, size) else {
                break;
            };
            let mut time = 5;
            for (pause, length) in lifetimes {
                let [start, end] = [time + pause, time + pause + length].map(|time| time * unit);
                occupants.push(Occupant::new(range, Start::At(start), End::At(end)));
                time += pause + length;
            }
            next = range.last().saturating_add(1);
        }
        // The farther apart times are, the longer is a tick.
        if far && let Some(first) = occupants.first_mut() {
            first.not_after = u64::MAX - 1;
        }
        if let Some((start, length)) = wide
            && let Some(range) = AddrRange::new(base, next.saturating_add(20))
        {
            let [start, end] = [start, start + length].map(|time| time * unit);
            occupants.push(Occupant::new(range, Start::At(start), End::At(end)));
        }
        occupants
    })
}

/// A heap of code: bodies of all sizes in succession over freed memory, so that their ranges
/// overlap partly. Some overlap hundreds of others.
pub(crate) fn heap() -> impl Strategy<Value = Vec<Occupant>> {
    let start = prop_oneof![4 => 0_u64..250, 1 => 0_u64..5000];
    let size = prop_oneof![6 => 1_u64..12, 3 => 1_u64..60, 1 => 1_u64..250];
    let body = (start, size, 0_u64..4, 0_u64..60);
    let unit = prop_oneof![Just(1_u64), Just(1 << 30)];
    let wide = prop::option::of(2_usize..8);
    let bodies = prop::collection::vec(body, 1..400);
    (base(), bodies, unit, wide).prop_map(|(base, bodies, unit, wide)| {
        let mut occupants = Vec::new();
        let mut time = 0;
        for (i, (start, size, pause, length)) in bodies.into_iter().enumerate() {
            time += pause;
            let is_wide = wide.is_some_and(|each| i % each == 0);
            let size = if is_wide { size * 500 } else { size };
            let start = base.saturating_add(start * 16);
            let Some(range) = AddrRange::new(start, start.saturating_add(size * 16 - 3)) else {
                continue;
            };
            let end = if length > 50 {
                End::Open
            } else {
                End::At((time + length) * unit)
            };
            occupants.push(Occupant::new(range, Start::At(time * unit), end));
        }
        occupants
    })
}
