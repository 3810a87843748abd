//! Regions of mapped address space, in which 32 bits are enough for an offset.

/// A region is not longer: an offset from its base is told from that of an address before the base, which wraps around.
const LONGEST: u64 = 1 << 31;

/// A segment's place in its region.
#[derive(Clone, Copy)]
pub(crate) struct Offsets {
    pub(crate) start: u32,
    /// The last offset, less the first.
    pub(crate) extent: u32,
}

impl Offsets {
    /// One subtraction and one comparison: few steps that wait for memory.
    #[inline(always)]
    pub(crate) fn contains(self, offset: u32) -> bool {
        offset.wrapping_sub(self.start) <= self.extent
    }
}

/// Segments near each other, or one that is too wide for 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) base: u64,
    pub(crate) last: u64,
    pub(crate) first_segment: u32,
}

impl Region {
    /// Whether it is one segment whose offsets do not fit in 32 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.last - self.base >= LONGEST
    }

    /// The offset of an address in it; in a wide one every offset will do that lies within its segment.
    pub(crate) fn offset(&self, addr: u64) -> u32 {
        u32::try_from(addr - self.base).unwrap_or(u32::MAX)
    }
}

/// All regions, in address order.
pub(crate) struct Regions {
    /// Their first addresses, which a search reads.
    bases: Vec<u64>,
    list: Vec<Region>,
}

impl Regions {
    /// Divides segments, given by their first and last addresses in address order, where the gap between two is `gap` or more.
    pub(crate) fn new(bounds: &[(u64, u64)], gap: u64) -> Self {
        let mut list: Vec<Region> = Vec::new();
        for (&(start, last), index) in bounds.iter().zip(0..) {
            match list.last_mut() {
                Some(region) if start - region.last <= gap && last - region.base < LONGEST => {
                    region.last = last;
                }
                _ => list.push(Region {
                    base: start,
                    last,
                    first_segment: index,
                }),
            }
        }
        list.shrink_to_fit();
        Self {
            bases: list.iter().map(|region| region.base).collect(),
            list,
        }
    }

    pub(crate) fn list(&self) -> &[Region] {
        &self.list
    }

    /// The region that holds an address, and its position.
    pub(crate) fn holding(&self, addr: u64) -> Option<(usize, &Region)> {
        let position = self
            .bases
            .partition_point(|&base| base <= addr)
            .checked_sub(1)?;
        let region = &self.list[position];
        (addr <= region.last).then_some((position, region))
    }

    /// The region that a segment is in.
    fn of_segment(&self, segment: usize) -> &Region {
        let after = self
            .list
            .partition_point(|r| r.first_segment as usize <= segment);
        &self.list[after - 1]
    }

    /// The first and last address of a segment.
    pub(crate) fn bounds(&self, segment: usize, offsets: Offsets) -> (u64, u64) {
        let region = self.of_segment(segment);
        if region.is_wide() {
            (region.base, region.last)
        } else {
            let start = region.base + u64::from(offsets.start);
            (start, start + u64::from(offsets.extent))
        }
    }

    /// What [`Regions::bounds`] of a segment are in the table.
    pub(crate) fn offsets(&self, segment: usize, bounds: (u64, u64)) -> Offsets {
        let start = self.of_segment(segment).offset(bounds.0);
        Offsets {
            start,
            extent: u32::try_from(bounds.1 - bounds.0).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bases.capacity() * size_of::<u64>() + self.list.capacity() * size_of::<Region>()
    }
}
