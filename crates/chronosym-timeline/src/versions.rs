//! The versions that are not their segment's latest, and the search among them by time.

use std::ops::Range;

/// A life and whose it is, packed into 20 bytes.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub(crate) struct Version {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) id: u32,
}

impl Version {
    #[inline(always)]
    pub(crate) fn lives_at(&self, time: u64) -> bool {
        (self.from <= time) & (time < self.to)
    }
}

/// Lists of versions, one after the other. With its key a version takes 24 bytes.
#[derive(Default)]
pub(crate) struct Versions {
    pub(crate) list: Vec<Version>,
    /// For each version the 32 highest bits of the time it ends at: what a search reads.
    keys: Vec<i32>,
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
    fn key(self, time: u64) -> i32 {
        let ticks = time.saturating_sub(self.zero) >> self.shift;
        let ticks = ticks.min(u64::from(u32::MAX)) as u32;
        // In the order of signed numbers, which is what processors compare several of at once.
        (ticks ^ 1 << 31).cast_signed()
    }
}

/// A longer list is searched by halves.
const SCANNED: usize = 128;

impl Versions {
    pub(crate) fn vacant(len: usize) -> Self {
        let vacant = Version {
            from: 0,
            to: 0,
            id: 0,
        };
        Self {
            list: vec![vacant; len],
            ..Self::default()
        }
    }

    /// To be called when the list is complete.
    pub(crate) fn make_keys(&mut self) {
        let times = || self.list.iter().map(|v| v.to);
        let zero = times().min().unwrap_or(0);
        let last = times().filter(|&to| to < u64::MAX).max().unwrap_or(zero);
        let clock = Clock {
            zero,
            shift: (u64::BITS - (last - zero).leading_zeros()).saturating_sub(u32::BITS),
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
            keys.iter().map(|&to| u32::from(to < key)).sum::<u32>() as usize
        };
        // Of equal keys the times decide.
        self.list[range]
            .iter()
            .skip(ended)
            .find(|version| time < version.to)
            .filter(|version| version.from <= time)
            .map_or(0, |version| version.id)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Version>() + self.keys.capacity() * size_of::<i32>()
    }
}
