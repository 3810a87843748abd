//! Builds the frozen map.

use crate::clock::Clock;
use crate::directory::Directory;
use crate::layout::{Cutter, Layout, Segment, tile_of};
use crate::lifetimes::{self, Segments};
use crate::lists::Lists;
use crate::map::{Stated, VersionedMap};
use crate::occupant::{AddrRange, Id, Occupant};
use crate::packed::PackedLifetimes;
use crate::tile::{Flags, Tile};
use crate::wide::WideOccupants;

/// An occupant of more segments is kept in the tree of wide occupants.
const WIDEST: usize = 1024;
/// So are the widest others, until those in tiles have at most this many segments on average.
const COPIES: usize = 32;

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
        assert!(
            Id::from_index(occupants.len()).is_some(),
            "fewer than 2^32 - 1 occupants"
        );
        let ranges: Vec<AddrRange> = occupants.iter().map(|occupant| occupant.range).collect();
        let segments = lifetimes::segments(&ranges);
        let order = lifetimes::order(occupants.iter().map(Occupant::instant));
        let lifetimes = lifetimes::lifetimes(occupants, &order, &segments);
        let stated = occupants
            .iter()
            .zip(&lifetimes)
            .map(|(occupant, lifetime)| Stated::of(occupant, *lifetime))
            .collect();
        Self::index(&ranges, segments, order, lifetimes, stated)
    }

    /// Builds the index of ranges whose lifetimes are known; `order` has the positions of all in
    /// the order of evidence, which is that of the lifetimes of each address.
    pub(crate) fn index(
        ranges: &[AddrRange],
        Segments { bounds, extents }: Segments,
        order: Vec<u32>,
        lifetimes: Vec<(u64, u64)>,
        stated: Vec<Stated>,
    ) -> Self {
        let widest = widest_in_tiles(&extents);
        let is_wide = |&(first, last): &(u32, u32)| (last - first) as usize >= widest;
        let narrow = order.iter().filter(|&&i| !is_wide(&extents[i as usize]));
        let entries = narrow.flat_map(|&index| {
            let (first, last) = extents[index as usize];
            (first..=last).map(move |segment| (segment as usize, index + 1))
        });
        let lists = Lists::new(bounds.len(), entries);
        let cuts = cuts(
            extents.iter().filter(|extent| is_wide(extent)),
            bounds.len(),
        );
        let segments = bounds
            .iter()
            .enumerate()
            .map(|(i, &(start, last))| Segment {
                start,
                last,
                ids: lists.of(i),
                is_cut: cuts[i],
                is_cut_after: cuts[i + 1],
            });
        let mut directory = Directory::new(segments.clone());
        let clock = Clock::new(&lifetimes);
        let mut cutter = Cutter::new(&lifetimes, clock);
        for (segment, i) in segments.zip(1..) {
            let next = bounds.get(i).map(|bounds| bounds.0);
            cutter.push(segment, next, |addr| directory.granule(addr));
        }
        let Layout {
            starts,
            mut tiles,
            branches,
            overflow,
        } = cutter.finish();
        directory.fill(&starts, |tile, reach| match starts.get(tile + 1) {
            Some(&next) if reach.max(next - starts[tile]) <= Tile::NEAR => {
                tiles[tile].set_next(next);
            }
            _ => tiles[tile].set(Flags::MORE),
        });

        let wide: Vec<(usize, usize, u32)> = order
            .iter()
            .filter(|&&index| is_wide(&extents[index as usize]))
            .map(|&index| {
                let range = ranges[index as usize];
                let [first, last] =
                    [range.start(), range.last()].map(|addr| tile_of(&starts, addr));
                (first, last, index + 1)
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
            stated,
            lifetimes: PackedLifetimes::new(lifetimes),
        }
    }
}

/// Returns the largest number of segments of an occupant that is kept in tiles.
fn widest_in_tiles(extents: &[(u32, u32)]) -> usize {
    let mut counts = [0_usize; WIDEST + 1];
    for &(first, last) in extents {
        if let Some(count) = counts.get_mut((last - first) as usize + 1) {
            *count += 1;
        }
    }
    let (mut occupants, mut copies) = (0, 0);
    let fit = |&(segments, count): &(usize, usize)| {
        occupants += count;
        copies += segments * count;
        copies <= (occupants * COPIES).min(u32::MAX as usize)
    };
    let fitting = counts.into_iter().enumerate().take_while(fit);
    fitting.last().map_or(1, |(segments, _)| segments)
}

/// Returns before which segments tiles must start because a wide occupant starts or ends there; the
/// last value is for the end of the last segment.
fn cuts<'a>(wide: impl Iterator<Item = &'a (u32, u32)>, segments: usize) -> Vec<bool> {
    let mut cuts = vec![false; segments + 1];
    for &(first, last) in wide {
        cuts[first as usize] = true;
        cuts[last as usize + 1] = true;
    }
    cuts
}

/// Calls `mark` with each tile that has wide occupants.
fn mark_wide(wide: &[(usize, usize, u32)], tiles: usize, mut mark: impl FnMut(usize)) {
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
