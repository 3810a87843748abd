//! From an address to its tile without a search: chunks of address space, each with granules as fine as what is in it is dense.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "hashes are cut to the table, which is a power of two, and places are those of the table"
)]

use std::mem;

use crate::layout::{Segment, tile_of};

/// A chunk is at least so many bytes (log2), so that a heap of code has few of them.
const SMALLEST: u32 = 16;
/// And at most so many: what is wider than two of them is found by a search.
const LARGEST: u32 = 30;
/// The start of an empty slot: no chunk has it.
const EMPTY: u64 = u64::MAX;
/// 2^64 by the golden ratio: its multiples lie far from each other.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// So many multipliers are tried.
const MULTIPLIERS: u64 = 8;
/// log2 of the granules of a bucket, and the fewest of a chunk.
const GRANULES: u32 = 6;
/// As many granules a segment tell tiles well enough, however many occupants it has.
const ENOUGH: u64 = 4;
/// If there are more granules than this, the caches of the processor do not keep them: finding tiles with half as many is faster.
const CACHED: u64 = 1 << 20;
/// A search finds what begins in a granule behind more tiles than this.
const STEPS: usize = 4;

/// An aligned part of the address space.
#[derive(Clone, Copy)]
struct Chunk {
    /// Its first address.
    start: u64,
    /// The number of its first granule among those of the address space, less that among those of the table.
    bias: u32,
    /// log2 of the bytes of a granule.
    shift: u32,
}

/// What begins in a chunk.
struct Contents {
    /// The first address of the chunk.
    start: u64,
    segments: u64,
    occupants: u64,
}

impl Contents {
    /// The more occupants a segment has, the fewer segments a tile has, and the more it costs where tiles share one because no
    /// granule begins between them.
    fn granules(&self, most: u64, coarse: bool) -> u64 {
        let each = self.occupants / self.segments.max(1);
        // Half as many granules where there are several make for more tiles.
        let share = if coarse && each == 1 { 4 } else { 2 };
        let granules = (self.occupants / share).saturating_mul(each);
        let granules = granules.min(self.segments * ENOUGH).next_power_of_two();
        granules.clamp(1 << GRANULES, most)
    }
}

/// The chunks in which there is something, found by hashing, and their buckets.
pub(crate) struct Directory {
    chunk_shift: u32,
    /// The bits of an address that are its chunk's.
    chunk_mask: u64,
    multiplier: u64,
    slots: Vec<Chunk>,
    /// The tile of each bucket's first address.
    buckets: Vec<u32>,
    /// For each granule the tile of its first address, less that of its bucket's. 255: that many or more.
    granules: Vec<u8>,
    /// Nothing is anywhere but in chunks.
    complete: bool,
}

/// Where an address is.
#[derive(Clone, Copy)]
pub(crate) enum Hint {
    /// In this tile, or in one after it if the tile says so.
    Tile(u32),
    /// Nothing is there.
    Nowhere,
    /// Only a search can tell.
    Unknown,
}

impl Directory {
    /// Divides the address space. `segments`: all that there are, in address order.
    pub(crate) fn new<'a>(segments: impl Iterator<Item = Segment<'a>> + Clone) -> Self {
        let chunk_shift = chunk_shift(segments.clone());
        let mut chunks: Vec<Contents> = Vec::new();
        let mut complete = true;
        for segment in segments {
            let (first, last) = (segment.start >> chunk_shift, segment.last >> chunk_shift);
            let between = if is_narrow(&segment) {
                first + 1..last
            } else {
                complete = false;
                0..0
            };
            for number in [first].into_iter().chain(between).chain([last]) {
                let start = number << chunk_shift;
                if chunks.last().is_none_or(|chunk| chunk.start != start) {
                    chunks.push(Contents {
                        start,
                        segments: 0,
                        occupants: 0,
                    });
                }
                if number == first
                    && let Some(chunk) = chunks.last_mut()
                {
                    chunk.segments += 1;
                    chunk.occupants += segment.ids.len() as u64;
                }
            }
        }
        let mut directory = Self {
            chunk_shift,
            chunk_mask: u64::MAX << chunk_shift,
            multiplier: 0,
            slots: Vec::new(),
            buckets: Vec::new(),
            granules: Vec::new(),
            complete,
        };
        directory.hash(&chunks);
        directory
    }

    fn hash(&mut self, chunks: &[Contents]) {
        let slots = (chunks.len() * 2).next_power_of_two().max(2);
        let empty = Chunk {
            start: EMPTY,
            bias: 0,
            shift: 0,
        };
        self.slots = vec![empty; slots];
        self.multiplier = multiplier(chunks.iter().map(|chunk| chunk.start), slots);
        let most = 1 << self.chunk_shift;
        let fine = chunks.iter().map(|chunk| chunk.granules(most, false));
        let coarse = fine.sum::<u64>() > CACHED;
        let mut first = 0_u64;
        for chunk in chunks {
            let granules = chunk.granules(most, coarse);
            let shift = self.chunk_shift - granules.trailing_zeros();
            let mut slot = self.slot(chunk.start);
            while self.slots[slot].start != EMPTY {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = Chunk {
                start: chunk.start,
                bias: ((chunk.start >> shift) as u32).wrapping_sub(first as u32),
                shift,
            };
            first += granules;
        }
        assert!(first < 1 << 32, "fewer than 2^32 granules");
    }

    /// Fills the buckets. `starts`: where tiles begin; `more` is told of each that may be found where the next should be, and
    /// how far from where that begins such an address can be: `u64::MAX` if tiles after the next may be it too.
    pub(crate) fn fill(&mut self, starts: &[u64], mut more: impl FnMut(usize, u64)) {
        let mut chunks: Vec<Chunk> = self.slots.clone();
        chunks.retain(|chunk| chunk.start != EMPTY);
        chunks.sort_unstable_by_key(|chunk| chunk.start);
        for chunk in chunks {
            let mut tile = tile_of(starts, chunk.start);
            for bucket in 0..1_u64 << (self.chunk_shift - chunk.shift - GRANULES) {
                let first = chunk.start + (bucket << GRANULES << chunk.shift);
                tile = self.fill_bucket(first, chunk.shift, starts, tile, &mut more);
            }
        }
        self.buckets.shrink_to_fit();
        self.granules.shrink_to_fit();
    }

    /// Fills the bucket at an address. `tile` is one that begins there or before; gives the last that begins in the bucket.
    fn fill_bucket(
        &mut self,
        first: u64,
        shift: u32,
        starts: &[u64],
        tile: usize,
        more: &mut impl FnMut(usize, u64),
    ) -> usize {
        let size = 1_u64 << GRANULES << shift;
        let after = starts[tile + 1..].iter();
        let mut tile = tile + after.take_while(|&&start| start <= first).count();
        let before = tile;
        self.buckets.push(before as u32);
        let mut filled = 0;
        loop {
            // The granules up to the next tile lead to this one.
            let next = starts.get(tile + 1).map(|start| start - first);
            let next = next.filter(|&offset| offset < size);
            let end = next.map_or(1 << GRANULES, |next| next.div_ceil(1 << shift) as usize);
            if filled < end {
                let passed = u8::try_from(tile - before).unwrap_or(u8::MAX);
                self.granules
                    .resize(self.granules.len() + end - filled, passed);
                filled = end;
            }
            let passed = self.granules.last().copied().unwrap_or_default();
            let found = before + usize::from(passed);
            // What lies behind is found by a search where steps from tile to tile would be many, or a granule cannot tell it.
            let steps = tile - found;
            if steps > STEPS || steps > 0 && passed == u8::MAX {
                more(found, u64::MAX);
            }
            let Some(next) = next else {
                return tile;
            };
            if !next.is_multiple_of(1 << shift) {
                more(tile, 1 << shift);
            }
            tile += 1;
        }
    }

    #[inline(always)]
    fn slot(&self, start: u64) -> usize {
        slot(start, self.multiplier, self.slots.len())
    }

    #[inline(always)]
    fn chunk(&self, addr: u64) -> Option<&Chunk> {
        let start = addr & self.chunk_mask;
        let mut slot = self.slot(start);
        loop {
            let chunk = &self.slots[slot];
            if chunk.start == start {
                return Some(chunk);
            }
            if chunk.start == EMPTY {
                return None;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The first and last address of an address's granule; itself where there are none.
    pub(crate) fn granule(&self, addr: u64) -> (u64, u64) {
        self.chunk(addr).map_or((addr, addr), |chunk| {
            let rest = (1 << chunk.shift) - 1;
            (addr & !rest, addr | rest)
        })
    }

    /// Where to look for an address.
    #[inline(always)]
    pub(crate) fn hint(&self, addr: u64) -> Hint {
        let Some(chunk) = self.chunk(addr) else {
            return if self.complete {
                Hint::Nowhere
            } else {
                Hint::Unknown
            };
        };
        let granule = ((addr >> chunk.shift) as u32).wrapping_sub(chunk.bias);
        let passed = u32::from(self.granules[granule as usize]);
        Hint::Tile(self.buckets[(granule >> GRANULES) as usize] + passed)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Chunk>()
            + self.buckets.capacity() * size_of::<u32>()
            + self.granules.capacity()
    }
}

/// The slot in which the search for a chunk begins.
#[inline(always)]
fn slot(start: u64, multiplier: u64, slots: usize) -> usize {
    // The upper bits of a product are mixed best; 24 are left.
    (start.wrapping_mul(multiplier) >> 40) as usize & (slots - 1)
}

/// One of some multipliers that gives most chunks slots of their own: a step to the next slot is a jump that the processor does
/// not foresee.
fn multiplier(starts: impl Iterator<Item = u64> + Clone, slots: usize) -> u64 {
    let clashes = |multiplier: &u64| {
        let mut taken = vec![false; slots];
        let mut take = |start| mem::replace(&mut taken[slot(start, *multiplier, slots)], true);
        starts.clone().filter(|&start| take(start)).count()
    };
    let odd = (0..MULTIPLIERS).map(|i| GOLDEN.wrapping_mul(2 * i + 1));
    odd.min_by_key(clashes).unwrap_or(GOLDEN)
}

/// The size of chunks, as log2 of bytes: as small as is possible with few chunks, which the cache of the processor keeps.
fn chunk_shift<'a>(segments: impl Iterator<Item = Segment<'a>> + Clone) -> u32 {
    let most = (segments.clone().count() as u64 / 64).clamp(64, 256);
    let narrow = segments.filter(is_narrow);
    (SMALLEST..LARGEST)
        .find(|&shift| chunks(narrow.clone(), shift) <= most)
        .unwrap_or(LARGEST)
}

/// How many chunks of a size segments lie in.
fn chunks<'a>(segments: impl Iterator<Item = Segment<'a>>, shift: u32) -> u64 {
    let (mut count, mut next) = (0, 0);
    for segment in segments {
        let first = (segment.start >> shift).max(next);
        next = (segment.last >> shift) + 1;
        count += next.saturating_sub(first);
    }
    count
}

/// Whether it is found without a search.
fn is_narrow(segment: &Segment<'_>) -> bool {
    segment.last - segment.start < 2 << LARGEST
}
