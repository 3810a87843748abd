//! Occupants by segment, and their lifetimes: what a frozen map is built from.

use crate::lifetimes::{self, Segments};
use crate::lists::Lists;
use crate::occupant::{AddrRange, Id, Occupant, Stated};
use crate::parallel;
use crate::wide::WideOccupant;

/// An occupant of more segments is kept in the tree of wide occupants.
const WIDEST: usize = 1024;
/// So are the widest others, until those in lists have at most this many segments on average.
const COPIES: usize = 32;

/// The segments of some occupants and their lifetimes.
pub(crate) struct History {
    /// First and last address of each segment.
    pub(crate) bounds: Vec<(u64, u64)>,
    /// The ids of the occupants of each segment in time order, without wide ones.
    pub(crate) lists: Lists,
    /// The wide occupants by segment, in time order.
    pub(crate) wide: Vec<WideOccupant>,
    /// By position, as `stated`.
    pub(crate) lifetimes: Vec<(u64, u64)>,
    pub(crate) stated: Vec<Stated>,
}

impl History {
    /// Determines the lifetimes of occupants.
    pub(crate) fn of(occupants: &[Occupant]) -> Self {
        assert!(
            Id::from_index(occupants.len()).is_some(),
            "fewer than 2^32 - 1 occupants"
        );
        let ranges: Vec<AddrRange> = occupants.iter().map(|occupant| occupant.range).collect();
        let segments = lifetimes::segments(&ranges);
        let order = lifetimes::time_order(occupants.iter().map(Occupant::instant));
        let live = || {
            let lifetimes = lifetimes::lifetimes(occupants, &order, &segments);
            let all = occupants.iter().zip(&lifetimes);
            let stated = all.map(|(occupant, lifetime)| Stated::of(occupant, *lifetime));
            (stated.collect(), lifetimes)
        };
        let divide = || divide(&segments.extents, segments.bounds.len(), &order);
        let ((stated, lifetimes), (lists, wide)) = parallel::both(occupants.len(), live, divide);
        Self {
            bounds: segments.bounds,
            lists,
            wide,
            lifetimes,
            stated,
        }
    }

    /// Creates a history of known lifetimes. `order` has the positions in the order of evidence,
    /// which is that of the lifetimes of each address.
    pub(crate) fn new(
        Segments { bounds, extents }: Segments,
        order: &[u32],
        lifetimes: Vec<(u64, u64)>,
        stated: Vec<Stated>,
    ) -> Self {
        let (lists, wide) = divide(&extents, bounds.len(), order);
        Self {
            bounds,
            lists,
            wide,
            lifetimes,
            stated,
        }
    }
}

/// Returns the ids of the occupants of each segment, and the wide occupants apart.
fn divide(extents: &[(u32, u32)], segments: usize, order: &[u32]) -> (Lists, Vec<WideOccupant>) {
    let widest = widest_in_lists(extents);
    let all = order.iter().map(|&index| {
        let (first, last) = extents[index as usize];
        (first as usize, last as usize, index + 1)
    });
    let is_wide = |&(first, last, _): &WideOccupant| last - first >= widest;
    let narrow = all.clone().filter(|occupant| !is_wide(occupant));
    let entries =
        narrow.flat_map(|(first, last, id)| (first..=last).map(move |segment| (segment, id)));
    (Lists::new(segments, entries), all.filter(is_wide).collect())
}

/// Returns the largest number of segments of an occupant that is kept in lists.
fn widest_in_lists(extents: &[(u32, u32)]) -> usize {
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
