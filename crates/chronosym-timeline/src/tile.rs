//! A cache line of the index: what is in a stretch of the address space, or where that is told by time.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "lanes are below the number of lanes, and offsets inside a granule have 16 bits"
)]

use std::ops::Range;

use bytemuck::cast;
use wide::{i16x16, u16x8};

/// An occupant in a tile has its place and its life in 16 bits each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    /// The low bits of its first address.
    pub(crate) start: u16,
    /// Its last address, less the first. 0xffff: all addresses of the tile.
    pub(crate) extent: u16,
    /// The ticks in which it begins and ends.
    pub(crate) begin: u16,
    pub(crate) end: u16,
    pub(crate) id: u32,
}

/// What is in a tile besides its lanes. A tile that has none of these is all that a lookup needs.
pub(crate) struct Flags;

impl Flags {
    /// Other tiles tell what was here, by time.
    pub(crate) const SPLIT: u16 = 1;
    /// Too many for lanes were here in one tick: they are in a list.
    pub(crate) const CROWD: u16 = 2;
    /// An address that leads here may belong to a tile after it: a search tells which.
    pub(crate) const MORE: u16 = 4;
    /// Occupants of this tile and others are in lists above.
    pub(crate) const ABOVE: u16 = 8;
    /// An address that leads here belongs to the next tile or one after that, unless it is below it.
    pub(crate) const NEXT: u16 = 16;
}

/// Half-words: for each lane `start`, `extent`, `begin`, and `end` less `begin`, then the ids in two each, then the flags and where
/// the next tile begins. One that is split has ticks in place of the lanes, and a number in place of the first id.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Tile([u16; 32]);

const _: () = assert!(size_of::<Tile>() == 64);

const START: usize = 0;
const EXTENT: usize = Tile::LANES;
const BEGIN: usize = 2 * Tile::LANES;
const LENGTH: usize = 3 * Tile::LANES;
const IDS: usize = 4 * Tile::LANES;
/// The ticks of a tile that is split.
const TICKS: usize = 16;
/// As if it were the id of the lane after the last.
const FLAGS: usize = IDS + 2 * Tile::LANES;
/// The low bits of the first address of the next tile.
const NEXT: usize = FLAGS + 1;

/// Somebody begins or ends in the tick that was asked for.
pub(crate) struct Edge;

impl Tile {
    pub(crate) const LANES: usize = 5;
    /// A split tile leads to as many tiles.
    pub(crate) const SPLITS: usize = TICKS + 1;
    /// As far from where the next tile begins, 16 bits of an address tell whether it is below that.
    pub(crate) const NEAR: u64 = 0x7fff;
    /// Nothing is in it: no lane has an id.
    pub(crate) const VACANT: Self = Self([0; 32]);

    pub(crate) fn new(lanes: impl IntoIterator<Item = Lane>) -> Self {
        let mut tile = Self::VACANT;
        for (i, lane) in lanes.into_iter().enumerate().take(Self::LANES) {
            tile.0[START + i] = lane.start;
            tile.0[EXTENT + i] = lane.extent;
            tile.0[BEGIN + i] = lane.begin;
            tile.0[LENGTH + i] = lane.end - lane.begin;
            tile.set_word(i, lane.id);
        }
        tile
    }

    /// A tile that leads to the tiles from `first` on: to the one after it from the first of `ticks` on, and so on.
    pub(crate) fn split(first: u32, ticks: impl IntoIterator<Item = u16>) -> Self {
        let mut tile = Self::VACANT;
        tile.0[..TICKS].fill(u16::MAX);
        for (slot, tick) in tile.0[..TICKS].iter_mut().zip(ticks) {
            *slot = tick;
        }
        tile.set_word(0, first);
        tile.set(Flags::SPLIT);
        tile
    }

    /// A tile of those in a list, from `first` on, `count` of them, all at the addresses of `lane`.
    pub(crate) fn crowd(lane: Lane, first: u32, count: u32) -> Self {
        let mut tile = Self::new([lane]);
        tile.set_word(1, first);
        tile.set_word(2, count);
        tile.set(Flags::CROWD);
        tile
    }

    /// Where they are in the list, if it is a crowd.
    pub(crate) fn crowded(&self) -> Range<usize> {
        let first = self.word(1) as usize;
        first..first + self.word(2) as usize
    }

    #[inline(always)]
    pub(crate) fn flags(&self) -> u16 {
        self.0[FLAGS]
    }

    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags() & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u16) {
        self.0[FLAGS] |= flag;
    }

    /// Says that addresses that lead here may belong to the next tile, which begins at `next`: they are at most
    /// [`NEAR`](Self::NEAR) from it.
    pub(crate) fn set_next(&mut self, next: u64) {
        self.0[NEXT] = next as u16;
        self.set(Flags::NEXT);
    }

    /// Whether an address that leads here belongs to the next tile or one after that, if no search is needed to tell.
    #[inline(always)]
    pub(crate) fn leads_on(&self, addr: u16) -> bool {
        self.flags() & (Flags::NEXT | Flags::MORE) == Flags::NEXT
            && addr.wrapping_sub(self.0[NEXT]) as i16 >= 0
    }

    /// An id, or one of the numbers that stand in their places.
    #[inline(always)]
    pub(crate) fn word(&self, i: usize) -> u32 {
        u32::from(self.0[IDS + 2 * i]) | u32::from(self.0[IDS + 2 * i + 1]) << 16
    }

    fn set_word(&mut self, i: usize, word: u32) {
        self.0[IDS + 2 * i] = word as u16;
        self.0[IDS + 2 * i + 1] = (word >> 16) as u16;
    }

    /// Where in the other tiles, if it is split, what was at `tick` is.
    #[inline(always)]
    pub(crate) fn child(&self, tick: u16) -> usize {
        let (tick, zero) = (u16x8::splat(tick), u16x8::splat(0));
        let passed = |at| self.eight(at).saturating_sub(tick).cmp_eq(zero);
        let passed = masks(passed(0), passed(8));
        self.word(0) as usize + passed.trailing_ones() as usize
    }

    /// All the tiles that it leads to, if it is split.
    pub(crate) fn children(&self) -> Range<usize> {
        self.child(0)..self.child(u16::MAX - 1) + 1
    }

    /// Whether an address is one of a lane; a crowd has one.
    pub(crate) fn is_at(&self, lane: usize, addr: u16) -> bool {
        addr.wrapping_sub(self.0[START + lane]) <= self.0[EXTENT + lane]
    }

    /// The ids of those that are at an address at some time.
    pub(crate) fn ids_at(&self, addr: u16) -> impl Iterator<Item = u32> + '_ {
        (0..Self::LANES)
            .filter(move |&lane| self.is_at(lane, addr))
            .map(|i| self.word(i))
            .filter(|&id| id != 0)
    }

    /// The lane of who is at an address in a tick, or the one after the last. `Err` if someone in it begins or ends in this tick.
    #[inline(always)]
    pub(crate) fn lane(&self, addr: u16, tick: u16) -> Result<usize, Edge> {
        let (here, edge) = self.compare(addr, tick);
        let both = masks(here, edge);
        if both & ((1 << Self::LANES) - 1) << 8 != 0 {
            return Err(Edge);
        }
        Ok((both | 1 << Self::LANES).trailing_zeros() as usize)
    }

    /// Who is in a lane: 0 if it is the one after the last.
    pub(crate) fn id(&self, lane: usize) -> u32 {
        if lane < Self::LANES {
            self.word(lane)
        } else {
            0
        }
    }

    /// The ids of those that are at an address in a tick: one ends in it before the next begins.
    pub(crate) fn ids(&self, addr: u16, tick: u16) -> impl Iterator<Item = u32> + '_ {
        let (here, edge) = self.compare(addr, tick);
        let here = masks(here, edge);
        (0..Self::LANES)
            .filter(move |i| here >> i & 1 != 0)
            .map(|i| self.word(i))
    }

    /// Which lanes are at an address in a tick, and which begin or end in the tick. All are compared at once, and what waits for
    /// memory takes few steps.
    #[inline(always)]
    fn compare(&self, addr: u16, tick: u16) -> (u16x8, u16x8) {
        let zero = u16x8::splat(0);
        let (age, length) = (u16x8::splat(tick) - self.eight(BEGIN), self.eight(LENGTH));
        let beyond = (u16x8::splat(addr) - self.eight(START)).saturating_sub(self.eight(EXTENT));
        let here = (beyond | age.saturating_sub(length)).cmp_eq(zero);
        (here, age.cmp_eq(zero) | age.cmp_eq(length))
    }

    #[inline(always)]
    fn eight(&self, at: usize) -> u16x8 {
        let eight: [u16; 8] = self.0[at..at + 8].try_into().expect("eight of them");
        u16x8::new(eight)
    }
}

/// A bit a lane: those of `low` in the lower byte.
#[inline(always)]
fn masks(low: u16x8, high: u16x8) -> u32 {
    cast::<[u16x8; 2], i16x16>([low, high]).move_mask() as u32
}
