//! Stacks and label lists of a region, found by the ids of their blocks. They are copied, since
//! they outlive a region that had to be cut.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB"
)]

use chronosym_types::hash::HashMap;

/// Index of a blob that does not exist.
pub(crate) const NO_BLOB: u32 = u32::MAX;
/// Index of all empty blobs: recorders refer to an empty stack where they took none.
pub(crate) const EMPTY_BLOB: u32 = NO_BLOB - 1;

#[derive(Default)]
pub(crate) struct BlobTable {
    bytes: Vec<u8>,
    /// The end of each blob in `bytes`.
    ends: Vec<u32>,
    /// Indexes by id from `first_id` on, for consecutive ids, as all writers assign them.
    dense: Vec<u32>,
    first_id: u32,
    sparse: HashMap<u32, u32>,
}

impl BlobTable {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.forget_ids();
    }

    /// Forgets all ids; blobs keep their indexes.
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

    /// Adds a blob without an id; `None` once 4 GiB are full.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<u32> {
        if bytes.is_empty() {
            return Some(EMPTY_BLOB);
        }
        let index = u32::try_from(self.ends.len())
            .ok()
            .filter(|&index| index < EMPTY_BLOB)?;
        let end = u32::try_from(self.bytes.len() + bytes.len()).ok()?;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(end);
        Some(index)
    }

    pub(crate) fn insert(&mut self, id: u32, bytes: &[u8]) -> Option<()> {
        let index = self.push(bytes)?;
        if self.dense.is_empty() {
            self.first_id = id;
        }
        let position = id.wrapping_sub(self.first_id) as usize;
        if let Some(of_id) = self.dense.get_mut(position) {
            *of_id = index;
        } else if position == self.dense.len() {
            self.dense.push(index);
        } else {
            self.sparse.insert(id, index);
        }
        Some(())
    }

    /// Index of an id or [`NO_BLOB`].
    #[inline]
    pub(crate) fn find(&self, id: u32) -> u32 {
        if let Some(&index) = self.dense.get(id.wrapping_sub(self.first_id) as usize) {
            return index;
        }
        self.sparse.get(&id).copied().unwrap_or(NO_BLOB)
    }

    #[inline]
    fn end(&self, index: usize) -> u32 {
        self.ends.get(index).copied().unwrap_or(0)
    }

    /// Returns the bytes of a blob; empty if it does not exist.
    pub(crate) fn get(&self, index: u32) -> &[u8] {
        let index = index as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.end(before));
        let range = start as usize..self.end(index) as usize;
        self.bytes.get(range).unwrap_or_default()
    }

    /// Returns all blobs, by index.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let bytes = self.bytes.get(start..end as usize);
            start = end as usize;
            bytes.unwrap_or_default()
        })
    }
}
