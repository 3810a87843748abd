//! A cursor of bounds-checked little-endian reads.

use crate::{AStr, Guid, PointerSize, WStr};

/// Why a read failed (closed list). Offsets are bytes from the start of the [`Cursor`]'s slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReadError {
    /// The bytes end inside the value; more of them may complete it.
    #[error("{size} bytes wanted at offset {offset} of {length}")]
    Ended {
        /// Offset of the value.
        offset: usize,
        /// Bytes that the value needs.
        size: usize,
        /// Length of the slice.
        length: usize,
    },
    /// A text has no terminator; more bytes may contain it.
    #[error("the text at offset {offset} does not end")]
    Unterminated {
        /// Offset of the text.
        offset: usize,
    },
    /// No further bytes can make the value valid.
    #[error("the value at offset {offset} is malformed")]
    Malformed {
        /// Offset of the value.
        offset: usize,
    },
}

impl ReadError {
    /// Returns whether more bytes may complete the value.
    #[inline]
    pub fn is_incomplete(self) -> bool {
        !matches!(self, Self::Malformed { .. })
    }
}

type Result<T> = std::result::Result<T, ReadError>;

/// A reading position in a slice. A failed read does not move it, except for parts of a compound
/// value.
///
/// The position advances without overflow checks, because a read moves it within the slice.
///
/// # Examples
///
/// ```
/// use chronosym_types::{Cursor, ReadError};
///
/// let mut cursor = Cursor::new(b"\x02\0\0\0Main\0");
/// assert_eq!(cursor.u32(), Ok(2));
/// assert_eq!(cursor.narrow()?.to_text(), "Main");
/// assert_eq!(cursor.u8(), Err(ReadError::Ended { offset: 9, size: 1, length: 9 }));
/// # Ok::<(), ReadError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the first byte.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns a cursor at byte `at`, which may be past the end.
    #[inline]
    pub fn starting_at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Returns the offset of the next byte.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the unread bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns the number of unread bytes.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Returns whether all bytes are read.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    #[inline]
    fn ended(&self, size: usize) -> ReadError {
        ReadError::Ended {
            offset: self.at,
            size,
            length: self.bytes.len(),
        }
    }

    #[inline]
    fn malformed(&self) -> ReadError {
        ReadError::Malformed { offset: self.at }
    }

    /// Reads `count` bytes.
    ///
    /// # Errors
    /// [`ReadError::Ended`] if the slice ends before; so do all other reads.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.wrapping_add(count);
        let taken = self.bytes.get(self.at..end).ok_or(self.ended(count))?;
        self.at = end;
        Ok(taken)
    }

    /// Reads `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let array = self.rest().first_chunk().ok_or(self.ended(N))?;
        self.at = self.at.wrapping_add(N);
        Ok(*array)
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(self.ended(1))?;
        self.at = self.at.wrapping_add(1);
        Ok(byte)
    }

    /// Reads two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads eight bytes, signed.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Reads a pointer of this width.
    #[inline]
    pub fn pointer(&mut self, size: PointerSize) -> Result<u64> {
        match size {
            PointerSize::Four => self.u32().map(u64::from),
            PointerSize::Eight => self.u64(),
        }
    }

    /// Reads a GUID in wire order.
    #[inline]
    pub fn guid(&mut self) -> Result<Guid> {
        self.array().map(Guid)
    }

    /// Reads a length or count that is stored as i32.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] if it is negative.
    pub fn length(&mut self) -> Result<usize> {
        let malformed = self.malformed();
        let value = self.u32()?;
        i32::try_from(value).map_err(|_| malformed)?;
        usize::try_from(value).map_err(|_| malformed)
    }

    /// Reads unsigned LEB128 of at most five bytes.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] if it is longer or exceeds 32 bits.
    #[inline]
    pub fn var_u32(&mut self) -> Result<u32> {
        let malformed = self.malformed();
        let value = self.varint(5)?;
        u32::try_from(value).map_err(|_| malformed)
    }

    /// Reads unsigned LEB128 of at most ten bytes.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] if it is longer or exceeds 64 bits.
    #[inline]
    pub fn var_u64(&mut self) -> Result<u64> {
        self.varint(10)
    }

    #[inline]
    fn varint(&mut self, max_bytes: usize) -> Result<u64> {
        match self.short_varint() {
            Some(value) => Ok(value.into()),
            None => match self.varint_of_word() {
                Some((value, length)) if length <= max_bytes => {
                    self.at = self.at.wrapping_add(length);
                    Ok(value)
                }
                _ => self.varint_by_bytes(max_bytes),
            },
        }
    }

    /// Returns the unsigned LEB128 of at most eight bytes here, and its length; `None` if it is
    /// longer or fewer bytes are left.
    #[inline]
    fn varint_of_word(&self) -> Option<(u64, usize)> {
        let word = u64::from_le_bytes(*self.rest().first_chunk()?);
        let ends = !word & 0x8080_8080_8080_8080;
        if ends == 0 {
            return None;
        }
        let length = (ends.trailing_zeros() / 8).wrapping_add(1) as usize;
        let septets = word & (ends ^ ends.wrapping_sub(1)) & 0x7f7f_7f7f_7f7f_7f7f;
        let pairs = septets & 0x007f_007f_007f_007f | (septets & 0x7f00_7f00_7f00_7f00) >> 1;
        let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
        Some((
            fours & 0x0fff_ffff | fours >> 4 & 0x00ff_ffff_f000_0000,
            length,
        ))
    }

    /// Reads unsigned LEB128 of at most five bytes; `None` if it is longer, exceeds 32 bits, or
    /// fewer than eight bytes are left. Values of one byte are not treated apart.
    #[inline]
    pub fn long_varint(&mut self) -> Option<u32> {
        let (value, length) = self.varint_of_word()?;
        let value = u32::try_from(value).ok().filter(|_| length <= 5)?;
        self.at = self.at.wrapping_add(length);
        Some(value)
    }

    /// Reads unsigned LEB128 of at most four bytes; `None` if it is longer or fewer are left.
    #[inline]
    pub fn short_varint(&mut self) -> Option<u32> {
        let word = u32::from_le_bytes(*self.rest().first_chunk()?);
        if word & 0x80 == 0 {
            self.at = self.at.wrapping_add(1);
            return Some(word & 0x7f);
        }
        // Decodes all bytes at once: lengths vary, so a branch for each byte would be mispredicted.
        let ends = !word & 0x8080_8080;
        if ends == 0 {
            return None;
        }
        let length = (ends.trailing_zeros() / 8).wrapping_add(1) as usize;
        self.at = self.at.wrapping_add(length);
        let septets = word & (ends ^ ends.wrapping_sub(1));
        let pairs = septets & 0x007f_007f | (septets & 0x7f00_7f00) >> 1;
        Some(pairs & 0x3fff | pairs >> 2 & 0x0fff_c000)
    }

    #[inline]
    fn varint_by_bytes(&mut self, max_bytes: usize) -> Result<u64> {
        let (value, at) = varint_by_bytes(self.bytes, self.at, max_bytes)?;
        self.at = at;
        Ok(value)
    }

    /// Reads UTF-16 text up to its NUL.
    ///
    /// # Errors
    /// [`ReadError::Unterminated`] without a NUL.
    #[inline]
    pub fn wide(&mut self) -> Result<WStr<'a>> {
        let rest = self.rest();
        let end = end_of_wide(rest).ok_or(ReadError::Unterminated { offset: self.at })?;
        self.at = self.at.saturating_add(end).saturating_add(2);
        Ok(WStr::new(rest.get(..end).unwrap_or_default()))
    }

    /// Reads 8-bit text up to its NUL.
    ///
    /// # Errors
    /// [`ReadError::Unterminated`] without a NUL.
    #[inline]
    pub fn narrow(&mut self) -> Result<AStr<'a>> {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or(ReadError::Unterminated { offset: self.at })?;
        self.at = self.at.saturating_add(end).saturating_add(1);
        Ok(AStr::new(rest.get(..end).unwrap_or_default()))
    }

    /// Reads 8-bit text with a [`var_u32`](Self::var_u32) length prefix in bytes.
    ///
    /// # Errors
    /// As [`var_u32`](Self::var_u32) and [`take`](Self::take).
    pub fn var_text(&mut self) -> Result<AStr<'a>> {
        let count = self.var_u32()?;
        self.take(count as usize).map(AStr::new)
    }
}

/// Returns the value and the position after it. Not a method, so that a cursor can stay in
/// registers.
#[cold]
fn varint_by_bytes(bytes: &[u8], start: usize, max_bytes: usize) -> Result<(u64, usize)> {
    let malformed = ReadError::Malformed { offset: start };
    let mut value = 0;
    let mut at = start;
    for shift in (0..64).step_by(7).take(max_bytes) {
        let byte = *bytes.get(at).ok_or(ReadError::Ended {
            offset: at,
            size: 1,
            length: bytes.len(),
        })?;
        at = at.saturating_add(1);
        let bits = u64::from(byte & 0x7f);
        // The tenth byte holds the last one of 64 bits.
        if shift == 63 && bits > 1 {
            return Err(malformed);
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok((value, at));
        }
    }
    Err(malformed)
}

/// Returns the offset of the first UTF-16 NUL.
fn end_of_wide(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks();
    let (pairs, _) = words.as_chunks();
    let mut at = 0_usize;
    for &[first, second] in pairs {
        let (first, second) = (nul_units(first), nul_units(second));
        if first | second != 0 {
            let bits = match first {
                0 => second.trailing_zeros().wrapping_add(u64::BITS),
                _ => first.trailing_zeros(),
            };
            return Some(at.wrapping_add((bits / 8) as usize & !1));
        }
        at = at.wrapping_add(16);
    }
    let mut rest = bytes.get(at..)?.chunks_exact(2);
    let unit = rest.position(|unit| unit == [0, 0])?;
    Some(unit.wrapping_mul(2).wrapping_add(at))
}

/// Returns a word whose lowest bit is in the first UTF-16 NUL of four units; 0 without a NUL.
fn nul_units(units: [u8; 8]) -> u64 {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let units = u64::from_le_bytes(units);
    // No unit below the lowest zero unit borrows from the next.
    units.wrapping_sub(ONES) & !units & ONES << 15
}

#[cfg(test)]
mod tests {
    use super::*;

    fn malformed<T>() -> Result<T> {
        Err(ReadError::Malformed { offset: 0 })
    }

    #[test]
    fn reads_beyond_the_end_report_the_offset_and_change_nothing() {
        let mut cursor = Cursor::starting_at(&[1, 2, 3], 1);
        let ended = |size| ReadError::Ended {
            offset: 1,
            size,
            length: 3,
        };
        assert_eq!(cursor.u64(), Err(ended(8)));
        assert_eq!(cursor.take(usize::MAX), Err(ended(usize::MAX)));
        assert_eq!(cursor.array::<3>(), Err(ended(3)));
        assert_eq!((cursor.position(), cursor.remaining()), (1, 2));
        assert_eq!((cursor.u16(), cursor.is_at_end()), (Ok(0x302), true));
        let mut cursor = Cursor::starting_at(&[1], 9);
        assert!(cursor.rest().is_empty() && cursor.is_at_end());
        assert!(cursor.u8().is_err() && cursor.take(0).is_err());
        assert!(cursor.var_u64().is_err() && cursor.wide().is_err());
        assert_eq!(Cursor::new(&[0, 0, 0, 0x80]).length(), malformed());
    }

    #[test]
    fn varints_stop_at_their_width() {
        let incomplete = |result: Result<u32>| result.unwrap_err().is_incomplete();
        let longest_u32 = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(Cursor::new(&longest_u32).var_u32(), Ok(u32::MAX));
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).var_u32(),
            malformed()
        );
        assert_eq!(Cursor::new(&[0x80; 6]).var_u32(), malformed());
        // Six bytes of zeros, which a word holds.
        let too_long = [0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0];
        assert_eq!(Cursor::new(&too_long).var_u32(), malformed());
        assert_eq!(Cursor::new(&too_long).long_varint(), None);
        assert_eq!(Cursor::new(&too_long).var_u64(), Ok(0));
        assert!(incomplete(Cursor::new(&[0x80; 3]).var_u32()));
        let mut longest_u64 = [0xff; 10];
        longest_u64[9] = 1;
        assert_eq!(Cursor::new(&longest_u64).var_u64(), Ok(u64::MAX));
        longest_u64[9] = 2;
        assert_eq!(Cursor::new(&longest_u64).var_u64(), malformed());
        assert_eq!(Cursor::new(&[0x80; 11]).var_u64(), malformed());
    }

    #[test]
    fn varints_are_the_same_at_the_end_of_the_bytes_and_before_it() {
        for bits in 0..64 {
            for value in [
                1u64 << bits,
                u64::MAX >> bits,
                0x0123_4567_89ab_cdef >> bits,
            ] {
                let mut bytes = Vec::new();
                let mut rest = value;
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
                let length = bytes.len();
                for more in [&[][..], &[0xff; 16], &[0; 16]] {
                    bytes.truncate(length);
                    bytes.extend_from_slice(more);
                    let mut cursor = Cursor::new(&bytes);
                    assert_eq!((cursor.var_u64(), cursor.position()), (Ok(value), length));
                    let narrow = u32::try_from(value).or(malformed());
                    assert_eq!(Cursor::new(&bytes).var_u32(), narrow);
                    let mut cursor = Cursor::new(&bytes);
                    let mut word = Cursor::new(&bytes);
                    let long = narrow.ok().filter(|_| length <= 5 && bytes.len() >= 8);
                    assert_eq!(word.long_varint(), long);
                    assert_eq!(word.position(), long.map_or(0, |_| length));
                    let short = (length <= 4 && bytes.len() >= 4).then_some(value as u32);
                    assert_eq!(cursor.short_varint(), short);
                    assert_eq!(cursor.position(), short.map_or(0, |_| length));
                }
            }
        }
    }

    #[test]
    fn text_needs_its_terminator() {
        let unterminated = ReadError::Unterminated { offset: 0 };
        let mut cursor = Cursor::new(b"a\0b\0\0\0yo\0z");
        assert_eq!(cursor.wide().unwrap(), "ab");
        assert_eq!(cursor.narrow().unwrap(), "yo");
        assert_eq!(cursor.rest(), b"z");
        assert_eq!(Cursor::new(b"\x02yoz").var_text().unwrap(), "yo");
        assert!(Cursor::new(b"\x03yo").var_text().is_err());
        assert_eq!(Cursor::new(b"a\0b\0").wide(), Err(unterminated));
        assert_eq!(Cursor::new(b"ab").narrow(), Err(unterminated));
        assert_eq!(Cursor::new(&[0x00, 0xd8, 0, 0]).wide().unwrap(), "\u{fffd}");
    }

    #[test]
    fn the_first_nul_unit_ends_wide_text() {
        for length in 0..20 {
            for filler in [0x0100u16, 0x0001, 0x8000, 0xff00, 0xffff] {
                let mut units = vec![filler; length];
                let bytes = |units: &[u16]| -> Vec<u8> {
                    units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
                };
                assert_eq!(end_of_wide(&bytes(&units)), None);
                units.push(0);
                assert_eq!(end_of_wide(&bytes(&units)), Some(2 * length));
                units.extend([0, 1, 0, filler, 0, 0]);
                assert_eq!(end_of_wide(&bytes(&units)), Some(2 * length));
                assert_eq!(end_of_wide(&bytes(&units)[..2 * length + 1]), None);
            }
        }
    }
}
