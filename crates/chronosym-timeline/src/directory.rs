//! From an address to its segment without a search: chunks of address space, each with buckets as fine as its segments are dense.

use std::iter;

use crate::regions::{Region, Regions};

/// A chunk is at least so many bytes (log2), so that a heap of code has few of them.
const SMALLEST: u32 = 16;
/// And at most so many: no more than a region has.
const LARGEST: u32 = 30;
/// The key of an empty slot: no address has it.
const EMPTY: u64 = u64::MAX;
/// log2 of the granules of a bucket.
const GRANULES: u32 = 4;
/// A granule with this count, the highest in four bits, has as many or more.
const FULL: u32 = 15;

/// An aligned part of the address space, in one region.
#[derive(Clone, Copy)]
struct Chunk {
    /// The upper bits of its addresses.
    key: u64,
    /// The lower half of its region's base: what an offset is reckoned from.
    base: u32,
    /// The number of its first granule among those of the address space, less that among those of the table.
    bias: u32,
    /// log2 of the bytes of a granule.
    shift: u32,
}

/// Sixteen granules.
#[derive(Clone, Copy, Default)]
struct Bucket {
    /// For each granule four bits: how many segments begin in the bucket up to its end. The low and the high half: three words
    /// are 12 bytes, a u64 would make it 16.
    counts: [u32; 2],
    /// The last segment that begins before the bucket. The first of a region is taken to begin before everything.
    before: u32,
}

/// Where the search for the last segment that begins at an address or before it may start.
#[derive(Clone, Copy)]
pub(crate) struct Hint {
    /// The last segment that begins in the address's granule or before, or one near it that is dense.
    pub(crate) segment: u32,
    /// The address in its region. An address before the region's base has one behind all segments.
    pub(crate) offset: u32,
}

/// The chunks in which segments lie, found by hashing, and their buckets.
pub(crate) struct Directory {
    chunk_shift: u32,
    /// 64 less the log2 of the number of slots.
    hash_shift: u32,
    slots: Vec<Chunk>,
    buckets: Vec<Bucket>,
}

impl Directory {
    /// The size of chunks, as log2 of bytes, for segments with these first and last addresses: as small as is possible with few
    /// chunks, which the cache of the processor keeps.
    pub(crate) fn chunk_shift(bounds: &[(u64, u64)]) -> u32 {
        let most = (bounds.len() as u64 / 64).clamp(64, 256);
        (SMALLEST..LARGEST)
            .find(|&shift| chunks(bounds, shift) <= most)
            .unwrap_or(LARGEST)
    }

    /// `bounds`: first and last address of each segment, in address order; `regions`: with gaps of a chunk between them. Tells
    /// `dense` which segments may be found where another should be.
    pub(crate) fn new(
        bounds: &[(u64, u64)],
        regions: &Regions,
        chunk_shift: u32,
        mut dense: impl FnMut(usize),
    ) -> Self {
        let mut directory = Self {
            chunk_shift,
            hash_shift: 0,
            slots: Vec::new(),
            buckets: Vec::new(),
        };
        let mut chunks = Vec::new();
        let mut before = None;
        let mut list = regions.list().iter().peekable();
        while let Some(region) = list.next() {
            let after = list.peek().copied();
            let end = after.map_or(bounds.len(), |after| after.first_segment as usize);
            if !region.is_wide() {
                let bounds = &bounds[region.first_segment as usize..end];
                directory.push(region, [before, after], bounds, &mut chunks, &mut dense);
            }
            before = Some(region);
        }
        directory.buckets.shrink_to_fit();
        directory.hash(&chunks);
        directory
    }

    /// Makes the chunks of a region.
    fn push(
        &mut self,
        region: &Region,
        [before, after]: [Option<&Region>; 2],
        bounds: &[(u64, u64)],
        chunks: &mut Vec<Chunk>,
        dense: &mut impl FnMut(usize),
    ) {
        let key = |addr: u64| addr >> self.chunk_shift;
        // Where regions meet, only a search can tell.
        let (first, last) = (key(region.base), key(region.last));
        let shared = [
            before.map(|before| key(before.last)),
            after.map(|after| key(after.base)),
        ];
        let mut begun = region.first_segment;
        let mut starts = bounds[1..].iter().map(|bounds| bounds.0).peekable();
        for key in first..=last {
            let end = (key + 1) << self.chunk_shift;
            let begins: Vec<u64> =
                iter::from_fn(|| starts.next_if(|&start| start < end || end == 0)).collect();
            if !shared.contains(&Some(key)) {
                chunks.extend(self.chunk_of(key, region.base, begun, &begins, dense));
            }
            begun += begins.len() as u32;
        }
    }

    /// Makes a chunk and its buckets: `begins` are the addresses in it at which segments begin, `begun` is the last that begins
    /// before it. `None` if there are too many buckets already.
    fn chunk_of(
        &mut self,
        key: u64,
        base: u64,
        mut begun: u32,
        begins: &[u64],
        dense: &mut impl FnMut(usize),
    ) -> Option<Chunk> {
        let granules = (begins.len() * 2).next_power_of_two();
        let granules = granules.clamp(1 << GRANULES, 1 << self.chunk_shift);
        let shift = self.chunk_shift - granules.trailing_zeros();
        let first = self.buckets.len() << GRANULES;
        u32::try_from(first + granules + (1 << GRANULES)).ok()?;
        let granule = |addr: u64| (addr >> shift) - (key << self.chunk_shift >> shift);
        let mut begins = begins.iter().map(|&start| granule(start)).peekable();
        for bucket in 0..granules as u64 >> GRANULES {
            let (mut counts, mut count) = (0_u64, 0);
            for place in 0..1 << GRANULES {
                let before = count;
                while begins.next_if_eq(&(bucket << GRANULES | place)).is_some() {
                    count += 1;
                }
                // Of those that begin in one granule only the last two can be found.
                if count > before + 1 {
                    dense((begun + count) as usize - 1);
                }
                if count >= FULL {
                    dense((begun + FULL) as usize - 1);
                    dense((begun + FULL) as usize);
                }
                counts |= u64::from(FULL.min(count)) << (place * 4);
            }
            self.buckets.push(Bucket {
                counts: [counts as u32, (counts >> 32) as u32],
                before: begun,
            });
            begun += count;
        }
        // Ends the candidates of the last bucket.
        self.buckets.push(Bucket {
            counts: [0; 2],
            before: begun,
        });
        Some(Chunk {
            key,
            base: base as u32,
            bias: ((key << self.chunk_shift >> shift) as u32).wrapping_sub(first as u32),
            shift,
        })
    }

    fn hash(&mut self, chunks: &[Chunk]) {
        let slots = (chunks.len() * 2).next_power_of_two().max(2);
        self.hash_shift = 64 - slots.trailing_zeros();
        let empty = Chunk {
            key: EMPTY,
            base: 0,
            bias: 0,
            shift: 0,
        };
        self.slots = vec![empty; slots];
        for chunk in chunks {
            let mut slot = self.slot(chunk.key);
            while self.slots[slot].key != EMPTY {
                slot = (slot + 1) & (slots - 1);
            }
            self.slots[slot] = *chunk;
        }
    }

    /// Chunks one after the other, as heaps have them, get slots far from each other (Fibonacci hashing).
    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.hash_shift) as usize
    }

    #[inline(always)]
    fn chunk(&self, addr: u64) -> Option<&Chunk> {
        let key = addr >> self.chunk_shift;
        let mut slot = self.slot(key);
        loop {
            let chunk = &self.slots[slot];
            if chunk.key == key {
                return Some(chunk);
            }
            if chunk.key == EMPTY {
                return None;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Where to look for an address; `None` if only a search can tell.
    #[inline(always)]
    pub(crate) fn hint(&self, addr: u64) -> Option<Hint> {
        let chunk = self.chunk(addr)?;
        let granule = chunk.granule(addr);
        let bucket = &self.buckets[(granule >> GRANULES) as usize];
        let counts = u64::from(bucket.counts[0]) | u64::from(bucket.counts[1]) << 32;
        let place = granule & ((1 << GRANULES) - 1);
        let count = (counts >> (place * 4)) as u32 & FULL;
        Some(Hint {
            segment: bucket.before + count,
            offset: (addr as u32).wrapping_sub(chunk.base),
        })
    }

    /// The first and the last of the segments that may be the last to begin at an address or before it, and the address's offset;
    /// `None` if only a search among all can tell.
    pub(crate) fn candidates(&self, addr: u64) -> Option<(usize, usize, u32)> {
        let chunk = self.chunk(addr)?;
        let bucket = (chunk.granule(addr) >> GRANULES) as usize;
        let [first, last] = [bucket, bucket + 1].map(|b| self.buckets[b].before as usize);
        Some((first, last, (addr as u32).wrapping_sub(chunk.base)))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Chunk>() + self.buckets.capacity() * size_of::<Bucket>()
    }
}

impl Chunk {
    /// The granule of an address, among those of the table.
    #[inline(always)]
    fn granule(&self, addr: u64) -> u32 {
        ((addr >> self.shift) as u32).wrapping_sub(self.bias)
    }
}

/// How many chunks of a size segments lie in.
fn chunks(bounds: &[(u64, u64)], shift: u32) -> u64 {
    let (mut count, mut next) = (0, 0);
    for &(start, last) in bounds.iter().filter(|bounds| bounds.1 - bounds.0 < 1 << 31) {
        let first = (start >> shift).max(next);
        next = (last >> shift) + 1;
        count += next.saturating_sub(first);
    }
    count
}
