//! From occupants to lives: the rules by which one occupant closes another.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "counts and places of occupants, whose ids have 32 bits"
)]

use crate::occupant::Occupant;
use crate::pieces::Pieces;
use crate::radix::{self, Keyed};

/// The address space cut at every begin and end of a range: only the segments that are in some range, in address order.
pub(crate) struct Segments {
    /// First and last address of each.
    pub(crate) bounds: Vec<(u64, u64)>,
    /// First and last segment of each occupant.
    pub(crate) spans: Vec<(u32, u32)>,
}

/// What becomes of each occupant, by index.
pub(crate) struct Lives {
    /// Indexes in the order of evidence: by instant, then by insertion.
    pub(crate) order: Vec<u32>,
    /// From and to.
    pub(crate) spans: Vec<(u64, u64)>,
}

pub(crate) fn segments(occupants: &[Occupant]) -> Segments {
    let keyed = |key: fn(&Occupant) -> u64| {
        let items = occupants
            .iter()
            .zip(0..)
            .map(|(o, pos)| Keyed { key: key(o), pos })
            .collect();
        radix::sort(items)
    };
    let starts = keyed(|o| o.range.start());
    let lasts = keyed(|o| o.range.last());

    let mut bounds: Vec<(u64, u64)> = Vec::with_capacity(occupants.len());
    let mut spans = vec![(0, 0); occupants.len()];
    let mut starts = starts.into_iter().peekable();
    // The first address not yet in a segment, while `depth` ranges are open.
    let (mut here, mut depth) = (0, 0_u32);
    for last in lasts {
        while let Some(start) = starts.next_if(|s| s.key <= last.key) {
            if depth > 0 && here < start.key {
                bounds.push((here, start.key - 1));
            }
            here = start.key;
            depth += 1;
            spans[start.pos as usize].0 = bounds.len() as u32;
        }
        if bounds.last().is_none_or(|b| b.1 != last.key) {
            bounds.push((here, last.key));
            // Past the top of the address space no range starts, and no later segment begins.
            here = last.key.wrapping_add(1);
        }
        depth -= 1;
        spans[last.pos as usize].1 = bounds.len() as u32 - 1;
    }
    Segments { bounds, spans }
}

/// Goes through the occupants in the order of evidence. Each one closes, at its instant, all that it overlaps; one with an
/// unknown begin then begins where the latest of these (or of those closed earlier) ended. `segments`: the first and last of each.
pub(crate) fn lives(
    occupants: &[Occupant],
    segments: &[(u32, u32)],
    segment_count: usize,
) -> Lives {
    let keyed = occupants
        .iter()
        .zip(0..)
        .map(|(o, pos)| Keyed {
            key: o.instant(),
            pos,
        })
        .collect();
    let order: Vec<u32> = radix::sort(keyed).into_iter().map(|k| k.pos).collect();

    let mut spans = vec![(0_u64, 0_u64); occupants.len()];
    let mut pieces = Pieces::new(segment_count);
    for &pos in &order {
        let index = pos as usize;
        let occupant = &occupants[index];
        let instant = occupant.instant();
        let (first, last) = segments[index];
        let mut floor = 0;
        // Whoever is the latest in a segment ended there last: all that share a segment follow one another.
        pieces.give(first as usize, last as usize, pos, |older| {
            let older = older as usize;
            let life = &mut spans[older];
            // An occupant closed before ends before this instant and is left as it is.
            if instant < life.1 {
                life.1 = instant.max(life.0);
            }
            floor = floor.max(life.1);
        });
        let from = occupant.from(floor);
        spans[index] = (from, occupant.own_end().max(from));
    }
    Lives { order, spans }
}
