//! The memory that reading and resolving a recording may take.

use crate::limits::Limits;

/// A limit on memory, and the memory in use.
///
/// Sizes are estimated from the numbers of elements, with the constants of this crate, so that a
/// recording reaches its budget at the same event on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    bytes: u64,
    used: u64,
}

/// A consumer of a [`Budget`]. Earlier stages leave memory for later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Share {
    /// Events, samples, code and names: up to 30 % of 256 MiB, and 60 % of what exceeds them.
    Recording,
    /// Frames and functions: up to 45 and 75 %, including the recording.
    Frames,
    /// Call trees and pictures: up to 60 and 90 %, including both. The rest is for readers and
    /// buffers, which grow little with the input.
    Outputs,
}

/// The smallest budget by default: 256 MiB.
const LEAST: u64 = 256 << 20;
/// Bytes of budget for each byte of input, by default.
const OF_INPUT: u64 = 16;
/// Bytes of output for each byte of budget.
const OF_OUTPUT: u64 = 16;
/// Input size assumed for a pipe: the budget is 1 GiB.
const OF_PIPE: u64 = (1 << 30) / OF_INPUT;

impl Budget {
    /// An unlimited budget: that of a session that is not read from a file.
    pub const UNLIMITED: Budget = Budget::new(u64::MAX);

    /// Creates a budget of `bytes`.
    pub const fn new(bytes: u64) -> Self {
        Budget { bytes, used: 0 }
    }

    /// Returns the budget of a recording: the limit, if there is one, or else the default.
    pub fn of(limits: &Limits, input_bytes: Option<u64>) -> Self {
        limits
            .memory
            .map_or_else(|| Budget::of_input(input_bytes), Budget::new)
    }

    /// Returns the default budget for an input of `bytes`: the larger of 256 MiB and 16 times the
    /// input; 1 GiB if the size is unknown.
    pub fn of_input(bytes: Option<u64>) -> Self {
        let of_input = bytes.unwrap_or(OF_PIPE).saturating_mul(OF_INPUT);
        Budget::new(of_input.max(LEAST))
    }

    /// Returns whether the budget is unlimited.
    pub fn is_unlimited(&self) -> bool {
        self.bytes == u64::MAX
    }

    /// Returns the limit in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes that an output should have at most: 16 times the limit, which is 4 GiB or
    /// 256 times the input by default. An output can repeat the names of frames any number of times.
    pub fn output_bytes(&self) -> u64 {
        self.bytes.saturating_mul(OF_OUTPUT)
    }

    /// Sets the memory in use, in bytes.
    pub fn measured(&mut self, used: u64) {
        self.used = used;
    }

    /// Adds bytes to the memory in use.
    pub fn charge(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Returns the bytes that a consumer may still take.
    pub fn left(&self, share: Share) -> u64 {
        if self.is_unlimited() {
            return u64::MAX;
        }
        let (percent, of_more) = match share {
            Share::Recording => (30, 60),
            Share::Frames => (45, 75),
            Share::Outputs => (60, 90),
        };
        let least = self.bytes.min(LEAST);
        let share = least / 100 * percent + (self.bytes - least) / 100 * of_more;
        share.saturating_sub(self.used)
    }

    /// Returns whether a consumer may take more.
    pub fn has_room(&self, share: Share) -> bool {
        self.left(share) > 0
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget::UNLIMITED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_leave_memory_for_later_ones() {
        let mut budget = Budget::new(1_000);
        budget.measured(300);
        let room = [Share::Recording, Share::Frames, Share::Outputs].map(|it| budget.has_room(it));
        assert_eq!(room, [false, true, true]);
        budget.charge(150);
        assert!(!budget.has_room(Share::Frames));
        assert_eq!(budget.left(Share::Outputs), 150);
        assert!(Budget::UNLIMITED.has_room(Share::Recording));
    }

    #[test]
    fn large_budgets_are_used_nearly_whole() {
        let left = |bytes| Budget::new(bytes).left(Share::Outputs);
        let least = left(LEAST);
        assert_eq!(least, LEAST / 100 * 60);
        assert_eq!(left(LEAST + 1_000), least + 900);
        assert_eq!(left(u64::MAX - 1) / (u64::MAX / 100), 89);
    }

    #[test]
    fn the_default_follows_the_input() {
        assert_eq!(Budget::of_input(Some(1)).bytes(), 256 << 20);
        assert_eq!(Budget::of_input(Some(1)).output_bytes(), 4 << 30);
        assert_eq!(Budget::of_input(Some(1 << 30)).bytes(), 16 << 30);
        assert_eq!(Budget::of_input(None).bytes(), 1 << 30);
        assert_eq!(Budget::of_input(Some(u64::MAX)), Budget::UNLIMITED);
    }
}
