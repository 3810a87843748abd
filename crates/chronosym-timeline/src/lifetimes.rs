//! Determines lifetimes: the rules by which one occupant ends another.

use crate::occupant::{AddrRange, Occupant};
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

pub(crate) fn segments(ranges: &[AddrRange]) -> Segments {
    let starts = sorted(ranges.iter().map(|range| range.start()));
    let lasts = sorted(ranges.iter().map(|range| range.last()));

    let mut bounds: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    let mut extents = vec![(0, 0); ranges.len()];
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

/// Returns the positions of times in time order, those of one time in their own: for occupants, the
/// order of evidence. There are at most 2^32.
///
/// # Examples
///
/// ```
/// assert_eq!(chronosym_timeline::time_order([7, 5, 7].into_iter()), [1, 0, 2]);
/// ```
pub fn time_order(times: impl Iterator<Item = u64>) -> Vec<u32> {
    sorted(times).into_iter().map(|it| it.pos).collect()
}

fn sorted(keys: impl Iterator<Item = u64>) -> Vec<Keyed> {
    radix::sort(keys.zip(0..).map(|(key, pos)| Keyed { key, pos }).collect())
}

/// Returns start and end of each occupant: visits them in the [order](time_order) of evidence. Each
/// ends, at its instant, all that it overlaps; one with an unknown start then starts where the
/// latest of these ended.
pub(crate) fn lifetimes(
    occupants: &[Occupant],
    order: &[u32],
    Segments { bounds, extents }: &Segments,
) -> Vec<(u64, u64)> {
    let mut lifetimes = vec![(0_u64, 0_u64); occupants.len()];
    let mut owners = OwnerRuns::new(bounds.len());
    for &pos in order {
        let index = pos as usize;
        let occupant = &occupants[index];
        let instant = occupant.instant();
        let (first, last) = extents[index];
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
    lifetimes
}
