//! Numbers that look random, the same in every run.

/// A linear congruential generator (Knuth's MMIX).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns a number below `end`, at most 2³¹; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // The low bits have short periods.
        (self.0 >> 33) % end.max(1)
    }

    /// Returns an index of a list of this length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}
