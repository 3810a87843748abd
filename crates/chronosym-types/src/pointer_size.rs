/// The pointer width of a payload: that of the process or kernel that logged it.
///
/// # Examples
///
/// ```
/// use chronosym_types::PointerSize;
///
/// assert_eq!(PointerSize::new(8), Some(PointerSize::Eight));
/// assert_eq!(PointerSize::Four.bytes(), 4);
/// ```
///
/// Closed: addresses have one of two widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PointerSize {
    /// 32-bit.
    Four,
    /// 64-bit.
    Eight,
}

impl PointerSize {
    /// Returns the width for 4 or 8 bytes.
    pub const fn new(bytes: u32) -> Option<Self> {
        match bytes {
            4 => Some(Self::Four),
            8 => Some(Self::Eight),
            _ => None,
        }
    }

    /// Returns the width in bytes: 4 or 8.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}
