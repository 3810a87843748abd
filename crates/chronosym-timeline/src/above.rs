//! Occupants of many tiles, in a tree above them.

use std::ops::Range;

use crate::clock::Clock;
use crate::spans::Spans;

/// A tree over the tiles: a node of level l covers 2^l of them. An occupant of any number of tiles is in few nodes.
#[derive(Default)]
pub(crate) struct Above {
    /// Level by level: where each node's ids begin, and one more.
    levels: Vec<Vec<u32>>,
    /// In time order within each node.
    ids: Vec<u32>,
    /// The ticks in which they end.
    ends: Vec<u16>,
}

impl Above {
    /// `occupants`: their first and last tiles and their ids, in time order of those that share a tile.
    pub(crate) fn new(
        occupants: &[(usize, usize, u32)],
        tiles: usize,
        lives: &[(u64, u64)],
        clock: Clock,
    ) -> Self {
        if occupants.is_empty() {
            return Self::default();
        }
        let mut counts: Vec<Vec<u32>> = Vec::new();
        for &(first, last, _) in occupants {
            nodes(first, last, |level, node| {
                while counts.len() <= level {
                    counts.push(vec![0; (tiles >> counts.len()) + 2]);
                }
                counts[level][node] += 1;
            });
        }
        let mut next = 0_u32;
        for count in counts.iter_mut().flatten() {
            let begin = next;
            next = next.checked_add(*count).expect("fewer than 2^32 places");
            *count = begin;
        }
        let levels = counts.clone();
        let mut ids = vec![0; next as usize];
        for &(first, last, id) in occupants {
            nodes(first, last, |level, node| {
                let next = &mut counts[level][node];
                ids[*next as usize] = id;
                *next += 1;
            });
        }
        let ends = ids.iter().map(|&id| clock.end(lives[id as usize - 1].1));
        Self {
            levels,
            ends: ends.collect(),
            ids,
        }
    }

    /// Who was alive in a tile at a time, which is in this tick.
    pub(crate) fn lookup(&self, tile: usize, spans: &Spans, time: u64, tick: u16) -> u32 {
        let alive = |range: Range<usize>| {
            let (ends, ids) = (&self.ends[range.clone()], &self.ids[range]);
            let first = ends.partition_point(|&end| end < tick);
            // Those who end in the tick, and one more.
            let after = first + ends[first..].partition_point(|&end| end == tick) + 1;
            spans.alive(&ids[first..after.min(ids.len())], time)
        };
        let mut found = self.over(tile).map(alive);
        found.find(|&id| id != 0).unwrap_or(0)
    }

    /// The ids of all that were in a tile.
    pub(crate) fn ids(&self, tile: usize) -> impl Iterator<Item = u32> + '_ {
        self.over(tile).flat_map(|range| &self.ids[range]).copied()
    }

    /// Where the lists of the nodes over a tile are.
    fn over(&self, tile: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        self.levels.iter().enumerate().map(move |(level, begins)| {
            let node = tile >> level;
            begins[node] as usize..begins[node + 1] as usize
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| level.capacity());
        (levels.sum::<usize>() + self.ids.capacity()) * size_of::<u32>()
            + self.ends.capacity() * size_of::<u16>()
            + self.levels.capacity() * size_of::<Vec<u32>>()
    }
}

/// Tells `each` the nodes, at most two a level, that cover the tiles `first..=last` and no others.
fn nodes(first: usize, last: usize, mut each: impl FnMut(usize, usize)) {
    let (mut begin, mut end, mut level) = (first, last + 1, 0);
    while begin < end {
        if begin & 1 != 0 {
            each(level, begin);
            begin += 1;
        }
        if end & 1 != 0 {
            end -= 1;
            each(level, end);
        }
        (begin, end, level) = (begin >> 1, end >> 1, level + 1);
    }
}
