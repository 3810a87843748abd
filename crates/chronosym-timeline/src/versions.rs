//! The versions that are not their segment's latest, and the search among them by time.

use std::hint::select_unpredictable;
use std::ops::Range;

/// From a time, for a while.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: u64,
    length: u64,
}

impl Span {
    pub(crate) const EMPTY: Self = Self { from: 0, length: 0 };

    pub(crate) fn new(from: u64, to: u64) -> Self {
        Self {
            from,
            length: to - from,
        }
    }

    #[inline(always)]
    pub(crate) fn to(self) -> u64 {
        self.from + self.length
    }

    /// One subtraction and one comparison: few steps that wait for memory.
    #[inline(always)]
    pub(crate) fn contains(self, time: u64) -> bool {
        time.wrapping_sub(self.from) < self.length
    }
}

/// A life and whose it is, packed into 20 bytes.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct Version {
    pub(crate) life: Span,
    pub(crate) id: u32,
}

impl Version {
    #[inline(always)]
    pub(crate) fn to(self) -> u64 {
        { self.life }.to()
    }

    #[inline(always)]
    pub(crate) fn lives_at(self, time: u64) -> bool {
        { self.life }.contains(time)
    }
}

/// Lists of versions, one after the other. With its key a version takes 22 bytes.
#[derive(Default)]
pub(crate) struct Versions {
    pub(crate) list: Vec<Version>,
    /// For each version the 16 highest bits of the time it ends at: what a search reads.
    keys: Vec<i16>,
    clock: Clock,
}

/// Makes keys of times: a later time never has a lesser key.
#[derive(Clone, Copy, Default)]
struct Clock {
    zero: u64,
    shift: u32,
}

impl Clock {
    #[inline(always)]
    fn key(self, time: u64) -> i16 {
        let ticks = time.saturating_sub(self.zero) >> self.shift;
        let ticks = ticks.min(u64::from(u16::MAX)) as u16;
        // In the order of signed numbers, which is what processors compare several of at once.
        (ticks ^ 1 << 15).cast_signed()
    }
}

/// A longer list is searched by halves.
const SCANNED: usize = 256;

impl Versions {
    pub(crate) fn vacant(len: usize) -> Self {
        let vacant = Version {
            life: Span::EMPTY,
            id: 0,
        };
        Self {
            list: vec![vacant; len],
            ..Self::default()
        }
    }

    /// To be called when the list is complete.
    pub(crate) fn make_keys(&mut self) {
        let times = || self.list.iter().map(|v| v.to());
        let zero = times().min().unwrap_or(0);
        let last = times().filter(|&to| to < u64::MAX).max().unwrap_or(zero);
        let clock = Clock {
            zero,
            shift: (u64::BITS - (last - zero).leading_zeros()).saturating_sub(u16::BITS),
        };
        self.keys = times().map(|to| clock.key(to)).collect();
        self.clock = clock;
    }

    /// Who is alive at `time`, among versions that follow one another.
    #[inline]
    pub(crate) fn at(&self, range: Range<usize>, time: u64) -> u32 {
        let key = self.clock.key(time);
        let keys = &self.keys[range.clone()];
        let ended = if keys.len() > SCANNED {
            keys.partition_point(|&to| to < key)
        } else {
            // All of them at once: the keys are few cache lines, none of which waits for another.
            usize::from(keys.iter().map(|&to| u16::from(to < key)).sum::<u16>())
        };
        let Some(version) = self.list[range.clone()].get(ended) else {
            return 0;
        };
        if version.to() <= time {
            return self.search(range.start + ended..range.end, time);
        }
        select_unpredictable(version.lives_at(time), version.id, 0)
    }

    /// Of equal keys the times decide.
    #[cold]
    fn search(&self, range: Range<usize>, time: u64) -> u32 {
        let versions = &self.list[range];
        let ended = versions.partition_point(|version| version.to() <= time);
        versions
            .get(ended)
            .filter(|version| version.lives_at(time))
            .map_or(0, |version| version.id)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Version>() + self.keys.capacity() * size_of::<i16>()
    }
}
