//! Occupants of many tiles, in a tree above them.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "places of lists that the builder of this map made; models compare every answer"
)]

use std::iter;
use std::ops::Range;

use crate::clock::Clock;
use crate::lists::Lists;
use crate::spans::Spans;

/// A tree over the tiles: a node of level l covers 2^l of them. An occupant of any number of tiles is in few nodes.
#[derive(Default)]
pub(crate) struct Above {
    /// The first node of each level among all.
    levels: Vec<usize>,
    /// The ids of each node, in time order.
    lists: Lists,
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
        let nodes = occupants
            .iter()
            .flat_map(|&(first, last, id)| nodes(first, last).map(move |node| (node, id)));
        let Some(highest) = nodes.clone().map(|((level, _), _)| level).max() else {
            return Self::default();
        };
        let mut count = 0;
        let mut levels = Vec::with_capacity(highest + 1);
        for level in 0..=highest {
            levels.push(count);
            count += (tiles >> level) + 1;
        }
        let entries = nodes.map(|((level, node), id)| (levels[level] + node, id));
        let lists = Lists::new(count, entries);
        let end = |&id: &u32| clock.end(lives[id as usize - 1].1);
        Self {
            ends: lists.ids.iter().map(end).collect(),
            levels,
            lists,
        }
    }

    /// Who was alive in a tile at a time, which is in this tick.
    pub(crate) fn lookup(&self, tile: usize, spans: &Spans, time: u64, tick: u16) -> u32 {
        let alive = |range: Range<usize>| {
            let (ends, ids) = (&self.ends[range.clone()], &self.lists.ids[range]);
            let first = ends.partition_point(|&end| end < tick);
            // Those who end in the tick, and one more.
            let after = first + ends[first..].partition_point(|&end| end == tick) + 1;
            spans.alive(&ids[first..after.min(ids.len())], time)
        };
        let mut found = self.over(tile).map(alive);
        found.find(|&id| id != 0).unwrap_or(0)
    }

    /// The ids of all that were in a tile: in each list those of one node, in time order.
    pub(crate) fn lists(&self, tile: usize) -> impl Iterator<Item = &[u32]> {
        self.over(tile).map(|range| &self.lists.ids[range])
    }

    /// Where the lists of the nodes over a tile are.
    fn over(&self, tile: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let levels = self.levels.iter().enumerate();
        levels.map(move |(level, first)| self.lists.range(first + (tile >> level)))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.levels.capacity() * size_of::<usize>()
            + self.lists.memory_bytes()
            + self.ends.capacity() * size_of::<u16>()
    }
}

/// The nodes (level and number), at most two a level, that cover the tiles `first..=last` and no others.
fn nodes(first: usize, last: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let (mut begin, mut end, mut level) = (first, last + 1, 0);
    iter::from_fn(move || {
        while begin < end {
            if begin & 1 != 0 {
                begin += 1;
                return Some((level, begin - 1));
            }
            if end & 1 != 0 {
                end -= 1;
                return Some((level, end));
            }
            (begin, end, level) = (begin >> 1, end >> 1, level + 1);
        }
        None
    })
}
