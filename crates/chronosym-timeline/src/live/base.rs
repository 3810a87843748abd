//! The part of a live map that changes do not touch: a frozen map, and which of its addresses have
//! changed since.

use std::sync::atomic::{AtomicU8, Ordering};

use super::occupants::{LiveOccupant, Occupants};
use crate::directory::Hint;
use crate::history::History;
use crate::lifetimes;
use crate::map::VersionedMap;
use crate::occupant::{AddrRange, Id, Lifetime, Neighbours, Stated};

/// log2 of the bytes of a block: about the size of a method.
const BLOCK: u32 = 8;

/// A frozen map of the occupants that a live map had at one moment.
pub(crate) struct Base {
    map: VersionedMap,
    ids: Ids,
    /// For each tile, a bit for every eighth block, set once an address of these blocks that is
    /// mapped to the tile has changed. Snapshots share them: an older snapshot then searches its
    /// changes in vain.
    changed: Vec<AtomicU8>,
}

/// The id of each occupant by its position in the frozen map.
struct Ids {
    /// The first one, which successive ones follow, unless `listed` has all.
    first: usize,
    listed: Vec<Id>,
}

impl Base {
    pub(crate) fn new(occupants: &Occupants) -> Self {
        let all = || occupants.iter().map(|(_, live)| live);
        let ranges: Vec<AddrRange> = all().map(|live| live.occupant.range).collect();
        let order = lifetimes::time_order(all().map(|live| live.occupant.instant()));
        let lifetimes = all().map(LiveOccupant::bounds).collect();
        let stated = all().map(|live| Stated::of(&live.occupant, live.bounds()));
        let segments = lifetimes::segments(&ranges);
        let history = History::new(segments, &order, lifetimes, stated.collect());
        let map = VersionedMap::index(history);
        let tiles = map.tiles.len();
        Self {
            map,
            ids: Ids::new(occupants),
            changed: (0..tiles).map(|_| AtomicU8::new(0)).collect(),
        }
    }

    /// Returns the number of occupants.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    #[inline(always)]
    pub(crate) fn hint(&self, addr: u64) -> Hint {
        self.map.directory.hint(addr)
    }

    /// Returns whether the occupants of `addr`, which has this hint, may have changed.
    #[inline(always)]
    pub(crate) fn may_have_changed(&self, hint: Hint, addr: u64) -> bool {
        let Hint::Tile(tile) = hint else {
            return true;
        };
        self.changed[tile as usize].load(Ordering::Relaxed) & bit(addr >> BLOCK) != 0
    }

    /// Notes that the occupants of a range change. A thread that receives a later snapshot sees it:
    /// passing a snapshot to another thread orders memory accesses.
    pub(crate) fn set_changed(&self, range: AddrRange) {
        let [first, last] = [range.start(), range.last()].map(|addr| addr >> BLOCK);
        let blocks = first..=last.min(first.saturating_add(u8::BITS.into()));
        let bits = blocks.fold(0, |bits, block| bits | bit(block));
        for changed in &self.changed[self.map.hinted(range)] {
            changed.fetch_or(bits, Ordering::Relaxed);
        }
    }

    /// Returns the ids of all occupants whose range overlaps `range`, and of others nearby.
    pub(crate) fn ids_near(&self, range: AddrRange) -> impl Iterator<Item = Id> + '_ {
        let near = self.map.ids_near(range);
        near.into_iter().map(|position| self.ids.get(position))
    }

    #[inline(always)]
    pub(crate) fn id(&self, hint: Hint, addr: u64, time: u64) -> Option<Id> {
        let position = self.map.lookup_at(hint, addr, time)?;
        Some(self.ids.get(position))
    }

    pub(crate) fn find(&self, hint: Hint, addr: u64, time: u64) -> Option<(Id, Lifetime)> {
        let position = self.map.lookup_at(hint, addr, time)?;
        Some((self.ids.get(position), self.map.lifetime(position)))
    }

    pub(crate) fn neighbours(&self, addr: u64, time: u64) -> Neighbours {
        let near = self.map.neighbours(addr, time);
        let [before, after] = [near.before, near.after]
            .map(|near| near.map(|(position, lifetime)| (self.ids.get(position), lifetime)));
        Neighbours { before, after }
    }

    pub(crate) fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Lifetime)> + '_ {
        let occupants = self.map.occupants(addr);
        occupants.map(|(position, lifetime)| (self.ids.get(position), lifetime))
    }

    pub(crate) fn lifetime(&self, id: Id) -> Option<Lifetime> {
        let position = self.ids.position(id)?;
        (position.index() < self.len()).then(|| self.map.lifetime(position))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.map.memory_bytes()
            + self.ids.listed.capacity() * size_of::<Id>()
            + self.changed.capacity() * size_of::<AtomicU8>()
    }
}

/// Returns the bit of a block among those of its tile.
#[inline(always)]
fn bit(block: u64) -> u8 {
    1 << (block % u64::from(u8::BITS))
}

impl Ids {
    fn new(occupants: &Occupants) -> Self {
        let ids = || occupants.iter().map(|(id, _)| id);
        let first = ids().next().map_or(0, Id::index);
        let are_successive = ids().zip(first..).all(|(id, index)| id.index() == index);
        Self {
            first,
            listed: match are_successive {
                true => Vec::new(),
                false => ids().collect(),
            },
        }
    }

    #[inline(always)]
    fn get(&self, position: Id) -> Id {
        match self.listed.get(position.index()) {
            Some(&id) => id,
            None => position.plus(self.first),
        }
    }

    fn position(&self, id: Id) -> Option<Id> {
        let position = match self.listed.is_empty() {
            true => id.index().checked_sub(self.first),
            false => self.listed.binary_search(&id).ok(),
        };
        Id::from_index(position?)
    }
}
