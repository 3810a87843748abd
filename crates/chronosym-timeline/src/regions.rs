//! Where in the segment table an address is: regions of mapped address space, each with a bucket table.

/// A gap of this many bytes between two segments may end a region.
const GAP: u64 = 4096;
/// The shift of a region that is one segment too wide for 32-bit offsets: two buckets cover any of them.
const WIDE: u8 = 63;

/// A segment's place in its region.
#[derive(Clone, Copy)]
pub(crate) struct Offsets {
    pub(crate) start: u32,
    pub(crate) last: u32,
}

/// Where an address is: the bucket, the granule in it, and the offset in the region.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) bucket: u32,
    pub(crate) granule: u32,
    pub(crate) offset: u32,
}

/// A stretch of a region in 64 granules.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bucket {
    /// The granules in which a segment begins, the low and the high half: three words are 12 bytes, a u64 would make it 16.
    begins: [u32; 2],
    /// The number of segments that begin before it. The top bit says that several begin in one granule.
    before: u32,
}

/// The bit of `Bucket::before`.
const DENSE: u32 = 1 << 31;

impl Bucket {
    #[inline(always)]
    fn begins(self) -> u64 {
        u64::from(self.begins[0]) | u64::from(self.begins[1]) << 32
    }

    #[inline(always)]
    fn before(self) -> usize {
        (self.before & !DENSE) as usize
    }

    #[inline(always)]
    pub(crate) fn is_dense(self) -> bool {
        self.before & DENSE != 0
    }

    /// The last segment that begins in or before the granule of a place, if the bucket is not dense.
    #[inline(always)]
    pub(crate) fn rank(self, place: Place) -> usize {
        let up_to_here = self.begins() << (63 - place.granule);
        // The first segment of a region begins where the region does.
        (self.before() + up_to_here.count_ones() as usize).wrapping_sub(1)
    }
}

/// Segments near each other: offsets in it fit in 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) base: u64,
    last: u64,
    first_segment: u32,
    first_bucket: u32,
    /// log2 of the bytes of a bucket.
    shift: u8,
}

/// Divides sorted segments into regions and finds the segment that holds an address.
pub(crate) struct Regions {
    /// The regions' first addresses: what a lookup searches.
    bases: Vec<u64>,
    regions: Vec<Region>,
    /// The buckets of each region, and one more that ends it.
    buckets: Vec<Bucket>,
}

impl Regions {
    /// `bounds`: first and last address of each segment, in address order.
    pub(crate) fn new(bounds: &[(u64, u64)]) -> Self {
        let mut regions = Self {
            bases: Vec::new(),
            regions: Vec::new(),
            buckets: Vec::new(),
        };
        let widest_gap = gap_to_split(bounds);
        let mut begin = 0;
        for i in 1..=bounds.len() {
            let ends = bounds.get(i).is_none_or(|next| {
                next.0 - bounds[i - 1].1 > widest_gap
                    || next.1 - bounds[begin].0 > u64::from(u32::MAX)
            });
            if ends {
                regions.push(begin, &bounds[begin..i]);
                begin = i;
            }
        }
        regions.bases.shrink_to_fit();
        regions.regions.shrink_to_fit();
        regions.buckets.shrink_to_fit();
        regions
    }

    fn push(&mut self, first_segment: usize, bounds: &[(u64, u64)]) {
        let (base, last) = (bounds[0].0, bounds[bounds.len() - 1].1);
        let span = last - base;
        let shift = if span > u64::from(u32::MAX) {
            WIDE
        } else {
            // Several segments in a bucket, so that the buckets take little memory; granules that seldom hold two.
            let spacing = (span / bounds.len() as u64 + 1).next_power_of_two();
            (spacing.trailing_zeros() + 2).clamp(6, 32) as u8
        };
        self.bases.push(base);
        self.regions.push(Region {
            base,
            last,
            first_segment: first_segment as u32,
            first_bucket: self.buckets.len() as u32,
            shift,
        });
        let mut segments = bounds.iter().map(|bounds| bounds.0 - base).peekable();
        let mut before = first_segment as u32;
        for bucket in 0..=span >> shift {
            let (mut begins, mut dense, mut count) = (0_u64, 0, 0);
            while let Some(start) = segments.next_if(|start| start >> shift <= bucket) {
                let granule = 1 << granule(start, shift);
                dense |= if begins & granule == 0 { 0 } else { DENSE };
                begins |= granule;
                count += 1;
            }
            self.buckets.push(Bucket {
                begins: [begins as u32, (begins >> 32) as u32],
                before: before | dense,
            });
            before += count;
        }
        self.buckets.push(Bucket {
            begins: [0; 2],
            before,
        });
    }

    /// The number of buckets: places sorted by bucket are roughly sorted by address.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The region that a segment is in.
    pub(crate) fn of_segment(&self, segment: usize) -> &Region {
        let after = self
            .regions
            .partition_point(|r| r.first_segment as usize <= segment);
        &self.regions[after - 1]
    }

    /// The first and last address of a segment.
    pub(crate) fn bounds(&self, segment: usize, offsets: Offsets) -> (u64, u64) {
        let region = self.of_segment(segment);
        if region.shift == WIDE {
            (region.base, region.last)
        } else {
            (
                region.base + u64::from(offsets.start),
                region.base + u64::from(offsets.last),
            )
        }
    }

    /// What [`Regions::offsets`] of a segment are in the table.
    pub(crate) fn offsets(&self, segment: usize, bounds: (u64, u64)) -> Offsets {
        let base = self.of_segment(segment).base;
        Offsets {
            start: narrow(bounds.0 - base),
            last: narrow(bounds.1 - base),
        }
    }

    /// The bucket of an address and its offset in its region.
    #[inline(always)]
    pub(crate) fn place(&self, addr: u64) -> Option<Place> {
        let after = self.bases.partition_point(|&base| base <= addr);
        let region = self.regions.get(after.wrapping_sub(1))?;
        if addr > region.last {
            return None;
        }
        let offset = addr - region.base;
        Some(Place {
            bucket: region.first_bucket + (offset >> region.shift) as u32,
            granule: granule(offset, region.shift),
            offset: narrow(offset),
        })
    }

    #[inline(always)]
    pub(crate) fn bucket(&self, place: Place) -> Bucket {
        self.buckets[place.bucket as usize]
    }

    /// The first and the last of the segments that may be the last to begin at a place or before it.
    pub(crate) fn candidates(&self, place: Place) -> (usize, usize) {
        let bucket = place.bucket as usize;
        let (before, after) = (
            self.buckets[bucket].before(),
            self.buckets[bucket + 1].before(),
        );
        // The first bucket of a region has nothing before it.
        (before.saturating_sub(1), after - 1)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bases.capacity() * size_of::<u64>()
            + self.regions.capacity() * size_of::<Region>()
            + self.buckets.capacity() * size_of::<Bucket>()
    }
}

/// The granule of its bucket that an offset is in.
#[inline(always)]
fn granule(offset: u64, shift: u8) -> u32 {
    ((offset >> (shift - 6)) & 63) as u32
}

/// An offset in a region; in a region that is one wide segment every offset will do that lies within it.
#[inline(always)]
fn narrow(offset: u64) -> u32 {
    offset.min(u64::from(u32::MAX)) as u32
}

/// The gap above which a new region begins: such that there are few regions (finding one is a binary search) and the widest
/// gaps, which would waste buckets, lie between them.
fn gap_to_split(bounds: &[(u64, u64)]) -> u64 {
    let most = (bounds.len() / 1024).clamp(16, 512);
    let mut gaps: Vec<u64> = bounds
        .windows(2)
        .map(|w| w[1].0 - w[0].1)
        .filter(|&gap| gap > GAP)
        .collect();
    if gaps.len() <= most {
        return GAP;
    }
    let (_, gap, _) = gaps.select_nth_unstable_by_key(most, |&gap| std::cmp::Reverse(gap));
    *gap
}
