//! Stacks and label lists of a region: bytes that blocks number, copied out of them, since they outlive a region that had to
//! be cut.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB"
)]

use chronosym_types::hash::HashMap;

/// The row of what is not there.
pub(crate) const NO_ROW: u32 = u32::MAX;
/// The row of all that are empty: recorders refer to an empty stack where they took none.
pub(crate) const EMPTY_ROW: u32 = NO_ROW - 1;

#[derive(Default)]
pub(crate) struct Numbered {
    bytes: Vec<u8>,
    /// Where each row ends in `bytes`.
    ends: Vec<u32>,
    /// Rows of the ids `first_id..`, for ids that follow each other, as all writers give them.
    dense: Vec<u32>,
    first_id: u32,
    sparse: HashMap<u32, u32>,
}

impl Numbered {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.forget_ids();
    }

    /// From here on ids stand for nothing, until they are given again.
    pub(crate) fn forget_ids(&mut self) {
        self.dense.clear();
        self.sparse.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + 8 * self.ends.len()
    }

    /// Adds a row without an id; `None` once 4 GiB are full.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<u32> {
        if bytes.is_empty() {
            return Some(EMPTY_ROW);
        }
        let row = u32::try_from(self.ends.len())
            .ok()
            .filter(|&row| row < EMPTY_ROW)?;
        let end = u32::try_from(self.bytes.len() + bytes.len()).ok()?;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(end);
        Some(row)
    }

    pub(crate) fn insert(&mut self, id: u32, bytes: &[u8]) -> Option<()> {
        let row = self.push(bytes)?;
        if self.dense.is_empty() {
            self.first_id = id;
        }
        let index = id.wrapping_sub(self.first_id) as usize;
        if let Some(of_id) = self.dense.get_mut(index) {
            *of_id = row;
        } else if index == self.dense.len() {
            self.dense.push(row);
        } else {
            self.sparse.insert(id, row);
        }
        Some(())
    }

    /// Row of an id or [`NO_ROW`].
    #[inline]
    pub(crate) fn find(&self, id: u32) -> u32 {
        if let Some(&row) = self.dense.get(id.wrapping_sub(self.first_id) as usize) {
            return row;
        }
        self.sparse.get(&id).copied().unwrap_or(NO_ROW)
    }

    #[inline]
    fn end(&self, row: usize) -> u32 {
        self.ends.get(row).copied().unwrap_or(0)
    }

    /// A row's bytes; none of one that is not there.
    pub(crate) fn row(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = row.checked_sub(1).map_or(0, |before| self.end(before));
        let range = start as usize..self.end(row) as usize;
        self.bytes.get(range).unwrap_or_default()
    }

    /// All of them, by row.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let bytes = self.bytes.get(start..end as usize);
            start = end as usize;
            bytes.unwrap_or_default()
        })
    }
}
