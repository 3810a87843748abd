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

/// Where an address is: the bucket, and the offset in the region.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) bucket: u32,
    pub(crate) offset: u32,
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
    /// For each bucket of each region the first segment that ends in or after it, and one more, the region's last segment.
    buckets: Vec<u32>,
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
            // At least as many bytes in a bucket as a segment and the gap behind it have on average.
            (span / bounds.len() as u64 + 1)
                .next_power_of_two()
                .trailing_zeros() as u8
        };
        self.bases.push(base);
        self.regions.push(Region {
            base,
            last,
            first_segment: first_segment as u32,
            first_bucket: self.buckets.len() as u32,
            shift,
        });
        let mut segment = 0;
        for bucket in 0..=span >> shift {
            while bounds[segment].1 - base < bucket << shift {
                segment += 1;
            }
            self.buckets.push((first_segment + segment) as u32);
        }
        self.buckets.push((first_segment + bounds.len() - 1) as u32);
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
            offset: narrow(offset),
        })
    }

    /// The first and the last of the segments that a place may be in or before.
    #[inline(always)]
    pub(crate) fn candidates(&self, place: Place) -> (usize, usize) {
        let bucket = place.bucket as usize;
        let ends = &self.buckets[bucket..bucket + 2];
        (ends[0] as usize, ends[1] as usize)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bases.capacity() * size_of::<u64>()
            + self.regions.capacity() * size_of::<Region>()
            + self.buckets.capacity() * size_of::<u32>()
    }
}

/// An offset in a region; in a region that is one wide segment every offset will do that lies within it.
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
    if gaps.len() < most {
        return GAP;
    }
    let (_, gap, _) = gaps.select_nth_unstable_by_key(most, |&gap| std::cmp::Reverse(gap));
    *gap
}
