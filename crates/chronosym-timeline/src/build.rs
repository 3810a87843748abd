//! Lays the frozen index out.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "places of lists that are built here, and addresses cut to granules before"
)]

use crate::above::Above;
use crate::clock::Clock;
use crate::directory::Directory;
use crate::layout::{Cutter, Layout, Segment, tile_of};
use crate::lists::Lists;
use crate::lives::{self, Lives, Segments};
use crate::map::{Known, VersionedMap};
use crate::occupant::{Begin, Id, Occupant};
use crate::spans::Spans;
use crate::tile::{Flags, Tile};

/// An occupant of more segments is above the tiles.
const WIDEST: usize = 1024;
/// So are the widest of the others, as many of them as leave no more segments to each of the rest, on average.
const COPIES: usize = 32;

impl VersionedMap {
    /// Works out each occupant's life and builds the index, in O(n log n). Their ids are their places.
    ///
    /// Any order will do; of two occupants with evidence of the same instant, the later one is taken to have come later.
    ///
    /// # Panics
    /// With more than 2^32 − 2 occupants (260 GB of them).
    pub fn new(occupants: &[Occupant]) -> Self {
        assert!(
            Id::from_index(occupants.len()).is_some(),
            "fewer than 2^32 - 1 occupants"
        );
        let Segments { bounds, spans } = lives::segments(occupants);
        let Lives {
            order,
            spans: lives,
        } = lives::lives(occupants, &spans, bounds.len());

        let widest = widest_in_tiles(&spans);
        let is_wide = |&(first, last): &(u32, u32)| (last - first) as usize >= widest;
        // In the order of evidence, which is that of time.
        let narrow = order.iter().filter(|&&i| !is_wide(&spans[i as usize]));
        let entries = narrow.flat_map(|&index| {
            let (first, last) = spans[index as usize];
            (first..=last).map(move |segment| (segment as usize, index + 1))
        });
        let lists = Lists::new(bounds.len(), entries);
        let cuts = cuts(spans.iter().filter(|span| is_wide(span)), bounds.len());
        let segments = bounds
            .iter()
            .enumerate()
            .map(|(i, &(start, last))| Segment {
                start,
                last,
                ids: lists.of(i),
                is_cut: cuts[i],
                is_cut_behind: cuts[i + 1],
            });
        let mut directory = Directory::new(segments.clone());
        let clock = Clock::new(occupants);
        let mut cutter = Cutter::new(&lives, clock);
        for (segment, i) in segments.zip(1..) {
            let next = bounds.get(i).map(|bounds| bounds.0);
            cutter.push(segment, next, |addr| directory.granule(addr));
        }
        let Layout {
            starts,
            mut tiles,
            branches,
            crowds,
        } = cutter.finish();
        directory.fill(&starts, |tile, reach| match starts.get(tile + 1) {
            Some(&next) if reach.max(next - starts[tile]) <= Tile::NEAR => {
                tiles[tile].set_next(next);
            }
            _ => tiles[tile].set(Flags::MORE),
        });

        let wide: Vec<(usize, usize, u32)> = order
            .iter()
            .filter(|&&index| is_wide(&spans[index as usize]))
            .map(|&index| {
                let range = occupants[index as usize].range;
                let [first, last] =
                    [range.start(), range.last()].map(|addr| tile_of(&starts, addr));
                (first, last, index + 1)
            })
            .collect();
        let above = Above::new(&wide, tiles.len(), &lives, clock);
        let count = tiles.len();
        mark_below(&wide, count, |tile| tiles[tile].set(Flags::ABOVE));

        Self {
            directory,
            starts,
            tiles,
            branches,
            crowds,
            above,
            clock,
            known: occupants
                .iter()
                .zip(&lives)
                .map(|(o, life)| known(o, *life))
                .collect(),
            spans: Spans::new(lives),
        }
    }
}

/// How many segments an occupant that is in the tiles has at most.
fn widest_in_tiles(spans: &[(u32, u32)]) -> usize {
    let mut counts = [0_usize; WIDEST + 1];
    for &(first, last) in spans {
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

/// Before which segments tiles must begin, because wide occupants begin or end there; one more than there are segments.
fn cuts<'a>(wide: impl Iterator<Item = &'a (u32, u32)>, segments: usize) -> Vec<bool> {
    let mut cuts = vec![false; segments + 1];
    for &(first, last) in wide {
        cuts[first as usize] = true;
        cuts[last as usize + 1] = true;
    }
    cuts
}

/// Tells `below` each tile that has wide occupants.
fn mark_below(wide: &[(usize, usize, u32)], tiles: usize, mut below: impl FnMut(usize)) {
    let mut changes = vec![0_i64; tiles + 1];
    for &(first, last, _) in wide {
        changes[first] += 1;
        changes[last + 1] -= 1;
    }
    let mut depth = 0;
    for (tile, change) in changes.iter().enumerate() {
        depth += change;
        if depth > 0 {
            below(tile);
        }
    }
}

fn known(occupant: &Occupant, (from, to): (u64, u64)) -> Known {
    let begin = match occupant.begin {
        Begin::At(_) => Known::BEGIN,
        _ => 0,
    };
    let is_own = to == occupant.own_end().max(from);
    let end = match is_own && occupant.end_stated() {
        true => Known::END,
        false => 0,
    };
    Known(begin | end)
}
