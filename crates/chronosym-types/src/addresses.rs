use std::fmt;

use crate::PointerSize;

/// The addresses of a record, all of the same width.
///
/// # Examples
///
/// ```
/// use chronosym_types::{Addresses, PointerSize};
///
/// let stack = Addresses::new(&[0x10, 0x20, 0, 0, 0x30, 0x40, 0, 0], PointerSize::Four);
/// assert_eq!(stack.iter().collect::<Vec<_>>(), [0x2010, 0x4030]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Addresses<'a> {
    bytes: &'a [u8],
    pointer_size: PointerSize,
}

impl<'a> Addresses<'a> {
    /// Wraps bytes. Ignores an incomplete last address.
    #[inline]
    pub fn new(bytes: &'a [u8], pointer_size: PointerSize) -> Self {
        let whole = bytes.len() & !pointer_size.bytes().wrapping_sub(1);
        Self {
            bytes: bytes.get(..whole).unwrap_or_default(),
            pointer_size,
        }
    }

    /// Iterates over the addresses, zero-extended.
    #[inline]
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + Clone + use<'a> {
        let width = self.pointer_size.bytes();
        self.bytes.chunks_exact(width).map(|chunk| {
            let narrow = || chunk.first_chunk().copied().map(u32::from_le_bytes);
            let wide = chunk.first_chunk().copied().map(u64::from_le_bytes);
            wide.or_else(|| narrow().map(u64::from)).unwrap_or_default()
        })
    }

    /// Returns the little-endian bytes of each address; `None` if the addresses are narrower than
    /// eight bytes.
    #[inline]
    pub fn wide(&self) -> Option<&'a [[u8; 8]]> {
        match self.pointer_size {
            PointerSize::Four => None,
            PointerSize::Eight => Some(self.bytes.as_chunks().0),
        }
    }

    /// Returns the number of addresses.
    #[inline]
    pub fn len(&self) -> usize {
        match self.pointer_size {
            PointerSize::Four => self.bytes.len() / 4,
            PointerSize::Eight => self.bytes.len() / 8,
        }
    }

    /// Returns whether there are no addresses.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl fmt::Debug for Addresses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|address| format!("{address:#x}")))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_stated_width() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0xff, 3];
        let four = Addresses::new(&bytes, PointerSize::Four);
        assert_eq!(
            (four.len(), four.iter().collect::<Vec<_>>()),
            (2, vec![1, 0xff00_0002])
        );
        let eight = Addresses::new(&bytes, PointerSize::Eight);
        assert_eq!(
            eight.iter().rev().collect::<Vec<_>>(),
            [0xff00_0002_0000_0001]
        );
        assert_eq!(eight.wide(), Some(&[[1, 0, 0, 0, 2, 0, 0, 0xff]][..]));
        assert_eq!(four.wide(), None);
        assert!(Addresses::new(&bytes[..7], PointerSize::Eight).is_empty());
    }
}
