//! Maps an address to its tile without a search: chunks of the address space are hashed, and each
//! has granules as fine as its occupants are dense.

use std::mem;

use crate::layout::{Segment, tile_of};

/// log2 of the smallest chunk in bytes, so that a code heap has few chunks.
const SMALLEST: u32 = 16;
/// log2 of the largest chunk in bytes; segments wider than two of them are searched.
const LARGEST: u32 = 30;
/// `start` of an empty slot; no chunk has it.
const EMPTY: u64 = u64::MAX;
/// 2^64 divided by the golden ratio: its multiples are far from each other.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Number of multipliers that are tried.
const MULTIPLIERS: u64 = 8;
/// log2 of the granules of a bucket, which is also the minimum of a chunk.
const GRANULES: u32 = 6;
/// Largest number of granules for each segment: more separate tiles no better.
const ENOUGH: u64 = 4;
/// With more granules than this, which exceed the cache, half as many are faster.
const CACHED: u64 = 1 << 20;
/// Addresses in a granule with more tiles than this are searched.
const STEPS: usize = 4;

/// An aligned part of the address space.
#[derive(Clone, Copy)]
struct Chunk {
    /// First address.
    start: u64,
    /// Number of its first granule in the address space, minus that in the table.
    bias: u32,
    /// log2 of the bytes of a granule.
    shift: u32,
}

/// The segments that start in a chunk, and their occupants.
struct ChunkContents {
    /// First address of the chunk.
    start: u64,
    segments: u64,
    occupants: u64,
}

impl ChunkContents {
    /// Returns the number of granules. The more occupants a segment has, the fewer segments fit in
    /// a tile, and the more two tiles cost that share a granule.
    fn granules(&self, most: u64, coarse: bool) -> u64 {
        let each = self.occupants / self.segments.max(1);
        // With several occupants for each segment, half the granules would mean more tiles.
        let share = if coarse && each == 1 { 4 } else { 2 };
        let granules = (self.occupants / share).saturating_mul(each);
        let granules = granules.min(self.segments * ENOUGH).next_power_of_two();
        granules.clamp(1 << GRANULES, most)
    }
}

/// The chunks with occupants in a hash table, and their granules.
pub(crate) struct Directory {
    chunk_shift: u32,
    /// Bits of an address that identify its chunk.
    chunk_mask: u64,
    multiplier: u64,
    slots: Vec<Chunk>,
    /// Tile of each bucket's first address.
    buckets: Vec<u32>,
    /// Tile of each granule's first address, minus that of its bucket; 255 stands for 255 or more.
    granules: Vec<u8>,
    /// Whether all occupants are in chunks.
    complete: bool,
}

/// The position at which to look up an address.
#[derive(Clone, Copy)]
pub(crate) enum Hint {
    /// In this tile, or in a later one if the tile's flags say so.
    Tile(u32),
    /// No occupant is there.
    Nowhere,
    /// Not covered by the directory: search.
    Unknown,
}

impl Directory {
    /// Divides the address space; `segments` are all segments in address order.
    pub(crate) fn new<'a>(segments: impl Iterator<Item = Segment<'a>> + Clone) -> Self {
        let chunk_shift = chunk_shift(segments.clone());
        let mut chunks: Vec<ChunkContents> = Vec::new();
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
                    chunks.push(ChunkContents {
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

    fn hash(&mut self, chunks: &[ChunkContents]) {
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

    /// Fills the buckets from the first addresses of all tiles. Calls `more` with each tile that a
    /// hint may return for an address of a later tile, and with the largest distance of such an
    /// address from the start of the next tile; `u64::MAX` if it may be beyond the next tile.
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

    /// Fills the bucket at an address. `tile` starts there or before; returns the last tile that
    /// starts in the bucket.
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
            // Granules up to the next tile map to this one.
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
            let hinted = before + usize::from(passed);
            // Later tiles need a search if they are many steps away or further than a granule can
            // express.
            let steps = tile - hinted;
            if steps > STEPS || steps > 0 && passed == u8::MAX {
                more(hinted, u64::MAX);
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

    /// Returns the first and last address of an address's granule; the address itself outside of
    /// chunks.
    pub(crate) fn granule(&self, addr: u64) -> (u64, u64) {
        self.chunk(addr).map_or((addr, addr), |chunk| {
            let rest = (1 << chunk.shift) - 1;
            (addr & !rest, addr | rest)
        })
    }

    /// Returns where to look for an address.
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

/// Returns the first slot to probe for a chunk.
#[inline(always)]
fn slot(start: u64, multiplier: u64, slots: usize) -> usize {
    // The upper bits of a product are mixed best; use 24 of them.
    (start.wrapping_mul(multiplier) >> 40) as usize & (slots - 1)
}

/// Returns the multiplier with the fewest collisions: each probe of a further slot is a
/// mispredicted branch.
fn multiplier(starts: impl Iterator<Item = u64> + Clone, slots: usize) -> u64 {
    let clashes = |multiplier: &u64| {
        let mut taken = vec![false; slots];
        let mut take = |start| mem::replace(&mut taken[slot(start, *multiplier, slots)], true);
        starts.clone().filter(|&start| take(start)).count()
    };
    let odd = (0..MULTIPLIERS).map(|i| GOLDEN.wrapping_mul(2 * i + 1));
    odd.min_by_key(clashes).unwrap_or(GOLDEN)
}

/// Returns log2 of the chunk size in bytes: the smallest with few enough chunks to stay in the
/// cache.
fn chunk_shift<'a>(segments: impl Iterator<Item = Segment<'a>> + Clone) -> u32 {
    let most = (segments.clone().count() as u64 / 64).clamp(64, 256);
    let narrow = segments.filter(is_narrow);
    (SMALLEST..LARGEST)
        .find(|&shift| chunks(narrow.clone(), shift) <= most)
        .unwrap_or(LARGEST)
}

/// Returns the number of chunks of a size that contain the segments.
fn chunks<'a>(segments: impl Iterator<Item = Segment<'a>>, shift: u32) -> u64 {
    let (mut count, mut next) = (0, 0);
    for segment in segments {
        let first = (segment.start >> shift).max(next);
        next = (segment.last >> shift) + 1;
        count += next.saturating_sub(first);
    }
    count
}

/// Returns whether a segment is found without a search.
fn is_narrow(segment: &Segment<'_>) -> bool {
    segment.last - segment.start < 2 << LARGEST
}
