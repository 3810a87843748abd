//! The frozen map: built once, then only read.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "places that the builder of this map made; models compare every answer"
)]

use std::fmt;

use crate::above::Above;
use crate::clock::Clock;
use crate::directory::{Directory, Hint};
use crate::layout::tile_of;
use crate::occupant::{Id, Life, Neighbours};
use crate::spans::{Nearest, Spans};
use crate::tile::{Edge, Flags, Tile};

/// What is known of an occupant's begin and end.
#[derive(Clone, Copy)]
pub(crate) struct Known(pub(crate) u8);

impl Known {
    pub(crate) const BEGIN: u8 = 1;
    pub(crate) const END: u8 = 2;
}

/// What was at address A at time T: an immutable index that any number of threads can ask at once.
///
/// Lives of occupants that share an address never overlap in time (the [crate] documentation has the rules), so every question
/// has one answer at most.
pub struct VersionedMap {
    pub(crate) directory: Directory,
    /// Where each tile begins; the first at address 0.
    pub(crate) starts: Vec<u64>,
    pub(crate) tiles: Vec<Tile>,
    /// The tiles that split tiles lead to.
    pub(crate) branches: Vec<Tile>,
    /// The lists of crowds.
    pub(crate) crowds: Vec<u32>,
    pub(crate) above: Above,
    pub(crate) clock: Clock,
    /// Tiles have lives in ticks only.
    pub(crate) spans: Spans,
    pub(crate) known: Vec<Known>,
}

impl VersionedMap {
    /// Who was alive at `addr` at `time`. Allocates nothing.
    ///
    /// `u64::MAX` as a time is the end of all time: nobody is alive then.
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
            // One after the last: the flags, none.
            Ok(lane) => Id::from_raw(tile.word(lane)),
            Err(Edge) => self.lookup_exactly(tile, addr, time, tick),
        }
    }

    /// Reads where [`lookup_at`](Self::lookup_at) will.
    #[inline(always)]
    pub(crate) fn touch(&self, hint: Hint) -> u32 {
        match hint {
            Hint::Tile(index) => self.tiles[index as usize].word(0),
            Hint::Nowhere | Hint::Unknown => 0,
        }
    }

    /// The long way for any address.
    #[cold]
    fn lookup_slowly(&self, addr: u64, time: u64) -> Option<Id> {
        self.lookup_from(tile_of(&self.starts, addr), addr, time)
    }

    /// The long way from the tile that the directory has for the address.
    #[inline(never)]
    fn lookup_from(&self, index: usize, addr: u64, time: u64) -> Option<Id> {
        let tick = self.clock.tick(time);
        let index = self.tile_from(index, addr);
        let root = &self.tiles[index];
        let mut tile = root;
        while tile.has(Flags::SPLIT) {
            tile = &self.branches[tile.child(tick)];
        }
        let found = if tile.has(Flags::CROWD) {
            Id::from_raw(self.spans.alive(self.crowd(tile, addr), time))
        } else {
            self.lookup_exactly(tile, addr, time, tick)
        };
        if found.is_none() && root.has(Flags::ABOVE) {
            return Id::from_raw(self.above.lookup(index, &self.spans, time, tick));
        }
        found
    }

    /// Who of a tile's lanes is at an address at a time, where ticks may not be enough.
    #[cold]
    fn lookup_exactly(&self, tile: &Tile, addr: u64, time: u64, tick: u16) -> Option<Id> {
        tile.ids(addr as u16, tick)
            .filter_map(Id::from_raw)
            .find(|&id| {
                let (from, to) = self.spans.get(id.index());
                from <= time && time < to
            })
    }

    /// The ids of a crowd, if it is at this address.
    fn crowd(&self, tile: &Tile, addr: u64) -> &[u32] {
        if tile.is_at(0, addr as u16) {
            &self.crowds[tile.crowded()]
        } else {
            &[]
        }
    }

    /// The tile that holds an address, when the directory has this one for it.
    fn tile_from(&self, index: usize, addr: u64) -> usize {
        if !self.tiles[index].has(Flags::MORE | Flags::NEXT) {
            return index;
        }
        // It is mostly this or the next: steps twice as long each time.
        let after = &self.starts[index + 1..];
        let mut step = 1;
        while after.get(step - 1).is_some_and(|&start| start <= addr) {
            step *= 2;
        }
        let (from, to) = (step / 2, after.len().min(step));
        index + from + after[from..to].partition_point(|&start| start <= addr)
    }

    /// The tile that holds an address, if anything ever was near it.
    fn tile(&self, addr: u64) -> Option<usize> {
        match self.directory.hint(addr) {
            Hint::Tile(index) => Some(self.tile_from(index as usize, addr)),
            Hint::Nowhere => None,
            Hint::Unknown => Some(tile_of(&self.starts, addr)),
        }
    }

    /// Whose lives at `addr` are the nearest to `time`. Allocates nothing; the time that it takes grows with the logarithm of how many
    /// were at the address, and with how many were at others next to it in between.
    pub fn neighbours(&self, addr: u64, time: u64) -> Neighbours {
        let mut nearest = Nearest::new(&self.spans, time);
        if let Some(index) = self.tile(addr) {
            let (root, tick) = (&self.tiles[index], self.clock.tick(time));
            self.walk::<false>(root, tick, &mut |tile| {
                // Of those that begin in one tick, the first may be in the tile after that of another.
                let found = nearest.after != 0;
                self.see(tile, addr, &mut nearest);
                found
            });
            self.walk::<true>(root, tick, &mut |tile| {
                self.see(tile, addr, &mut nearest);
                nearest.before != 0
            });
            let above = self.above.lists(index);
            above.for_each(|ids| nearest.see_all(ids));
        }
        let with_life = |id| Id::from_raw(id).map(|id| (id, self.life(id)));
        Neighbours {
            before: with_life(nearest.before),
            after: with_life(nearest.after),
        }
    }

    /// Goes through the tiles that a tile leads to, from that of a tick on, until `each` says that it has what it looks for. Whoever
    /// is in a tile is in all up to the one in which it ends: the first that has anybody has the nearest.
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

    /// Shows `nearest` those of a tile that is not split.
    fn see(&self, tile: &Tile, addr: u64, nearest: &mut Nearest<'_>) {
        if tile.has(Flags::CROWD) {
            nearest.see_all(self.crowd(tile, addr));
        } else {
            tile.ids_at(addr as u16).for_each(|id| nearest.see(id));
        }
    }

    /// Everything that was ever at `addr`, with its life, in time order: lives of no length too.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Life)> + '_ {
        let mut ids = Vec::new();
        if let Some(index) = self.tile(addr) {
            self.collect(&self.tiles[index], addr, &mut ids);
            ids.extend(self.above.lists(index).flatten());
        }
        let mut ids: Vec<Id> = ids.into_iter().filter_map(Id::from_raw).collect();
        ids.sort_unstable_by_key(|id| (self.spans.get(id.index()), *id));
        // One can be in several branches.
        ids.dedup();
        ids.into_iter().map(|id| (id, self.life(id)))
    }

    fn collect(&self, tile: &Tile, addr: u64, ids: &mut Vec<u32>) {
        if tile.has(Flags::SPLIT) {
            for child in &self.branches[tile.children()] {
                self.collect(child, addr, ids);
            }
        } else if tile.has(Flags::CROWD) {
            ids.extend(self.crowd(tile, addr));
        } else {
            ids.extend(tile.ids_at(addr as u16));
        }
    }

    /// When `id` lived.
    ///
    /// # Panics
    /// If `id` is another map's and this one has fewer occupants; so do all methods that take one.
    pub fn life(&self, id: Id) -> Life {
        let (from, to) = self.spans.get(id.index());
        let known = self.known[id.index()].0;
        Life {
            from,
            to,
            from_known: known & Known::BEGIN != 0,
            to_known: known & Known::END != 0,
        }
    }

    /// The number of occupants, those with lives of no length too.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no occupants.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of all occupants, in the order of insertion.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = Id> + '_ {
        (0..self.spans.len()).map(|i| Id::from_index(i).expect("as many as were inserted"))
    }

    /// What the map holds on the heap, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.directory.memory_bytes()
            + self.starts.capacity() * size_of::<u64>()
            + (self.tiles.capacity() + self.branches.capacity()) * size_of::<Tile>()
            + self.crowds.capacity() * size_of::<u32>()
            + self.above.memory_bytes()
            + self.spans.memory_bytes()
            + self.known.capacity() * size_of::<Known>()
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
