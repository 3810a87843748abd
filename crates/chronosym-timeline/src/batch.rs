//! Many questions at once: sorted by where their answers lie, so that each part of the index is read while it is in the cache.

use std::num::NonZeroUsize;
use std::thread;

use crate::map::VersionedMap;
use crate::occupant::Id;
use crate::regions::Place;

/// A question: who was at `addr` at `time`?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// The address.
    pub addr: u64,
    /// The time, in the unit of the map's lives.
    pub time: u64,
}

/// As many queries are worth a thread of their own.
const THREAD: usize = 1 << 17;
/// As many are sorted at a time: 24 bytes each are the price.
const BLOCK: usize = 1 << 22;
/// Fewer are looked up as they come.
const SORTED: usize = 1 << 15;
/// An index of this many bytes stays in the cache as it is.
const CACHED: usize = 1 << 20;
/// Parts of the index by which queries are sorted: as many as a pass can write to at once without losing its way in the caches.
const PARTS: usize = 1 << 11;

impl VersionedMap {
    /// Answers each query in its place: `answers[i]` is who was at `queries[i].addr` at `queries[i].time`.
    ///
    /// Large batches use all cores, and up to 100 MB a core besides the slices.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn resolve_batch(&self, queries: &[Query], answers: &mut [Option<Id>]) {
        assert_eq!(queries.len(), answers.len(), "one answer a query");
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = cores.min(queries.len() / THREAD);
        if threads < 2 {
            return self.resolve_chunk(queries, answers);
        }
        let chunk = queries.len().div_ceil(threads);
        thread::scope(|scope| {
            let mut chunks = queries.chunks(chunk).zip(answers.chunks_mut(chunk));
            let own = chunks.next();
            for (queries, answers) in chunks {
                scope.spawn(|| self.resolve_chunk(queries, answers));
            }
            if let Some((queries, answers)) = own {
                self.resolve_chunk(queries, answers);
            }
        });
    }

    fn resolve_chunk(&self, queries: &[Query], answers: &mut [Option<Id>]) {
        if queries.len() < SORTED || self.memory_bytes() < CACHED {
            for (query, answer) in queries.iter().zip(answers) {
                *answer = self.lookup(query.addr, query.time);
            }
            return;
        }
        let mut sorter = Sorter::new(self, queries.len().min(BLOCK));
        for (queries, answers) in queries.chunks(BLOCK).zip(answers.chunks_mut(BLOCK)) {
            sorter.resolve(queries, answers);
        }
    }
}

/// A query and its position in the block.
#[derive(Clone, Copy, Default)]
struct Item {
    place: Place,
    time: u64,
    pos: u32,
}

/// Sorts blocks of queries by part of the index. Allocates when it is made, not when it works.
struct Sorter<'a> {
    map: &'a VersionedMap,
    /// log2 of the buckets in a part.
    shift: u32,
    /// Where the next item of each part goes.
    next: Vec<u32>,
    items: Vec<Item>,
}

impl<'a> Sorter<'a> {
    fn new(map: &'a VersionedMap, block: usize) -> Self {
        let buckets = map.regions.buckets();
        let shift = buckets.div_ceil(PARTS).next_power_of_two().trailing_zeros();
        Self {
            map,
            shift,
            next: vec![0; PARTS + 1],
            items: vec![Item::default(); block],
        }
    }

    fn resolve(&mut self, queries: &[Query], answers: &mut [Option<Id>]) {
        let regions = &self.map.regions;
        self.next.fill(0);
        for query in queries {
            if let Some(place) = regions.place(query.addr) {
                self.next[(place.bucket >> self.shift) as usize] += 1;
            }
        }
        let mut begin = 0;
        for next in &mut self.next {
            begin += std::mem::replace(next, begin);
        }
        for (query, pos) in queries.iter().zip(0..) {
            if let Some(place) = regions.place(query.addr) {
                let next = &mut self.next[(place.bucket >> self.shift) as usize];
                self.items[*next as usize] = Item {
                    place,
                    time: query.time,
                    pos,
                };
                *next += 1;
            }
        }
        answers.fill(None);
        for item in &self.items[..begin as usize] {
            answers[item.pos as usize] = self.map.lookup_place(item.place, item.time);
        }
    }
}
