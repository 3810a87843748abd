//! The stacks of a region.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::collections::HashMap;
use std::iter::FusedIterator;

use chronosym_types::Cursor;

use crate::fault::{Fault, Parsed};

/// A stack's row in its region: dense from 0, so that a `Vec` can hold what is known of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackRow(pub u32);

impl StackRow {
    /// As an index of a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Return addresses and the instruction pointer of one stack, leaf first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a> {
    bytes: &'a [u8],
    pointer_size: u8,
}

impl<'a> Stack<'a> {
    pub(crate) fn empty(pointer_size: u8) -> Self {
        Self {
            bytes: &[],
            pointer_size,
        }
    }

    /// Number of addresses.
    pub fn len(&self) -> usize {
        self.bytes.len() / usize::from(self.pointer_size)
    }

    /// Whether no address was captured.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The addresses as stored: little-endian, [`pointer_size`](Self::pointer_size) bytes each.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of an address: 4 or 8.
    pub fn pointer_size(&self) -> u8 {
        self.pointer_size
    }

    /// The addresses, leaf first.
    pub fn addresses(&self) -> Addresses<'a> {
        Addresses {
            chunks: self.bytes.chunks_exact(usize::from(self.pointer_size)),
        }
    }
}

impl<'a> IntoIterator for Stack<'a> {
    type Item = u64;
    type IntoIter = Addresses<'a>;

    fn into_iter(self) -> Addresses<'a> {
        self.addresses()
    }
}

/// Iterator over the addresses of a [`Stack`].
#[derive(Clone, Debug)]
pub struct Addresses<'a> {
    chunks: std::slice::ChunksExact<'a, u8>,
}

fn address(chunk: &[u8]) -> u64 {
    match *chunk {
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => 0,
    }
}

impl Iterator for Addresses<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.chunks.next().map(address)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.chunks.size_hint()
    }
}

impl DoubleEndedIterator for Addresses<'_> {
    fn next_back(&mut self) -> Option<u64> {
        self.chunks.next_back().map(address)
    }
}

impl ExactSizeIterator for Addresses<'_> {}
impl FusedIterator for Addresses<'_> {}

pub(crate) const NO_STACK: u32 = u32::MAX;

/// Stacks copied out of their blocks: few and small, and they outlive a region that had to be cut.
#[derive(Default)]
pub(crate) struct StackTable {
    bytes: Vec<u8>,
    /// Where each row ends in `bytes`.
    ends: Vec<u32>,
    /// Rows of the ids `first_id..`, for ids that follow each other, as all writers give them.
    dense: Vec<u32>,
    first_id: u32,
    sparse: HashMap<u32, u32, foldhash::fast::RandomState>,
}

impl StackTable {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.forget_ids();
    }

    /// From here on ids stand for no stack, until they are given again.
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

    /// Adds a stack without an id; `None` once 4 GiB are full.
    pub(crate) fn push(&mut self, stack: &[u8]) -> Option<u32> {
        let row = u32::try_from(self.ends.len())
            .ok()
            .filter(|&row| row != NO_STACK)?;
        let end = u32::try_from(self.bytes.len() + stack.len()).ok()?;
        self.bytes.extend_from_slice(stack);
        self.ends.push(end);
        Some(row)
    }

    fn insert(&mut self, id: u32, stack: &[u8]) -> Option<()> {
        let row = self.push(stack)?;
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

    /// Row of a stack id or [`NO_STACK`].
    #[inline]
    pub(crate) fn find(&self, id: u32) -> u32 {
        if let Some(&row) = self.dense.get(id.wrapping_sub(self.first_id) as usize) {
            return row;
        }
        self.sparse.get(&id).copied().unwrap_or(NO_STACK)
    }

    /// Whether a row, which may be [`NO_STACK`], has any address: recorders refer to an empty stack where they took none.
    #[inline]
    pub(crate) fn has_addresses(&self, row: u32) -> bool {
        let end = |row: usize| self.ends.get(row).copied().unwrap_or(0);
        let row = row as usize;
        end(row) > row.checked_sub(1).map_or(0, end)
    }

    pub(crate) fn stack(&self, row: StackRow, pointer_size: u8) -> Option<Stack<'_>> {
        let end = *self.ends.get(row.index())? as usize;
        let before = row
            .index()
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        let start = before.map_or(0, |&start| start as usize);
        Some(Stack {
            bytes: self.bytes.get(start..end)?,
            pointer_size,
        })
    }

    /// All of them, by row.
    pub(crate) fn all(&self, pointer_size: u8) -> impl ExactSizeIterator<Item = Stack<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let bytes = self.bytes.get(start..end as usize).unwrap_or_default();
            start = end as usize;
            Stack {
                bytes,
                pointer_size,
            }
        })
    }

    /// Reads a stack block: first id, count, then (size, addresses) each. Returns the number of stacks read
    /// and whether the block was sound.
    pub(crate) fn read_block(
        &mut self,
        block: &mut Cursor<'_>,
        pointer_size: u8,
        limit: usize,
    ) -> (u64, Parsed<()>) {
        let mut read = 0;
        let sound = self.read_rows(block, pointer_size, limit, &mut read);
        (read, sound)
    }

    fn read_rows(
        &mut self,
        cursor: &mut Cursor<'_>,
        pointer_size: u8,
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
            if self.size() + size > limit {
                return Err(Fault::Bad);
            }
            self.insert(id, stack).ok_or(Fault::Bad)?;
            *read += 1;
            if size % usize::from(pointer_size) != 0 {
                // The next one can be found all the same.
                aligned = Err(Fault::Bad);
            }
        }
        aligned
    }
}
