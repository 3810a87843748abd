//! The memory that rows of tables take outside of the session.

use chronosym_core::{Budget, LimitReached, Limits, Share};

/// Charges memory to the budget.
pub(crate) struct Memory {
    budget: Budget,
    exceeded: String,
}

impl Memory {
    /// Creates the budget of tables of a size in bytes.
    pub fn of(limits: &Limits, size: u64) -> Self {
        let budget = Budget::of(limits, Some(size));
        let exceeded = LimitReached::Memory(budget.bytes()).to_string();
        Memory { budget, exceeded }
    }

    /// Charges bytes; fails beyond the limit.
    pub fn charge(&mut self, bytes: u64) -> Result<(), String> {
        self.budget.charge(bytes);
        let is_within = self.budget.has_room(Share::Frames);
        is_within.then_some(()).ok_or_else(|| self.exceeded.clone())
    }
}
