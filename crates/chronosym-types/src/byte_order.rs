//! The byte order of integers.

/// The order of the bytes in the integers of a file.
///
/// # Examples
///
/// ```
/// use chronosym_types::ByteOrder;
///
/// assert_eq!(ByteOrder::Little.u16([1, 0]), 1);
/// assert_eq!(ByteOrder::Big.u16([1, 0]), 256);
/// ```
///
/// Closed: there are two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte is first.
    #[default]
    Little,
    /// The most significant byte is first.
    Big,
}

impl ByteOrder {
    /// Decodes an integer.
    #[inline]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Decodes an integer.
    #[inline]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Decodes an integer.
    #[inline]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}
