//! Builds the frozen map.

use std::ops::Range;

use crate::clock::Clock;
use crate::directory::Directory;
use crate::history::History;
use crate::layout::{Cutter, Layout, Segment, WIDEST as WIDEST_TILE, tile_of};
use crate::lists::Lists;
use crate::map::VersionedMap;
use crate::occupant::Occupant;
use crate::packed::PackedLifetimes;
use crate::parallel;
use crate::tile::{Flags, Tile};
use crate::wide::{WideOccupant, WideOccupants};

/// The address space is cut into at most this many parts, for two threads.
const PARTS: usize = 8;
/// A part has at least this many entries of segments' lists, so that it is worth a thread.
const MANY: usize = if cfg!(test) { 1 } else { 1 << 14 };

impl VersionedMap {
    /// Determines each occupant's lifetime and builds the index in O(n log n). An occupant's id is
    /// its position.
    ///
    /// Occupants may have any order; of two with evidence of the same instant, the later one in the
    /// slice counts as newer.
    ///
    /// # Panics
    /// With more than 2^32 − 2 occupants (260 GB of them).
    pub fn new(occupants: &[Occupant]) -> Self {
        Self::index(History::of(occupants))
    }

    /// Builds the index of a history.
    pub(crate) fn index(history: History) -> Self {
        let History {
            bounds,
            lists,
            wide,
            lifetimes,
            stated,
        } = history;
        let cuts = cuts(&wide, bounds.len());
        let segment = |i: usize| Segment {
            start: bounds[i].0,
            last: bounds[i].1,
            ids: lists.of(i),
            is_cut: cuts[i],
            is_cut_after: cuts[i + 1],
        };
        let mut directory = Directory::new((0..bounds.len()).map(segment));
        let clock = Clock::new(&lifetimes);
        let cut = |part: &Range<usize>| {
            let mut cutter = Cutter::new(&lifetimes, clock);
            for i in part.clone() {
                let next = bounds.get(i + 1).map(|bounds| bounds.0);
                cutter.push(segment(i), next, |addr| directory.granule(addr));
            }
            cutter.finish()
        };
        // Most maps are small: there is one for each process, and asking for processors takes longer.
        let entries = lists.ids.len();
        let least = match entries >= 2 * MANY && parallel::is_available() {
            true => MANY.max(entries / PARTS),
            false => usize::MAX,
        };
        let parts = parts(&bounds, &lists, least);
        let layouts = parallel::each(&parts, cut).into_iter();
        let layout = layouts.reduce(Layout::before).expect("one part at least");
        let Layout {
            starts,
            mut tiles,
            branches,
            overflow,
        } = layout;
        directory.fill(&starts, |tile, reach| match starts.get(tile + 1) {
            Some(&next) if reach.max(next - starts[tile]) <= Tile::NEAR => {
                tiles[tile].set_next(next);
            }
            _ => tiles[tile].set(Flags::MORE),
        });

        let wide: Vec<WideOccupant> = wide
            .iter()
            .map(|&(first, last, id)| {
                let [first, last] =
                    [bounds[first].0, bounds[last].1].map(|addr| tile_of(&starts, addr));
                (first, last, id)
            })
            .collect();
        let wide_occupants = WideOccupants::new(&wide, tiles.len(), &lifetimes, clock);
        let count = tiles.len();
        mark_wide(&wide, count, |tile| tiles[tile].set(Flags::WIDE));

        Self {
            directory,
            starts,
            tiles,
            branches,
            overflow,
            wide: wide_occupants,
            clock,
            lifetimes: PackedLifetimes::new(lifetimes, stated),
        }
    }
}

/// Returns before which segments tiles must start because a wide occupant starts or ends there; the
/// last value is for the end of the last segment.
fn cuts(wide: &[WideOccupant], segments: usize) -> Vec<bool> {
    let mut cuts = vec![false; segments + 1];
    for &(first, last, _) in wide {
        cuts[first] = true;
        cuts[last + 1] = true;
    }
    cuts
}

/// Divides segments into parts, each but the last with `least` entries or more. Their tiles do not
/// depend on each other: no tile has addresses of two.
fn parts(bounds: &[(u64, u64)], lists: &Lists, least: usize) -> Vec<Range<usize>> {
    let is_far = |i: usize| bounds[i].0 - bounds[i - 1].1 > 2 * WIDEST_TILE;
    let (mut parts, mut start) = (Vec::new(), 0);
    for i in 1..bounds.len() {
        let entries = lists.range(i).start - lists.range(start).start;
        if entries >= least && is_far(i) {
            parts.push(start..i);
            start = i;
        }
    }
    parts.push(start..bounds.len());
    parts
}

/// Calls `mark` with each tile that has wide occupants.
fn mark_wide(wide: &[WideOccupant], tiles: usize, mut mark: impl FnMut(usize)) {
    let mut changes = vec![0_i64; tiles + 1];
    for &(first, last, _) in wide {
        changes[first] += 1;
        changes[last + 1] -= 1;
    }
    let mut depth = 0;
    for (tile, change) in changes.iter().enumerate() {
        depth += change;
        if depth > 0 {
            mark(tile);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lifetimes;
    use crate::{AddrRange, End, Start};

    /// Occupants of a heap: many at each of a few addresses, more than a tile has lanes at one time.
    fn heap(base: u64) -> impl Strategy<Value = Vec<Occupant>> {
        let occupant = (0..8_u64, 1..200_u64, 0..12_u64, 0..30_u64);
        prop::collection::vec(occupant, 1..200).prop_map(move |all| {
            let all = all.into_iter().map(|(slot, size, instant, length)| {
                let time = 25 * instant;
                let range = AddrRange::sized(base + slot * 64, size).unwrap();
                let end = End::At(time + length);
                Occupant::new(range, Start::At(time), end)
            });
            all.collect()
        })
    }

    proptest! {
        #[test]
        fn tiles_of_two_threads_find_what_each_part_has(
            below in heap(0x10_0000), above in heap(0x7000_0000_0000)
        ) {
            let all = [&below[..], &above[..]].concat();
            let ranges: Vec<_> = all.iter().map(|occupant| occupant.range).collect();
            let bounds = lifetimes::segments(&ranges).bounds;
            let apart = bounds.iter().filter(|it| it.0 < 0x7000_0000_0000).count();
            let lists = Lists::new(bounds.len(), (0..bounds.len()).map(|i| (i, 1)));
            prop_assume!(parts(&bounds, &lists, 1) == [0..apart, apart..bounds.len()]);

            let map = VersionedMap::new(&all);
            let [low, high] = [&below, &above].map(|part| VersionedMap::new(part));
            for slot in 0..12 {
                for time in 0..310 {
                    let at = |base: u64| base + slot * 64 + time % 64;
                    let found = low.lookup(at(0x10_0000), time);
                    prop_assert_eq!(map.lookup(at(0x10_0000), time), found);
                    let found = high.lookup(at(0x7000_0000_0000), time);
                    let found = found.map(|id| id.index() + below.len());
                    let both = map.lookup(at(0x7000_0000_0000), time);
                    prop_assert_eq!(both.map(|id| id.index()), found);
                }
            }
        }
    }
}
