//! Bounds-checked little-endian reads.

use crate::Guid;

pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

pub(crate) fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    array(bytes, at).map(i64::from_le_bytes)
}

pub(crate) fn guid_at(bytes: &[u8], at: usize) -> Option<Guid> {
    array(bytes, at).map(Guid)
}

/// UTF-16LE up to a NUL or the end, lone surrogates replaced; and the bytes after it.
pub(crate) fn utf16(bytes: &[u8]) -> (String, &[u8]) {
    let (units, _) = bytes.as_chunks::<2>();
    let end = units
        .iter()
        .position(|u| *u == [0, 0])
        .unwrap_or(units.len());
    let text = char::decode_utf16(units[..end].iter().map(|u| u16::from_le_bytes(*u)))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    (text, bytes.get(2 * end + 2..).unwrap_or_default())
}
