//! A cache line of the index: the occupants of a stretch of addresses, or the tiles that hold them
//! by time.

use std::ops::Range;

use bytemuck::cast;
use wide::{i16x16, u16x8};

/// An occupant as a tile holds it: addresses and lifetime in 16 bits each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    /// Low bits of the first address.
    pub(crate) start: u16,
    /// Last address minus first address; 0xffff covers the whole tile.
    pub(crate) extent: u16,
    /// Tick in which the lifetime starts.
    pub(crate) from: u16,
    /// Tick in which the lifetime ends.
    pub(crate) to: u16,
    pub(crate) id: u32,
}

/// The content of a tile besides lanes. A tile without flags answers a lookup alone.
pub(crate) struct Flags;

impl Flags {
    /// The occupants are in other tiles, divided by time.
    pub(crate) const SPLIT: u16 = 1;
    /// More occupants than lanes share a tick: they are in the overflow list.
    pub(crate) const OVERFLOW: u16 = 2;
    /// An address that the directory maps here may belong to any later tile: search for it.
    pub(crate) const MORE: u16 = 4;
    /// The tile also has wide occupants.
    pub(crate) const WIDE: u16 = 8;
    /// An address that the directory maps here belongs to a later tile unless it is below the next.
    pub(crate) const NEXT: u16 = 16;
}

/// Half-words: `start`, `extent`, `from` and `to - from` of each lane, then two for each id, then
/// the flags and the start of the next tile. A split tile has ticks instead of the lanes, and the
/// index of its first branch instead of the first id.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Tile([u16; 32]);

const _: () = assert!(size_of::<Tile>() == 64);

const START: usize = 0;
const EXTENT: usize = Tile::LANES;
const FROM: usize = 2 * Tile::LANES;
const LENGTH: usize = 3 * Tile::LANES;
const IDS: usize = 4 * Tile::LANES;
/// Number of ticks in a split tile.
const TICKS: usize = 16;
/// Position of the id of the lane after the last: [`Tile::lane`] returns that lane if none matches.
const FLAGS: usize = IDS + 2 * Tile::LANES;
/// Position of the low bits of the next tile's first address.
const NEXT: usize = FLAGS + 1;

/// A lifetime starts or ends in the tick of a lookup, so that ticks cannot answer it.
pub(crate) struct Edge;

impl Tile {
    pub(crate) const LANES: usize = 5;
    /// Maximal number of tiles below a split tile.
    pub(crate) const BRANCHES: usize = TICKS + 1;
    /// Maximal distance from the start of the next tile at which 16 bits of an address order it.
    pub(crate) const NEAR: u64 = 0x7fff;
    /// A tile without occupants: no lane has an id.
    pub(crate) const VACANT: Self = Self([0; 32]);

    pub(crate) fn new(lanes: impl IntoIterator<Item = Lane>) -> Self {
        let mut tile = Self::VACANT;
        for (i, lane) in lanes.into_iter().enumerate().take(Self::LANES) {
            tile.0[START + i] = lane.start;
            tile.0[EXTENT + i] = lane.extent;
            tile.0[FROM + i] = lane.from;
            tile.0[LENGTH + i] = lane.to - lane.from;
            tile.set_word(i, lane.id);
        }
        tile
    }

    /// Returns a tile whose branches start at index `first`; each of `ticks` starts the next
    /// branch.
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

    /// Returns a tile for `count` entries of the overflow list from `first` on, all with the
    /// addresses of `lane`.
    pub(crate) fn overflow(lane: Lane, first: u32, count: u32) -> Self {
        let mut tile = Self::new([lane]);
        tile.set_word(1, first);
        tile.set_word(2, count);
        tile.set(Flags::OVERFLOW);
        tile
    }

    /// Returns the tile as it is after so many other branches and entries of the overflow list.
    pub(crate) fn moved(&self, branches: usize, overflow: usize) -> Self {
        let (at, before) = match self.flags() & (Flags::SPLIT | Flags::OVERFLOW) {
            Flags::SPLIT => (0, branches),
            Flags::OVERFLOW => (1, overflow),
            _ => return *self,
        };
        let mut tile = *self;
        let moved = u32::try_from(self.word(at) as usize + before);
        tile.set_word(
            at,
            moved.expect("fewer than 2^32 tiles and overflow entries"),
        );
        tile
    }

    /// Returns the range of an overflow tile in the overflow list.
    pub(crate) fn overflow_range(&self) -> Range<usize> {
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

    /// Notes that addresses mapped here may belong to the next tile, which starts at `next`, at
    /// most
    /// [`NEAR`](Self::NEAR) away from them.
    pub(crate) fn set_next(&mut self, next: u64) {
        self.0[NEXT] = next as u16;
        self.set(Flags::NEXT);
    }

    /// Returns whether an address mapped here belongs to a later tile and no search is needed to
    /// find it.
    #[inline(always)]
    pub(crate) fn leads_on(&self, addr: u16) -> bool {
        self.flags() & (Flags::NEXT | Flags::MORE) == Flags::NEXT
            && addr.wrapping_sub(self.0[NEXT]) as i16 >= 0
    }

    /// Returns an id, or the number stored instead.
    #[inline(always)]
    pub(crate) fn word(&self, i: usize) -> u32 {
        u32::from(self.0[IDS + 2 * i]) | u32::from(self.0[IDS + 2 * i + 1]) << 16
    }

    fn set_word(&mut self, i: usize, word: u32) {
        self.0[IDS + 2 * i] = word as u16;
        self.0[IDS + 2 * i + 1] = (word >> 16) as u16;
    }

    /// Returns the index of the branch for `tick`, of a split tile.
    #[inline(always)]
    pub(crate) fn child(&self, tick: u16) -> usize {
        let (tick, zero) = (u16x8::splat(tick), u16x8::splat(0));
        let passed = |at| self.eight(at).saturating_sub(tick).cmp_eq(zero);
        let passed = masks(passed(0), passed(8));
        self.word(0) as usize + passed.trailing_ones() as usize
    }

    /// Returns the indices of all branches of a split tile.
    pub(crate) fn children(&self) -> Range<usize> {
        self.child(0)..self.child(u16::MAX - 1) + 1
    }

    /// Returns whether a lane covers an address; an overflow tile has one lane.
    pub(crate) fn is_at(&self, lane: usize, addr: u16) -> bool {
        addr.wrapping_sub(self.0[START + lane]) <= self.0[EXTENT + lane]
    }

    /// Returns the ids of all occupants of an address, at any time.
    pub(crate) fn ids_at(&self, addr: u16) -> impl Iterator<Item = u32> + '_ {
        (0..Self::LANES)
            .filter(move |&lane| self.is_at(lane, addr))
            .map(|i| self.word(i))
            .filter(|&id| id != 0)
    }

    /// Returns the ids of all lanes, and 0.
    pub(crate) fn all_ids(&self) -> impl Iterator<Item = u32> + '_ {
        (0..Self::LANES).map(|lane| self.word(lane))
    }

    /// Returns the lane that is alive at an address in a tick, or the one after the last; `Err` if
    /// a lifetime at the address starts or ends in this tick.
    #[inline(always)]
    pub(crate) fn lane(&self, addr: u16, tick: u16) -> Result<usize, Edge> {
        let (here, edge) = self.compare(addr, tick);
        let both = masks(here, edge);
        if both & ((1 << Self::LANES) - 1) << 8 != 0 {
            return Err(Edge);
        }
        Ok((both | 1 << Self::LANES).trailing_zeros() as usize)
    }

    /// Returns the id of a lane; 0 for the lane after the last.
    pub(crate) fn id(&self, lane: usize) -> u32 {
        if lane < Self::LANES {
            self.word(lane)
        } else {
            0
        }
    }

    /// Returns the ids that are alive at an address during any part of a tick.
    pub(crate) fn ids(&self, addr: u16, tick: u16) -> impl Iterator<Item = u32> + '_ {
        let (here, edge) = self.compare(addr, tick);
        let here = masks(here, edge);
        (0..Self::LANES)
            .filter(move |i| here >> i & 1 != 0)
            .map(|i| self.word(i))
    }

    /// Returns which lanes are alive at an address in a tick, and which start or end in the tick.
    /// Compares all lanes at once, so that few steps depend on the load.
    #[inline(always)]
    fn compare(&self, addr: u16, tick: u16) -> (u16x8, u16x8) {
        let zero = u16x8::splat(0);
        let (age, length) = (u16x8::splat(tick) - self.eight(FROM), self.eight(LENGTH));
        let beyond = (u16x8::splat(addr) - self.eight(START)).saturating_sub(self.eight(EXTENT));
        let here = (beyond | age.saturating_sub(length)).cmp_eq(zero);
        (here, age.cmp_eq(zero) | age.cmp_eq(length))
    }

    #[inline(always)]
    fn eight(&self, at: usize) -> u16x8 {
        let eight: [u16; 8] = self.0[at..at + 8].try_into().expect("eight half-words");
        u16x8::new(eight)
    }
}

/// Returns one bit for each lane; those of `low` are in the lower byte.
#[inline(always)]
fn masks(low: u16x8, high: u16x8) -> u32 {
    cast::<[u16x8; 2], i16x16>([low, high]).move_mask() as u32
}
