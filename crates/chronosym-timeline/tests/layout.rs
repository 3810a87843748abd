//! Every address leads to its body in any layout: adjacent, far apart, wider than an index covers,
//! at either end of the address space.

use chronosym_timeline::{AddrRange, End, Id, Occupant, Query, Start, VersionedMap};
use proptest::prelude::*;

/// The bodies' ranges in address order, one after the other with these gaps, and the map of them.
fn lay(base: u64, bodies: &[(u64, u64)]) -> (Vec<AddrRange>, VersionedMap) {
    let mut ranges = Vec::new();
    let mut next = base;
    for &(gap, size) in bodies {
        let Some(range) = next
            .checked_add(gap)
            .and_then(|start| AddrRange::sized(start, size))
        else {
            break;
        };
        ranges.push(range);
        match range.last().checked_add(1) {
            Some(after) => next = after,
            None => break,
        }
    }
    let mut occupied = Vec::new();
    for &range in &ranges {
        occupied.push(Occupant::new(range, Start::At(10), End::At(20)));
    }
    (ranges, VersionedMap::new(&occupied))
}

fn hold(ranges: &[AddrRange], map: &VersionedMap) {
    let mut addresses = vec![0, u64::MAX];
    for range in ranges {
        let middle = range.start() + (range.last() - range.start()) / 2;
        for addr in [range.start(), middle, range.last()] {
            // A chunk further, too, is an address that looks alike.
            for distance in [0, 1, 1 << 16, 1 << 24, 1 << 32] {
                addresses.extend([addr.saturating_sub(distance), addr.saturating_add(distance)]);
            }
        }
    }
    for addr in addresses.iter().copied() {
        let after = ranges.partition_point(|range| range.start() <= addr);
        let body = after.checked_sub(1).filter(|&i| ranges[i].contains(addr));
        let id = body.and_then(Id::from_index);
        assert_eq!(map.lookup(addr, 15), id, "{addr:#x} of {ranges:#x?}");
        assert_eq!(map.lookup(addr, 20), None, "{addr:#x} of {ranges:#x?}");
        let occupants: Vec<_> = map.occupants(addr).map(|(id, _)| id).collect();
        assert_eq!(occupants, Vec::from_iter(id), "{addr:#x} of {ranges:#x?}");
    }
    let queries: Vec<_> = addresses
        .iter()
        .map(|&addr| Query { addr, time: 15 })
        .collect();
    let mut answers = vec![None; queries.len()];
    map.resolve_batch(&queries, &mut answers);
    for (query, answer) in queries.iter().zip(answers) {
        assert_eq!(answer, map.lookup(query.addr, query.time), "{query:x?}");
    }
}

fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => Just(0_u64),
        8 => 1_u64..40,
        2 => 1_u64..100_000,
        1 => (0_u32..46).prop_map(|bits| 1 << bits),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 1_u64..4,
        8 => 16_u64..600,
        2 => 1_u64..5_000_000,
        1 => (0_u32..46).prop_map(|bits| 1 << bits),
    ]
}

fn base() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0_u64),
        Just(0x7f3a_0000_0000),
        Just(0xffff_ffff_ff00_0000),
        Just(u64::MAX - 3000),
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_address_leads_to_its_body(
        base in base(),
        bodies in prop::collection::vec((gap(), size()), 0..120),
    ) {
        let (ranges, map) = lay(base, &bodies);
        hold(&ranges, &map);
    }
}

#[test]
fn stubs_between_large_bodies_are_found() {
    let stubs = [(0, 16), (5, 1), (3, 8)].repeat(70);
    let large = [(64, 900_000), (4096, 70_000)].repeat(20);
    let bodies = [large.clone(), stubs, large].concat();
    let (ranges, map) = lay(0x7f3a_0000_0000, &bodies);
    hold(&ranges, &map);
}

#[test]
fn more_than_32_bits_of_code_without_a_gap_are_found() {
    let bodies = vec![(0, 1_u64 << 30); 9];
    let (ranges, map) = lay(0x7f3a_1234_5000, &bodies);
    hold(&ranges, &map);
    let (ranges, map) = lay(0x10, &[(0, 1 << 40), (0, 5), (0, 1 << 40), (7, 5)]);
    hold(&ranges, &map);
}

#[test]
fn many_stubs_in_a_wide_space_hide_no_later_code() {
    // The others are so far apart that all stubs are in one granule.
    let far = [(1 << 25, 16)].repeat(120);
    for behind in [vec![], [(70_000, 16)].repeat(40)] {
        let bodies = [far.clone(), [(0, 1)].repeat(3000), behind, far.clone()].concat();
        let (ranges, map) = lay(0x7f3a_0000_0000, &bodies);
        hold(&ranges, &map);
    }
}

#[test]
fn as_many_tiles_as_a_byte_counts_and_a_few_more_are_found() {
    // Five per tile; the following ones start at granules.
    let far = [(1 << 21, 16)].repeat(50);
    for tiles in 252..260 {
        let (stubs, behind) = ([(0, 1)].repeat(5 * tiles), [(3000, 16)].repeat(4));
        let bodies = [far.clone(), stubs, behind, far.clone()].concat();
        let (ranges, map) = lay(0x7f3a_0000_0000, &bodies);
        for (i, range) in ranges.iter().enumerate() {
            assert_eq!(map.lookup(range.start(), 15), Id::from_index(i), "{tiles}");
        }
    }
}

#[test]
fn more_bodies_than_16_bits_count_are_found() {
    let (ranges, map) = lay(0x7f3a_0000_0000, &[(0, 16)].repeat(70_000));
    for (i, range) in ranges.iter().enumerate() {
        assert_eq!(map.lookup(range.last(), 15), Id::from_index(i));
    }
}

#[test]
fn more_tiles_than_a_byte_counts_are_found() {
    // The others are so far apart that hundreds of tiles start in few granules; in the last case
    // few in each after these.
    let far = [(1 << 20, 16)].repeat(1200);
    let cases = [
        [(0, 16)].repeat(6000),
        [(13, 3)].repeat(6000),
        [(48, 16)].repeat(6000),
        [[(0, 1)].repeat(1200), [(100, 3000)].repeat(200)].concat(),
    ];
    for near in cases {
        let bodies = [far.clone(), near, far.clone()].concat();
        for base in [0x7f3a_0000_0000, 0x7f3a_0000_0001] {
            let (ranges, map) = lay(base, &bodies);
            hold(&ranges, &map);
        }
    }
}
