//! Bounds-checked reads in the byte order of the machine that wrote the file.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "lengths of what was found in a record, which has at most 64 KiB"
)]

use chronosym_types::ByteOrder;
pub(crate) use chronosym_types::bytes::until_nul;

/// Reads from the front of a slice; `None` if the slice ends inside the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Takes as many bytes as a length field states.
    pub(crate) fn take_u64(&mut self, count: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(|bytes| self.order.u16(bytes))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| self.order.u32(bytes))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| self.order.u64(bytes))
    }

    /// Reads an optional value; `None` if it is present and does not fit.
    #[inline]
    pub(crate) fn u64_if(&mut self, is_there: bool) -> Option<Option<u64>> {
        if is_there {
            self.u64().map(Some)
        } else {
            Some(None)
        }
    }

    #[inline]
    pub(crate) fn words(&mut self, count: u64) -> Option<Words<'a>> {
        let bytes = self.take_u64(count.checked_mul(8)?)?;
        Some(Words {
            bytes,
            order: self.order,
        })
    }

    /// Takes the bytes up to the next NUL, which is skipped, or up to the end.
    pub(crate) fn text(&mut self) -> &'a [u8] {
        let text = until_nul(self.bytes);
        self.bytes = self.bytes.get(text.len() + 1..).unwrap_or_default();
        text
    }
}

/// 64-bit values in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Words<'a> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the value at an index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        let at = index.checked_mul(8)?;
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(self.order.u64(*bytes))
    }

    /// Returns the values in their order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let order = self.order;
        let (chunks, _) = self.bytes.as_chunks();
        chunks.iter().map(move |&bytes| order.u64(bytes))
    }

    /// Returns the number of values before the first that is not less than `limit`.
    #[inline]
    pub(crate) fn count_below(&self, limit: u64) -> usize {
        let (chunks, _) = self.bytes.as_chunks();
        let count = |value: fn([u8; 8]) -> u64| {
            let reached = chunks.iter().position(|&bytes| value(bytes) >= limit);
            reached.unwrap_or(chunks.len())
        };
        // One loop for each order.
        match self.order {
            ByteOrder::Little => count(u64::from_le_bytes),
            ByteOrder::Big => count(u64::from_be_bytes),
        }
    }

    /// Splits after the first `count` values; `count` is at most the length.
    pub(crate) fn split_at(self, count: usize) -> (Self, Self) {
        let (before, after) = self.bytes.split_at(count * 8);
        let with = |bytes| Self { bytes, ..self };
        (with(before), with(after))
    }
}
