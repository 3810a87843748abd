//! How much may be read of what many entries can share.

use super::form::Bad;

/// What is read of the smallest file before sharing is suspicious.
pub(crate) const FREE: usize = 1 << 16;

/// Entries may name one list together, so a small file can state more ranges than memory holds. No entry of a list is
/// shorter than two bytes and most are longer, so one for every byte leaves room for the sharing of real tools.
#[derive(Debug, Default)]
pub(crate) struct Budget(usize);

impl Budget {
    /// For what is read of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Self(bytes.saturating_add(FREE))
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
