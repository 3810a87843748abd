//! The frozen map: built once, then only read.

use std::fmt;
use std::ops::RangeInclusive;

use crate::clock::Clock;
use crate::directory::{Directory, Hint};
use crate::layout::tile_of;
use crate::occupant::{AddrRange, Id, Lifetime, Neighbours};
use crate::packed::{Nearest, PackedLifetimes};
use crate::tile::{Edge, Flags, Tile};
use crate::wide::WideOccupants;

/// An immutable index of what was at address A at time T, for any number of threads.
///
/// Lifetimes of occupants that share an address never overlap (the [crate] documentation has the
/// rules), so a lookup has at most one answer.
pub struct VersionedMap {
    pub(crate) directory: Directory,
    /// First address of each tile, 0 for the first one.
    pub(crate) starts: Vec<u64>,
    pub(crate) tiles: Vec<Tile>,
    /// The branches of split tiles.
    pub(crate) branches: Vec<Tile>,
    /// The lists of overflow tiles.
    pub(crate) overflow: Vec<u32>,
    pub(crate) wide: WideOccupants,
    pub(crate) clock: Clock,
    /// Exact lifetimes: tiles hold ticks only.
    pub(crate) lifetimes: PackedLifetimes,
}

impl VersionedMap {
    /// Returns the occupant that was alive at `addr` at `time`. Does not allocate.
    ///
    /// No occupant is alive at `u64::MAX`, the end of time.
    #[inline]
    pub fn lookup(&self, addr: u64, time: u64) -> Option<Id> {
        self.lookup_at(self.directory.hint(addr), addr, time)
    }

    #[inline(always)]
    pub(crate) fn lookup_at(&self, hint: Hint, addr: u64, time: u64) -> Option<Id> {
        let mut index = match hint {
            Hint::Tile(index) => index as usize,
            Hint::Nowhere => return None,
            Hint::Unknown => return self.lookup_slowly(addr, time),
        };
        let Some(tick) = self.clock.tick_within(time) else {
            return self.lookup_from(index, addr, time);
        };
        let mut tile = &self.tiles[index];
        if tile.flags() != 0 {
            while tile.leads_on(addr as u16) {
                index += 1;
                tile = &self.tiles[index];
            }
            while tile.flags() & !Flags::NEXT == Flags::SPLIT {
                tile = &self.branches[tile.child(tick)];
            }
            if tile.flags() == Flags::NEXT {
                return match tile.lane(addr as u16, tick) {
                    Ok(lane) => Id::from_raw(tile.id(lane)),
                    Err(Edge) => self.lookup_exactly(tile, addr, time, tick),
                };
            }
            if tile.flags() != 0 {
                return self.lookup_from(index, addr, time);
            }
        }
        match tile.lane(addr as u16, tick) {
            // The lane after the last reads the flags, which are 0.
            Ok(lane) => Id::from_raw(tile.word(lane)),
            Err(Edge) => self.lookup_exactly(tile, addr, time, tick),
        }
    }

    /// Loads the tile that [`lookup_at`](Self::lookup_at) will read.
    #[inline(always)]
    pub(crate) fn touch(&self, hint: Hint) -> u32 {
        match hint {
            Hint::Tile(index) => self.tiles[index as usize].word(0),
            Hint::Nowhere | Hint::Unknown => 0,
        }
    }

    /// Looks up an address that the directory does not cover.
    #[cold]
    fn lookup_slowly(&self, addr: u64, time: u64) -> Option<Id> {
        self.lookup_from(tile_of(&self.starts, addr), addr, time)
    }

    /// Looks up an address from the tile that the directory returned, in every case.
    #[inline(never)]
    fn lookup_from(&self, index: usize, addr: u64, time: u64) -> Option<Id> {
        let tick = self.clock.tick(time);
        let index = self.tile_from(index, addr);
        let root = &self.tiles[index];
        let mut tile = root;
        while tile.has(Flags::SPLIT) {
            tile = &self.branches[tile.child(tick)];
        }
        let id = if tile.has(Flags::OVERFLOW) {
            Id::from_raw(self.lifetimes.alive(self.overflow(tile, addr), time))
        } else {
            self.lookup_exactly(tile, addr, time, tick)
        };
        if id.is_none() && root.has(Flags::WIDE) {
            return Id::from_raw(self.wide.lookup(index, &self.lifetimes, time, tick));
        }
        id
    }

    /// Looks up an address in a tile's lanes by exact lifetimes.
    #[cold]
    fn lookup_exactly(&self, tile: &Tile, addr: u64, time: u64, tick: u16) -> Option<Id> {
        tile.ids(addr as u16, tick)
            .filter_map(Id::from_raw)
            .find(|&id| {
                let (from, to) = self.lifetimes.get(id.index());
                from <= time && time < to
            })
    }

    /// Returns the ids of an overflow tile, if it covers the address.
    fn overflow(&self, tile: &Tile, addr: u64) -> &[u32] {
        if tile.is_at(0, addr as u16) {
            &self.overflow[tile.overflow_range()]
        } else {
            &[]
        }
    }

    /// Returns the tile that holds an address, from the tile that the directory returned.
    fn tile_from(&self, index: usize, addr: u64) -> usize {
        if !self.tiles[index].has(Flags::MORE | Flags::NEXT) {
            return index;
        }
        // Mostly this tile or the next: search in steps that double.
        let after = &self.starts[index + 1..];
        let mut step = 1;
        while after.get(step - 1).is_some_and(|&start| start <= addr) {
            step *= 2;
        }
        let (from, to) = (step / 2, after.len().min(step));
        index + from + after[from..to].partition_point(|&start| start <= addr)
    }

    /// Returns the tile that holds an address; `None` if its chunk has no occupants.
    fn tile(&self, addr: u64) -> Option<usize> {
        match self.directory.hint(addr) {
            Hint::Tile(index) => Some(self.tile_from(index as usize, addr)),
            Hint::Nowhere => None,
            Hint::Unknown => Some(tile_of(&self.starts, addr)),
        }
    }

    /// Returns the occupants of `addr` whose lifetimes are nearest to `time`. Does not allocate.
    /// Takes time logarithmic in the occupants of the address, and linear in those of nearby
    /// addresses that lived in between.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_timeline::{AddrRange, End, Occupant, Start, VersionedMap};
    ///
    /// let range = AddrRange::sized(0x1000, 0x100).unwrap();
    /// let map = VersionedMap::new(&[
    ///     Occupant::new(range, Start::At(10), End::At(20)),
    ///     Occupant::new(range, Start::At(50), End::At(60)),
    /// ]);
    /// // Nothing was at the address at 30; who was before, and who after?
    /// assert_eq!(map.lookup(0x1080, 30), None);
    /// let neighbours = map.neighbours(0x1080, 30);
    /// assert_eq!(neighbours.before.unwrap().0.index(), 0);
    /// assert_eq!(neighbours.after.unwrap().0.index(), 1);
    /// ```
    pub fn neighbours(&self, addr: u64, time: u64) -> Neighbours {
        let mut nearest = Nearest::new(&self.lifetimes, time);
        if let Some(index) = self.tile(addr) {
            let (root, tick) = (&self.tiles[index], self.clock.tick(time));
            self.walk::<false>(root, tick, &mut |tile| {
                // Of occupants that start in one tick, the first may be in the following tile.
                let is_complete = nearest.after != 0;
                self.add(tile, addr, &mut nearest);
                is_complete
            });
            self.walk::<true>(root, tick, &mut |tile| {
                self.add(tile, addr, &mut nearest);
                nearest.before != 0
            });
            let wide = self.wide.lists(index..=index);
            wide.for_each(|ids| nearest.add_all(ids));
        }
        nearest.found()
    }

    /// Visits the leaves of a split tile, starting at that of `tick`, until `each` returns true. An
    /// occupant is in all leaves up to the one in which it ends, so the first leaf with an occupant
    /// of the address has the nearest one.
    fn walk<const BACK: bool>(
        &self,
        tile: &Tile,
        tick: u16,
        each: &mut impl FnMut(&Tile) -> bool,
    ) -> bool {
        if !tile.has(Flags::SPLIT) {
            return each(tile);
        }
        let (all, at) = (tile.children(), tile.child(tick));
        let mut below = |child: usize| self.walk::<BACK>(&self.branches[child], tick, each);
        if BACK {
            (all.start..=at).rev().any(&mut below)
        } else {
            (at..all.end).any(&mut below)
        }
    }

    /// Adds the occupants of a leaf to `nearest`.
    fn add(&self, tile: &Tile, addr: u64, nearest: &mut Nearest<'_>) {
        if tile.has(Flags::OVERFLOW) {
            nearest.add_all(self.overflow(tile, addr));
        } else {
            tile.ids_at(addr as u16).for_each(|id| nearest.add(id));
        }
    }

    /// Returns all occupants that `addr` ever had with their lifetimes, including empty ones, in
    /// time order.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_timeline::{AddrRange, End, Occupant, Start, VersionedMap};
    ///
    /// let range = AddrRange::sized(0x1000, 0x100).unwrap();
    /// let map = VersionedMap::new(&[
    ///     Occupant::new(range, Start::At(10), End::Open),
    ///     Occupant::new(range, Start::At(50), End::Open),
    /// ]);
    /// let lifetimes: Vec<_> = map.occupants(0x1080).map(|(_, life)| (life.from, life.to)).collect();
    /// assert_eq!(lifetimes, [(10, 50), (50, u64::MAX)]); // the second ends the first
    /// ```
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Lifetime)> + '_ {
        let mut ids = Vec::new();
        if let Some(index) = self.tile(addr) {
            self.collect(&self.tiles[index], addr, &mut ids);
            ids.extend(self.wide.lists(index..=index).flatten());
        }
        // An occupant can be in several branches.
        self.lifetimes.in_time_order(ids)
    }

    fn collect(&self, tile: &Tile, addr: u64, ids: &mut Vec<u32>) {
        self.walk::<false>(tile, 0, &mut |leaf| {
            if leaf.has(Flags::OVERFLOW) {
                ids.extend(self.overflow(leaf, addr));
            } else {
                ids.extend(leaf.ids_at(addr as u16));
            }
            false
        });
    }

    /// Returns the tiles that the directory returns for addresses in a range.
    pub(crate) fn hinted(&self, range: AddrRange) -> RangeInclusive<usize> {
        let first = match self.directory.hint(range.start()) {
            Hint::Tile(index) => index as usize,
            Hint::Nowhere | Hint::Unknown => tile_of(&self.starts, range.start()),
        };
        first..=tile_of(&self.starts, range.last())
    }

    /// Returns the ids of all occupants whose range overlaps `range`, and of others nearby.
    pub(crate) fn ids_near(&self, range: AddrRange) -> Vec<Id> {
        let [first, last] = [range.start(), range.last()].map(|addr| tile_of(&self.starts, addr));
        let mut ids: Vec<u32> = self.wide.lists(first..=last).flatten().copied().collect();
        for tile in &self.tiles[first..=last] {
            self.walk::<false>(tile, 0, &mut |leaf| {
                match leaf.has(Flags::OVERFLOW) {
                    true => ids.extend(&self.overflow[leaf.overflow_range()]),
                    false => ids.extend(leaf.all_ids()),
                }
                false
            });
        }
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().filter_map(Id::from_raw).collect()
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

    /// Returns the ids of all occupants in the order of insertion.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = Id> + '_ {
        (0..self.lifetimes.len()).map(|i| Id::from_index(i).expect("an id for each occupant"))
    }

    /// Returns the size of the map on the heap in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.directory.memory_bytes()
            + self.starts.capacity() * size_of::<u64>()
            + (self.tiles.capacity() + self.branches.capacity()) * size_of::<Tile>()
            + self.overflow.capacity() * size_of::<u32>()
            + self.wide.memory_bytes()
            + self.lifetimes.memory_bytes()
    }
}

impl fmt::Debug for VersionedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionedMap")
            .field("len", &self.len())
            .field("tiles", &(self.tiles.len() + self.branches.len()))
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}
