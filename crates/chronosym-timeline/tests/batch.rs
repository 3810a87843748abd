//! Batches answer as single lookups do, whatever way they take.

use chronosym_timeline::{AddrRange, End, Id, Occupant, Query, Start, VersionedMap};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }
}

const BASES: [u64; 3] = [0x7f00_0000_0000, 0x7f55_0000_0000, 0xffff_8000_0000_0000];

fn map(random: &mut Random, bodies: u64) -> VersionedMap {
    let mut occupied = Vec::new();
    for i in 0..bodies {
        let start = BASES[random.below(3) as usize] + random.below(bodies * 100);
        let range = AddrRange::sized(start, 1 + random.below(400)).unwrap();
        let end = if random.below(2) == 0 {
            End::At(i + random.below(bodies))
        } else {
            End::Open
        };
        occupied.push(Occupant::new(range, Start::At(i), end));
    }
    VersionedMap::new(&occupied)
}

#[test]
fn a_batch_resolves_like_single_lookups() {
    let mut random = Random(7);
    for (bodies, queries) in [
        (0, 10),
        (100, 1000),
        (40_000, 20_000),
        (40_000, 50_000),
        (40_000, 300_001),
    ] {
        let map = map(&mut random, bodies);
        let queries: Vec<Query> = (0..queries)
            .map(|_| Query {
                addr: BASES[random.below(3) as usize]
                    .wrapping_add(random.below(bodies * 102 + 1))
                    .wrapping_sub(50),
                time: random.below(2 * bodies + 1),
            })
            .collect();
        // Old values must be overwritten.
        let mut answers = vec![Id::from_index(5); queries.len()];
        map.resolve_batch(&queries, &mut answers);
        for (query, answer) in queries.iter().zip(&answers) {
            assert_eq!(
                *answer,
                map.lookup(query.addr, query.time),
                "{query:?} of {bodies}"
            );
        }
        let hits = answers.iter().flatten().count();
        assert!(
            bodies == 0 || hits * 10 > queries.len(),
            "{hits} hits test little"
        );
    }
}

#[test]
#[should_panic(expected = "one answer for each query")]
fn a_batch_needs_an_answer_a_query() {
    let map = VersionedMap::new(&[]);
    map.resolve_batch(&[Query { addr: 0, time: 0 }], &mut []);
}
