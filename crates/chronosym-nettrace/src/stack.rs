//! The stacks of a region.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use chronosym_types::{Cursor, PointerSize};

use crate::blob_table::BlobTable;
use crate::fault::{Fault, Parsed};

/// Index of a stack in its region: consecutive from 0, so that a `Vec` can hold one value for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackIndex(pub u32);

impl StackIndex {
    /// As an index of a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Reads a stack block: first id, count, then (size, addresses) each; counts those read.
pub(crate) fn read_block(
    stacks: &mut BlobTable,
    cursor: &mut Cursor<'_>,
    pointer_size: PointerSize,
    limit: usize,
    read: &mut u64,
) -> Parsed<()> {
    let first_id = cursor.u32()?;
    let count = cursor.u32()?;
    let mut aligned = Ok(());
    for index in 0..count {
        let size = cursor.length()?;
        let stack = cursor.take(size)?;
        let id = first_id.checked_add(index).ok_or(Fault::Bad)?;
        if stacks.size() + size > limit {
            return Err(Fault::Bad);
        }
        stacks.insert(id, stack).ok_or(Fault::Bad)?;
        *read += 1;
        if size % pointer_size.bytes() != 0 {
            // The next one is found anyway.
            aligned = Err(Fault::Bad);
        }
    }
    aligned
}
