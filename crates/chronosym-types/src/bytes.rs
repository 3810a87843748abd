//! Little-endian reads at an offset: `None` if the bytes end inside the value.

use std::ffi::CStr;

use crate::{Guid, WStr};

/// Returns `len` bytes at `at`.
#[inline]
pub fn slice(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

/// Returns `N` bytes at `at`.
#[inline]
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Reads two bytes at `at`.
#[inline]
pub fn u16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// Reads four bytes at `at`.
#[inline]
pub fn u32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// Reads eight bytes at `at`.
#[inline]
pub fn u64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// Reads eight bytes at `at`, signed.
#[inline]
pub fn i64(bytes: &[u8], at: usize) -> Option<i64> {
    array(bytes, at).map(i64::from_le_bytes)
}

/// Reads a GUID at `at`.
#[inline]
pub fn guid(bytes: &[u8], at: usize) -> Option<Guid> {
    array(bytes, at).map(Guid)
}

/// Returns the bytes before the first NUL; all of them if there is none.
#[inline]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    // `CStr` searches many bytes at a time.
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}

/// Returns UTF-16 text up to a NUL or the end, and the bytes after the NUL.
pub fn wide(bytes: &[u8]) -> (WStr<'_>, &[u8]) {
    let (units, _) = bytes.as_chunks::<2>();
    let (text, rest) = match units.iter().position(|unit| *unit == [0, 0]) {
        Some(end) => {
            let (text, rest) = bytes.split_at(end.saturating_mul(2));
            (text, rest.get(2..).unwrap_or_default())
        }
        None => (bytes, [].as_slice()),
    };
    (WStr::new(text), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_beyond_the_bytes_are_empty() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0, 3];
        assert_eq!(
            (u16(&bytes, 7), u32(&bytes, 4), u64(&bytes, 0)),
            (Some(0x300), Some(2), Some(2 << 32 | 1))
        );
        assert_eq!(
            (u16(&bytes, 8), u32(&bytes, 6), u64(&bytes, 2)),
            (None, None, None)
        );
        assert_eq!(u32(&bytes, usize::MAX), None);
        assert_eq!(slice(&bytes, 1, usize::MAX), None);
        assert_eq!(slice(&bytes, 9, 0), Some([].as_slice()));
        assert_eq!(
            (until_nul(b"ab\0c"), until_nul(b"ab")),
            (&b"ab"[..], &b"ab"[..])
        );
    }

    #[test]
    fn wide_text_ends_at_its_nul_or_with_the_bytes() {
        let (text, rest) = wide(b"a\0b\0\0\0c\0");
        assert_eq!((text.to_string().as_str(), rest), ("ab", b"c\0".as_slice()));
        let (text, rest) = wide(b"a\0b\0c");
        assert_eq!((text.to_string().as_str(), rest), ("ab", b"".as_slice()));
    }
}
