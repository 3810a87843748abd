//! A limit on reading data that many entries share.

use super::form::DwarfError;

/// Budget of even the smallest file.
pub(crate) const FREE: usize = 1 << 16;

/// Limits how many list entries are read.
///
/// Several entries may refer to one list, so a small file can describe more ranges than memory
/// holds. Each list entry has at least two bytes, mostly more, so one for every byte leaves room
/// for the sharing of real tools.
#[derive(Debug, Default)]
pub(crate) struct Budget(usize);

impl Budget {
    /// Creates a budget for data of this size in bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Self(bytes.saturating_add(FREE))
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<(), DwarfError> {
        match self.0.checked_sub(count) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(DwarfError::Shared)
            }
        }
    }
}
