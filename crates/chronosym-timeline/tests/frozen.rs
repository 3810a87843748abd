//! The frozen maps against the model, and each rule by itself.

mod model;

use chronosym_timeline::{
    AddrRange, End, Id, Lifetime, Neighbours, Occupant, SegmentMap, Start, VersionedMap,
};
use model::Model;
use proptest::prelude::*;

/// A history, in the model and in the maps.
struct Told<'a> {
    occupants: &'a [Occupant],
    model: Model,
    map: VersionedMap,
    segments: SegmentMap,
}

impl<'a> Told<'a> {
    fn new(occupants: &'a [Occupant]) -> Self {
        let (model, map) = (Model::new(occupants), VersionedMap::new(occupants));
        let segments = SegmentMap::new(occupants);
        assert_eq!([map.len(), segments.len()], [occupants.len(); 2]);
        for (id, rectangle) in map.ids().zip(&model.rectangles) {
            assert_eq!(
                [map.lifetime(id), segments.lifetime(id)],
                [rectangle.lifetime; 2],
                "{id:?} of {occupants:#?}"
            );
        }
        Self {
            occupants,
            model,
            map,
            segments,
        }
    }

    fn agrees_at(&self, addr: u64, times: &[u64]) {
        let Self { map, segments, .. } = self;
        self.answers_agree(addr, times, |time| {
            (map.lookup(addr, time), map.neighbours(addr, time))
        });
        self.answers_agree(addr, times, |time| {
            (segments.lookup(addr, time), segments.neighbours(addr, time))
        });
        self.occupants_agree(addr, map.occupants(addr).collect());
        self.occupants_agree(addr, segments.occupants(addr).collect());
    }

    fn answers_agree(
        &self,
        addr: u64,
        times: &[u64],
        answer: impl Fn(u64) -> (Option<Id>, Neighbours),
    ) {
        let (occupants, expected) = (self.occupants, self.model.occupants(addr));
        for &time in times {
            let (found, near) = answer(time);
            assert_eq!(
                found,
                self.model.lookup(addr, time),
                "{addr:#x} at {time} of {occupants:#?}"
            );
            assert_eq!(
                model::bounds(&near),
                model::nearest(&expected, time),
                "next to {time} at {addr:#x} of {occupants:#?}"
            );
            for (id, lifetime) in near.before.into_iter().chain(near.after) {
                assert!(expected.contains(&(id, lifetime)));
            }
        }
    }

    fn occupants_agree(&self, addr: u64, mut answered: Vec<(Id, Lifetime)>) {
        let (occupants, mut expected) = (self.occupants, self.model.occupants(addr));
        assert!(
            answered.is_sorted_by_key(|(_, lifetime)| (lifetime.from, lifetime.to)),
            "{addr:#x} of {occupants:#?}"
        );
        // Lives of no length at one instant have no order among themselves.
        expected.sort_by_key(|(id, lifetime)| (lifetime.from, lifetime.to, *id));
        answered.sort_by_key(|(id, lifetime)| (lifetime.from, lifetime.to, *id));
        assert_eq!(answered, expected, "{addr:#x} of {occupants:#?}");
    }
}

fn agree(occupants: &[Occupant]) {
    let told = Told::new(occupants);
    let times = told.model.times();
    for addr in told.model.addresses() {
        told.agrees_at(addr, &times);
    }
}

/// As `agree`, but only at the corners of each and in its middle.
fn agree_at_corners(occupants: &[Occupant]) {
    let told = Told::new(occupants);
    for rectangle in &told.model.rectangles {
        let (range, lifetime) = (rectangle.occupant.range, rectangle.lifetime);
        let (start, last) = (range.start(), range.last());
        let before = |value: u64| value.saturating_sub(1);
        let times = [
            before(lifetime.from),
            lifetime.from,
            before(lifetime.to),
            lifetime.to,
        ];
        for addr in [
            before(start),
            start,
            start + (last - start) / 2,
            last,
            last.saturating_add(1),
        ] {
            told.agrees_at(addr, &times);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn few_occupants_answer_like_the_model(occupants in model::history(8)) {
        agree(&occupants);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn many_occupants_answer_like_the_model(occupants in model::history(70)) {
        agree(&occupants);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn addresses_used_again_and_again_answer_like_the_model(occupants in model::eras()) {
        agree(&occupants);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn bodies_of_other_sizes_over_freed_ones_answer_like_the_model(occupants in model::heap()) {
        agree_at_corners(&occupants);
    }
}

fn sized(start: u64, size: u64) -> AddrRange {
    AddrRange::sized(start, size).unwrap()
}

fn lifetimes(occupants: &[Occupant]) -> Vec<(u64, u64)> {
    let map = VersionedMap::new(occupants);
    map.ids()
        .map(|id| map.lifetime(id))
        .map(|lifetime| (lifetime.from, lifetime.to))
        .collect()
}

#[test]
fn a_lifetime_is_half_open_in_addresses_and_time() {
    let map = VersionedMap::new(&[Occupant::new(sized(0x1000, 0x10), Start::At(5), End::At(9))]);
    assert!(!map.is_empty());
    let id = Id::from_index(0);
    for (addr, time, expected) in [
        (0x1000, 5, id),
        (0x100f, 8, id),
        (0xfff, 5, None),
        (0x1010, 5, None),
        (0x1000, 4, None),
        (0x1000, 9, None),
    ] {
        assert_eq!(map.lookup(addr, time), expected, "{addr:#x} at {time}");
    }
    assert_eq!(
        map.lifetime(id.unwrap()),
        Lifetime {
            from: 5,
            to: 9,
            from_known: true,
            to_known: true
        }
    );
}

#[test]
fn a_load_ends_all_code_that_it_overlaps() {
    let older = Occupant::new(sized(0x1000, 0x100), Start::At(1), End::At(50));
    let newer = Occupant::new(sized(0x10ff, 0x100), Start::At(10), End::Open);
    let map = VersionedMap::new(&[older, newer]);
    assert_eq!(map.lookup(0x1000, 9), Id::from_index(0));
    assert_eq!(map.lookup(0x1000, 10), None);
}

#[test]
fn an_unknown_end_reaches_forward_before_an_unknown_begin_reaches_back() {
    let range = sized(0x1000, 0x100);
    let loaded = Occupant::new(range, Start::At(10), End::Open);
    let unloaded = Occupant::new(range, Start::At(10), End::At(20));
    let listed = Occupant::new(range, Start::Before(30), End::After(30));
    assert_eq!(lifetimes(&[loaded, listed]), [(10, 30), (30, u64::MAX)]);
    assert_eq!(lifetimes(&[unloaded, listed]), [(10, 20), (20, u64::MAX)]);
    assert_eq!(lifetimes(&[listed]), [(0, u64::MAX)]);
}

#[test]
fn a_container_bounds_unknown_times() {
    let mut listed = Occupant::new(sized(0x1000, 0x100), Start::Before(30), End::After(30));
    (listed.not_before, listed.not_after) = (7, 40);
    assert_eq!(lifetimes(&[listed]), [(7, 40)]);
}

#[test]
fn of_two_at_one_instant_the_later_inserted_wins() {
    let range = sized(0x1000, 0x100);
    let occupant = Occupant::new(range, Start::At(10), End::Open);
    let map = VersionedMap::new(&[occupant, occupant]);
    assert_eq!(map.lookup(0x1000, 10), Id::from_index(1));
    assert_eq!(
        map.occupants(0x1000)
            .map(|(id, _)| id.index())
            .collect::<Vec<_>>(),
        [0, 1]
    );
}

#[test]
fn ranges_reach_the_top_of_the_address_space() {
    assert_eq!(AddrRange::sized(u64::MAX, 1).unwrap().last(), u64::MAX);
    assert_eq!(AddrRange::sized(u64::MAX, 2), None);
    assert_eq!(AddrRange::sized(0, 0), None);
    assert_eq!(AddrRange::new(0, u64::MAX).unwrap().size(), None);
    assert_eq!(sized(5, u64::MAX - 5).size(), Some(u64::MAX - 5));
    let all = Occupant::new(
        AddrRange::new(0, u64::MAX).unwrap(),
        Start::Unbounded,
        End::Open,
    );
    let top = Occupant::new(
        AddrRange::sized(u64::MAX, 1).unwrap(),
        Start::At(5),
        End::At(6),
    );
    let map = VersionedMap::new(&[all, top]);
    assert_eq!(map.lookup(0, 4), Id::from_index(0));
    assert_eq!(map.lookup(u64::MAX, 4), Id::from_index(0));
    assert_eq!(map.lookup(u64::MAX, 5), Id::from_index(1));
    assert_eq!(map.lookup(u64::MAX, 6), None);
    assert_eq!(map.lookup(0, 5), None);
}

#[test]
fn times_before_all_evidence_are_in_order() {
    // Ones so wide that tiles do not have them, and a time between 0 and the first evidence.
    let wide = AddrRange::new(0x1002, 0x2000).unwrap();
    let unknown = |end| Occupant::new(wide, Start::Unbounded, end);
    let mut occupants = vec![unknown(End::At(2)), unknown(End::After(2))];
    for addr in (0x1003..).step_by(2).take(600) {
        let small = AddrRange::new(addr, addr).unwrap();
        occupants.push(Occupant::new(small, Start::At(2), End::At(2)));
    }
    agree(&occupants);
    assert_eq!(
        VersionedMap::new(&occupants).lookup(0x1002, 1),
        Id::from_index(1)
    );
}

#[test]
fn wide_lifetimes_of_one_tick_are_distinguished() {
    // The last one lives so long that all others start and end in one tick.
    let wide = |from, to| Occupant::new(sized(0x1000, 0x1000), Start::At(from), End::At(to));
    let mut occupants = vec![
        wide(100, 105),
        wide(105, 108),
        wide(108, 109),
        wide(110, 1 << 40),
    ];
    for addr in (0x1003..).step_by(2).take(600) {
        occupants.push(Occupant::new(sized(addr, 1), Start::At(2), End::At(2)));
    }
    agree(&occupants);
}

#[test]
fn an_empty_map_answers_nothing() {
    let (map, segments) = (VersionedMap::new(&[]), SegmentMap::new(&[]));
    assert!(map.is_empty() && segments.is_empty());
    assert_eq!([map.lookup(0, 0), segments.lookup(0, 0)], [None; 2]);
    assert_eq!(map.occupants(u64::MAX).count(), 0);
    assert_eq!(segments.occupants(u64::MAX).count(), 0);
}

#[test]
fn any_number_of_wide_gaps_splits() {
    for count in 1..40 {
        let far_apart: Vec<Occupant> = (1..=count)
            .map(|i| Occupant::new(sized(i << 33, 64), Start::At(0), End::Open))
            .collect();
        agree(&far_apart);
        let map = VersionedMap::new(&far_apart);
        let all = (1..=count).filter_map(|i| map.lookup((i << 33) + 63, 1));
        assert_eq!(all.count() as u64, count);
    }
}

#[test]
fn dense_ranges_between_wide_gaps_are_distinguished() {
    // Many start within a few bytes, then none for a long distance: a table for the average
    // distance cannot distinguish them.
    let mut ranges = Vec::new();
    for crowd in 0..40_u64 {
        let mut start = 0x7f00_0000_0003 + crowd * 1000;
        for size in [1, 3, 2, 7, 5, 1, 1, 40] {
            ranges.push(AddrRange::sized(start, size).unwrap());
            start += size + size % 2;
        }
    }
    let occupants = ranges
        .iter()
        .map(|&range| Occupant::new(range, Start::At(1), End::Open));
    let map = VersionedMap::new(&occupants.collect::<Vec<_>>());
    for addr in 0x7f00_0000_0000..0x7f00_0000_0000 + 41_000 {
        let expected = ranges.iter().position(|r| r.contains(addr));
        assert_eq!(
            map.lookup(addr, 5),
            expected.and_then(Id::from_index),
            "{addr:#x}"
        );
    }
}

#[test]
fn a_crowd_is_not_where_it_is_not() {
    // Twenty lifetimes that are short compared with the end of the container.
    let range = sized(0x7f00_0000_fff0, 8);
    let mut occupants: Vec<_> = (1..=20)
        .map(|i| Occupant {
            not_after: u64::MAX - 1,
            ..Occupant::new(range, Start::At(i * 10), End::At(i * 10 + 5))
        })
        .collect();
    occupants.push(Occupant::new(
        sized(0x7f00_0001_0400, 8),
        Start::At(10),
        End::Open,
    ));
    let map = VersionedMap::new(&occupants);
    for time in 0..220 {
        let alive = (10..210).contains(&time) && time % 10 < 5;
        let expected = alive.then(|| Id::from_index(time as usize / 10 - 1).unwrap());
        assert_eq!(map.lookup(0x7f00_0000_fff7, time), expected, "at {time}");
        for addr in [0x7f00_0000_ffef, 0x7f00_0000_fff8, 0x7f00_0001_0000] {
            assert_eq!(map.lookup(addr, time), None, "{addr:#x} at {time}");
        }
    }
    assert_eq!(map.occupants(0x7f00_0000_fff0).count(), 20);
    assert_eq!(map.occupants(0x7f00_0001_0000).count(), 0);
}

#[test]
fn nobody_is_alive_at_the_end_of_time() {
    // However far apart times are: a clock that distinguishes them must not confuse the end with
    // one of them.
    for bits in 0..64 {
        let first = Occupant::new(sized(0x1000, 0x10), Start::At(1 << bits), End::Open);
        for last in [1 << bits, u64::MAX / 2, u64::MAX - 1] {
            let second = Occupant::new(sized(0x7f00_0000_2000, 0x10), Start::At(last), End::Open);
            let map = VersionedMap::new(&[first, second]);
            for (addr, from, id) in [(0x1000, 1 << bits, 0), (0x7f00_0000_2000, last, 1)] {
                assert_eq!(map.lookup(addr, u64::MAX), None, "{bits} {last}");
                assert_eq!(map.lookup(addr, u64::MAX - 1), Id::from_index(id));
                assert_eq!(map.lookup(addr, from), Id::from_index(id));
                assert_eq!(map.lookup(addr, from - 1), None);
            }
        }
    }
}

/// Occupants of one tick need not be in the order of their lifetimes if tiles of several addresses
/// are split.
#[test]
fn the_nearest_is_found_across_tiles_that_start_in_one_tick() {
    const BASE: u64 = 0x7f00_0000_0000;
    let (whole, next) = (sized(BASE, 1 << 33), sized(BASE + 1, 1 << 33));
    let (at, no) = (Start::At, End::At(0));
    agree(&[
        Occupant::new(whole, at(0), no),
        Occupant::new(next, at(38), no),
        Occupant::new(whole, at(0), no),
        Occupant::new(whole, at(0), no),
        Occupant::new(sized(BASE + 183, 1), at(u64::MAX), no),
        Occupant::new(sized(BASE, 2), at(0), no),
        Occupant::new(whole, at(38), End::Open),
    ]);
}
