//! Batches of lookups, whose cache misses overlap.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::directory::Hint;
use crate::map::VersionedMap;
use crate::occupant::Id;

/// A lookup of the occupant of an address at a time.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// The address.
    pub addr: u64,
    /// The time, in the unit of the map's lifetimes.
    pub time: u64,
}

/// Minimal number of queries for each thread.
const THREAD: usize = 1 << 15;
/// Queries that take each step together: the loads of a step are independent of each other.
const BLOCK: usize = 64;

impl VersionedMap {
    /// Looks up each query: `answers[i]` is the result of `queries[i]`.
    ///
    /// Faster than single [`lookup`](Self::lookup)s, the more so the larger the map; large batches
    /// use all cores. Does not allocate below 65,536 queries.
    ///
    /// # Panics
    /// If the slices differ in length.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_timeline::{AddrRange, End, Occupant, Query, Start, VersionedMap};
    ///
    /// let range = AddrRange::sized(0x1000, 0x100).unwrap();
    /// let map = VersionedMap::new(&[Occupant::new(range, Start::At(10), End::At(20))]);
    /// let queries = [Query { addr: 0x1080, time: 15 }, Query { addr: 0x1080, time: 20 }];
    /// let mut answers = [None; 2];
    /// map.resolve_batch(&queries, &mut answers);
    /// assert_eq!(answers.map(|id| id.map(|id| id.index())), [Some(0), None]);
    /// ```
    pub fn resolve_batch(&self, queries: &[Query], answers: &mut [Option<Id>]) {
        assert_eq!(queries.len(), answers.len(), "one answer for each query");
        let most = queries.len() / THREAD;
        if most < 2 {
            return self.resolve_chunk(queries, answers);
        }
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let chunk = queries.len().div_ceil(cores.min(most));
        let chunks = queries.chunks(chunk).zip(answers.chunks_mut(chunk));
        let others = chunks.len().saturating_sub(1);
        let chunks = Mutex::new(chunks);
        let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((queries, answers)) = next() {
                self.resolve_chunk(queries, answers);
            }
        };
        thread::scope(|scope| {
            // If a thread cannot be spawned, the others take its chunks.
            let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).is_ok();
            (0..others).all(spawn);
            work();
        });
    }

    fn resolve_chunk(&self, queries: &[Query], answers: &mut [Option<Id>]) {
        let mut hints = [Hint::Nowhere; BLOCK];
        for (queries, answers) in queries.chunks(BLOCK).zip(answers.chunks_mut(BLOCK)) {
            for (hint, query) in hints.iter_mut().zip(queries) {
                *hint = self.directory.hint(query.addr);
            }
            // Brings the tiles into the cache.
            let touched = hints
                .iter()
                .fold(0, |touched, hint| touched ^ self.touch(*hint));
            black_box(touched);
            for ((query, answer), hint) in queries.iter().zip(answers).zip(hints) {
                *answer = self.lookup_at(hint, query.addr, query.time);
            }
        }
    }
}
