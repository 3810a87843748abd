//! A frozen map for few lookups: the sorted segments.

use std::fmt;
use std::iter;

use crate::clock::Clock;
use crate::history::History;
use crate::lists::Lists;
use crate::occupant::{Id, Lifetime, Neighbours, Occupant};
use crate::packed::{Nearest, PackedLifetimes};
use crate::wide::WideOccupants;

/// A [`VersionedMap`](crate::VersionedMap) for few lookups: it is built in a third of the time, and
/// a lookup is a binary search, which takes several times as long.
pub struct SegmentMap {
    /// First and last address of each segment.
    bounds: Vec<(u64, u64)>,
    /// The occupants of each segment, without wide ones.
    lists: Lists,
    /// By segment.
    wide: WideOccupants,
    clock: Clock,
    lifetimes: PackedLifetimes,
}

impl SegmentMap {
    /// Determines each occupant's lifetime, as [`VersionedMap::new`](crate::VersionedMap::new)
    /// does.
    ///
    /// # Panics
    /// With more than 2^32 − 2 occupants.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_timeline::{AddrRange, End, Occupant, SegmentMap, Start};
    ///
    /// let range = AddrRange::sized(0x1000, 0x100).unwrap();
    /// let map = SegmentMap::new(&[Occupant::new(range, Start::At(10), End::At(20))]);
    /// assert_eq!(map.lookup(0x1080, 15).unwrap().index(), 0);
    /// assert_eq!(map.lookup(0x1080, 20), None);
    /// ```
    pub fn new(occupants: &[Occupant]) -> Self {
        let History {
            bounds,
            lists,
            wide,
            lifetimes,
            stated,
        } = History::of(occupants);
        // Only wide occupants are looked up by tick.
        let of_wide = wide.iter().map(|&(_, _, id)| lifetimes[id as usize - 1]);
        let clock = Clock::new(&of_wide.collect::<Vec<_>>());
        Self {
            wide: WideOccupants::new(&wide, bounds.len(), &lifetimes, clock),
            bounds,
            lists,
            clock,
            lifetimes: PackedLifetimes::unpacked(lifetimes, stated),
        }
    }

    /// Returns the segment that holds an address.
    fn segment(&self, addr: u64) -> Option<usize> {
        let after = self.bounds.partition_point(|bounds| bounds.0 <= addr);
        after
            .checked_sub(1)
            .filter(|&segment| addr <= self.bounds[segment].1)
    }

    /// Returns the occupants of an address in lists, each in time order.
    fn lists(&self, addr: u64) -> impl Iterator<Item = &[u32]> {
        self.segment(addr).into_iter().flat_map(|segment| {
            iter::once(self.lists.of(segment)).chain(self.wide.lists(segment..=segment))
        })
    }

    /// Returns the occupant that was alive at `addr` at `time`. Does not allocate.
    pub fn lookup(&self, addr: u64, time: u64) -> Option<Id> {
        let segment = self.segment(addr)?;
        let id = self.lifetimes.alive(self.lists.of(segment), time);
        Id::from_raw(id).or_else(|| {
            let tick = self.clock.tick(time);
            Id::from_raw(self.wide.lookup(segment, &self.lifetimes, time, tick))
        })
    }

    /// Returns the occupants of `addr` whose lifetimes are nearest to `time`. Does not allocate.
    pub fn neighbours(&self, addr: u64, time: u64) -> Neighbours {
        let mut nearest = Nearest::new(&self.lifetimes, time);
        self.lists(addr).for_each(|ids| nearest.add_all(ids));
        nearest.found()
    }

    /// Returns all occupants that `addr` ever had with their lifetimes, including empty ones, in
    /// time order.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Lifetime)> + '_ {
        let ids = self.lists(addr).flatten();
        self.lifetimes.in_time_order(ids.copied())
    }

    /// Returns the lifetime of `id`.
    ///
    /// # Panics
    /// If `id` comes from a map with more occupants.
    pub fn lifetime(&self, id: Id) -> Lifetime {
        self.lifetimes.lifetime(id)
    }

    /// Returns the number of occupants, including those with empty lifetimes.
    pub fn len(&self) -> usize {
        self.lifetimes.len()
    }

    /// Returns whether the map has no occupants.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for SegmentMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentMap")
            .field("len", &self.len())
            .field("segments", &self.bounds.len())
            .finish_non_exhaustive()
    }
}
