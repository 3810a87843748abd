//! Lookups allocate nothing; a batch nothing but its threads.

use allocation_counter::measure;
use chronosym_timeline::{
    AddrRange, End, LiveMap, Occupant, Query, SegmentMap, Start, VersionedMap,
};

fn occupants(count: u64, versions: u64) -> impl Iterator<Item = Occupant> {
    (0..count).map(move |i| {
        let place = i % (count / versions);
        let range =
            AddrRange::sized(0x7f00_0000_0000 + place * 0x140, 0x100 + place % 0x41).unwrap();
        let time = i / (count / versions) * 1000;
        Occupant::new(range, Start::At(time), End::At(time + 900))
    })
}

fn frozen(count: u64, versions: u64) -> VersionedMap {
    VersionedMap::new(&occupants(count, versions).collect::<Vec<_>>())
}

fn queries(count: u64) -> Vec<Query> {
    (0..count)
        .map(|i| Query {
            addr: 0x7f00_0000_0000 + i.wrapping_mul(0x9e37_79b9) % 0x40_0000,
            time: i % 5000,
        })
        .collect()
}

#[test]
fn lookups_allocate_nothing() {
    let mut occupied: Vec<_> = occupants(10_000, 4).collect();
    // Wide ones are in the tree above the segments.
    occupied.push(Occupant::new(
        AddrRange::sized(0x7f00_0000_0000, 1 << 20).unwrap(),
        Start::At(4000),
        End::Open,
    ));
    let (map, segments) = (VersionedMap::new(&occupied), SegmentMap::new(&occupied));
    let mut live = LiveMap::new();
    for occupant in occupants(1000, 4) {
        live.insert(occupant);
    }
    let snapshot = live.snapshot();
    let queries = queries(20_000);
    let mut hits = [0; 3];
    let allocated = measure(|| {
        for query in &queries {
            hits[0] += usize::from(map.lookup(query.addr, query.time).is_some());
            hits[1] += usize::from(snapshot.lookup(query.addr, query.time).id.is_some());
            hits[2] += usize::from(segments.lookup(query.addr, query.time).is_some());
            segments.neighbours(query.addr, query.time);
        }
    });
    assert!(hits[0] > 1000 && hits[1] > 100, "{hits:?} test little");
    assert_eq!(hits[2], hits[0]);
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn a_batch_allocates_at_most_threads() {
    let map = frozen(50_000, 1);
    let allocations = |count| {
        let queries = queries(count);
        let mut answers = vec![None; queries.len()];
        let allocated = measure(|| map.resolve_batch(&queries, &mut answers));
        assert!(answers.iter().flatten().count() > 1000);
        allocated.count_total
    };
    assert_eq!(allocations(60_000), 0);
    // A few for each thread, independent of the number of queries.
    assert_eq!(allocations(400_000), allocations(800_000));
}

fn bytes_a_body(map: &VersionedMap) -> f64 {
    map.memory_bytes() as f64 / map.len() as f64
}

#[test]
fn a_body_costs_at_most_40_bytes() {
    for (count, versions, most) in [(100_000, 1, 40.0), (100_000, 2, 36.0), (100_000, 50, 32.0)] {
        let bytes = bytes_a_body(&frozen(count, versions));
        assert!(
            bytes <= most,
            "{bytes} bytes a body with {versions} versions"
        );
        assert!(bytes >= 16.0, "{bytes} bytes cannot hold two times");
    }
}

#[test]
fn a_map_uses_the_memory_that_it_reports() {
    let range = AddrRange::sized(0x7f00_0000_0000, 1 << 20).unwrap();
    let place = AddrRange::sized(0x10, 1).unwrap();
    // With all times near each other, and with one that is far.
    for end in [1 << 20, u64::MAX - 1] {
        let mut occupied: Vec<_> = occupants(10_000, 2).collect();
        // Above the tiles, and more than a tile has in a moment.
        occupied.push(Occupant::new(range, Start::At(5_000), End::At(end)));
        let crowd = (0..100).map(|time| Occupant::new(place, Start::At(time), End::Open));
        occupied.extend(crowd);
        let mut map = None;
        let allocated = measure(|| map = Some(VersionedMap::new(&occupied)));
        assert_eq!(map.unwrap().memory_bytes() as i64, allocated.bytes_current);
    }
}

#[test]
fn a_live_map_uses_about_the_memory_that_it_reports() {
    for publishes in [false, true] {
        let mut map = LiveMap::new();
        let allocated = measure(|| {
            for occupant in occupants(20_000, 4) {
                map.insert(occupant);
            }
            if publishes {
                map.snapshot();
            }
        });
        let share = map.memory_bytes() as f64 / allocated.bytes_current as f64;
        assert!((0.8..1.2).contains(&share), "{share}");
    }
}

/// Code is loaded over code that was freed, in other sizes: ranges overlap in part, most of them
/// with several others.
#[test]
fn a_body_over_parts_of_others_costs_at_most_48_bytes() {
    let mut random = 42_u64;
    let mut below = |bound: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % bound
    };
    let mut occupied = Vec::new();
    for i in 0..50_000 {
        let start = 0x7f00_0000_0000 + below(4000) * 16;
        let range = AddrRange::sized(start, 16 + below(60) * 16).unwrap();
        occupied.push(Occupant::new(
            range,
            Start::At(i * 10),
            End::At(i * 10 + below(3000)),
        ));
    }
    let bytes = bytes_a_body(&VersionedMap::new(&occupied));
    assert!(bytes <= 48.0, "{bytes:.1} bytes a body");
}
