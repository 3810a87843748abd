//! How much may be read of what many entries can share.

use super::form::Bad;
use super::unit::Sections;

/// What is read of the smallest file before sharing is suspicious.
const FREE: usize = 1 << 16;

/// Entries may name one list together, so a small file can state more ranges than memory holds. No entry of a list is
/// shorter than two bytes and most are longer, so one for every byte leaves room for the sharing of real tools.
#[derive(Debug, Default)]
pub(crate) struct Budget(usize);

impl Budget {
    /// For the range lists of one unit, or once for those of all units.
    pub(crate) fn for_ranges(sections: &Sections<'_>) -> Self {
        Self(FREE + sections.ranges.len() + sections.rnglists.len())
    }

    /// For the extents of all units: line tables stand in where there are no ranges, and every unit has its own.
    pub(crate) fn for_extents(sections: &Sections<'_>) -> Self {
        Self(Self::for_ranges(sections).0 + sections.line.len())
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<(), Bad> {
        match self.0.checked_sub(count) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(Bad::Shared)
            }
        }
    }
}
