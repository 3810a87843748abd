//! Occupants of many tiles, in a segment tree over the tiles.

use std::iter;
use std::ops::{Range, RangeInclusive};

use crate::clock::Clock;
use crate::lists::Lists;
use crate::packed::PackedLifetimes;

/// First and last tile or segment of an occupant, and its id.
pub(crate) type WideOccupant = (usize, usize, u32);

/// A segment tree: a node of level l covers 2^l tiles, and an occupant is in at most two nodes a
/// level.
#[derive(Default)]
pub(crate) struct WideOccupants {
    /// Index of the first node of each level.
    levels: Vec<usize>,
    /// Ids of each node in time order.
    lists: Lists,
    /// Tick in which each of `lists.ids` ends.
    ends: Vec<u16>,
}

impl WideOccupants {
    /// Builds the tree of occupants in time order.
    pub(crate) fn new(
        occupants: &[WideOccupant],
        tiles: usize,
        lifetimes: &[(u64, u64)],
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
        let end = |&id: &u32| clock.end_tick(lifetimes[id as usize - 1].1);
        Self {
            ends: lists.ids.iter().map(end).collect(),
            levels,
            lists,
        }
    }

    /// Returns the id that is alive in a tile at a time, which is in `tick`; 0 if there is none.
    pub(crate) fn lookup(
        &self,
        tile: usize,
        lifetimes: &PackedLifetimes,
        time: u64,
        tick: u16,
    ) -> u32 {
        let alive = |range: Range<usize>| {
            let (ends, ids) = (&self.ends[range.clone()], &self.lists.ids[range]);
            let first = ends.partition_point(|&end| end < tick);
            // All that end in the tick, and the next.
            let after = first + ends[first..].partition_point(|&end| end == tick) + 1;
            lifetimes.alive(&ids[first..after.min(ids.len())], time)
        };
        let mut alive = self.covering(tile..=tile).map(alive);
        alive.find(|&id| id != 0).unwrap_or(0)
    }

    /// Returns the ids of all that are in any of some tiles: one list for each node, in time order.
    pub(crate) fn lists(&self, tiles: RangeInclusive<usize>) -> impl Iterator<Item = &[u32]> {
        self.covering(tiles).map(|range| &self.lists.ids[range])
    }

    /// Returns the ranges of the lists of the nodes that cover any of some tiles.
    #[inline(always)]
    fn covering(&self, tiles: RangeInclusive<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(move |(level, first)| {
            let nodes = tiles.start() >> level..=tiles.end() >> level;
            nodes.map(move |node| self.lists.range(first + node))
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.levels.capacity() * size_of::<usize>()
            + self.lists.memory_bytes()
            + self.ends.capacity() * size_of::<u16>()
    }
}

/// Returns the nodes (level and number) that cover exactly the tiles `first..=last`.
fn nodes(first: usize, last: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let (mut start, mut end, mut level) = (first, last + 1, 0);
    iter::from_fn(move || {
        while start < end {
            if start & 1 != 0 {
                start += 1;
                return Some((level, start - 1));
            }
            if end & 1 != 0 {
                end -= 1;
                return Some((level, end));
            }
            (start, end, level) = (start >> 1, end >> 1, level + 1);
        }
        None
    })
}
