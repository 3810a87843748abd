//! Determines lifetimes: the rules by which one occupant ends another.

use crate::occupant::Occupant;
use crate::owners::OwnerRuns;
use crate::radix::{self, Keyed};

/// The occupied segments of the address space, which is cut at every start and end of a range, in
/// address order.
pub(crate) struct Segments {
    /// First and last address of each segment.
    pub(crate) bounds: Vec<(u64, u64)>,
    /// First and last segment of each occupant.
    pub(crate) extents: Vec<(u32, u32)>,
}

/// The lifetime of each occupant.
pub(crate) struct Lifetimes {
    /// Indices of occupants in the order of evidence: by instant, then by insertion.
    pub(crate) order: Vec<u32>,
    /// Start and end by index.
    pub(crate) lifetimes: Vec<(u64, u64)>,
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
    let mut extents = vec![(0, 0); occupants.len()];
    let mut starts = starts.into_iter().peekable();
    // The first address after the last segment, while `depth` ranges are open.
    let (mut here, mut depth) = (0, 0_u32);
    for last in lasts {
        while let Some(start) = starts.next_if(|s| s.key <= last.key) {
            if depth > 0 && here < start.key {
                bounds.push((here, start.key - 1));
            }
            here = start.key;
            depth += 1;
            extents[start.pos as usize].0 = bounds.len() as u32;
        }
        if bounds.last().is_none_or(|b| b.1 != last.key) {
            bounds.push((here, last.key));
            // No range starts past the top of the address space, so a wrapped value is not used.
            here = last.key.wrapping_add(1);
        }
        depth -= 1;
        extents[last.pos as usize].1 = bounds.len() as u32 - 1;
    }
    Segments { bounds, extents }
}

/// Visits the occupants in the order of evidence. Each ends, at its instant, all that it overlaps;
/// one with an unknown start then starts where the latest of these ended. `segments` are the first
/// and last segment of each occupant.
pub(crate) fn lifetimes(
    occupants: &[Occupant],
    segments: &[(u32, u32)],
    segment_count: usize,
) -> Lifetimes {
    let keyed = occupants
        .iter()
        .zip(0..)
        .map(|(o, pos)| Keyed {
            key: o.instant(),
            pos,
        })
        .collect();
    let order: Vec<u32> = radix::sort(keyed).into_iter().map(|k| k.pos).collect();

    let mut lifetimes = vec![(0_u64, 0_u64); occupants.len()];
    let mut owners = OwnerRuns::new(segment_count);
    for &pos in &order {
        let index = pos as usize;
        let occupant = &occupants[index];
        let instant = occupant.instant();
        let (first, last) = segments[index];
        let mut floor = 0;
        // The latest owner of a segment ended last: occupants of a segment follow one another.
        owners.assign(first as usize, last as usize, pos, |older| {
            let older = older as usize;
            let lifetime = &mut lifetimes[older];
            // An occupant that was ended before ends before this instant.
            if instant < lifetime.1 {
                lifetime.1 = instant.max(lifetime.0);
            }
            floor = floor.max(lifetime.1);
        });
        let from = occupant.from(floor);
        lifetimes[index] = (from, occupant.own_end().max(from));
    }
    Lifetimes { order, lifetimes }
}
