//! Bounds-checked little-endian reads from a slice.

/// Why a value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The slice ends inside the value; more bytes may complete it.
    Short,
    /// No further bytes can make the value valid.
    Bad,
}

pub(crate) type Parsed<T> = Result<T, Fault>;

#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn starting_at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let end = self.at.checked_add(count).ok_or(Fault::Bad)?;
        let taken = self.bytes.get(self.at..end).ok_or(Fault::Short)?;
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Fault::Short)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Parsed<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Short)?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn u16(&mut self) -> Parsed<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Parsed<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Parsed<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// A length or count stored as i32, which must not be negative.
    pub(crate) fn length(&mut self) -> Parsed<usize> {
        let value = self.u32()?;
        i32::try_from(value).map_err(|_| Fault::Bad)?;
        usize::try_from(value).map_err(|_| Fault::Bad)
    }

    /// Seven bits a byte, low ones first, at most five bytes.
    #[inline]
    pub(crate) fn var_u32(&mut self) -> Parsed<u32> {
        let value = self.varint(5)?;
        u32::try_from(value).map_err(|_| Fault::Bad)
    }

    /// Seven bits a byte, low ones first, at most ten bytes.
    #[inline]
    pub(crate) fn var_u64(&mut self) -> Parsed<u64> {
        self.varint(10)
    }

    #[inline]
    fn varint(&mut self, max_bytes: usize) -> Parsed<u64> {
        let rest = self.bytes.get(self.at..).ok_or(Fault::Short)?;
        let Some(word) = rest.first_chunk() else {
            return self.varint_by_bytes(max_bytes);
        };
        let word = u64::from_le_bytes(*word);
        if word & 0x80 == 0 {
            self.at += 1;
            return Ok(word & 0x7f);
        }
        // All at once: the lengths change from one to the next, and foretelling each byte's branch would fail.
        let ends = !word & 0x8080_8080_8080_8080;
        let length = ends.trailing_zeros() as usize / 8 + 1;
        if ends == 0 || length > max_bytes {
            return self.varint_by_bytes(max_bytes);
        }
        self.at += length;
        let septets = word & (ends ^ (ends - 1));
        let pairs = septets & 0x007f_007f_007f_007f | (septets & 0x7f00_7f00_7f00_7f00) >> 1;
        let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
        Ok(fours & 0x0fff_ffff | (fours >> 32 & 0x0fff_ffff) << 28)
    }

    #[inline]
    fn varint_by_bytes(&mut self, max_bytes: usize) -> Parsed<u64> {
        let (value, at) = varint_by_bytes(self.bytes, self.at, max_bytes)?;
        self.at = at;
        Ok(value)
    }

    /// UTF-16 up to and without its terminating NUL, lossy.
    pub(crate) fn utf16z(&mut self) -> Parsed<String> {
        let rest = self.bytes.get(self.at..).ok_or(Fault::Short)?;
        let units = rest
            .chunks_exact(2)
            .position(|unit| unit == [0, 0])
            .ok_or(Fault::Short)?;
        let text = self.take(units * 2)?;
        self.at += 2;
        Ok(utf16(text))
    }

    /// A varint byte count followed by UTF-8 (V6), lossy.
    pub(crate) fn utf8(&mut self) -> Parsed<String> {
        let count = self.var_u32()? as usize;
        Ok(String::from_utf8_lossy(self.take(count)?).into_owned())
    }
}

/// The value and the position after it. No method, so that a cursor can stay in registers.
#[cold]
fn varint_by_bytes(bytes: &[u8], mut at: usize, max_bytes: usize) -> Parsed<(u64, usize)> {
    let mut value = 0;
    for index in 0..max_bytes {
        let byte = *bytes.get(at).ok_or(Fault::Short)?;
        at += 1;
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * index;
        // The tenth byte holds the one bit that is left of 64.
        if shift == 63 && bits > 1 {
            return Err(Fault::Bad);
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok((value, at));
        }
    }
    Err(Fault::Bad)
}

pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes
        .chunks_exact(2)
        .map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_stop_at_their_width() {
        let longest_u32 = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(Cursor::new(&longest_u32).var_u32(), Ok(u32::MAX));
        assert_eq!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).var_u32(),
            Err(Fault::Bad)
        );
        assert_eq!(Cursor::new(&[0x80; 6]).var_u32(), Err(Fault::Bad));
        assert_eq!(Cursor::new(&[0x80; 3]).var_u32(), Err(Fault::Short));
        let mut longest_u64 = [0xff; 10];
        longest_u64[9] = 1;
        assert_eq!(Cursor::new(&longest_u64).var_u64(), Ok(u64::MAX));
        longest_u64[9] = 2;
        assert_eq!(Cursor::new(&longest_u64).var_u64(), Err(Fault::Bad));
        assert_eq!(Cursor::new(&[0x80; 11]).var_u64(), Err(Fault::Bad));
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
                    let narrow = u32::try_from(value).map_err(|_| Fault::Bad);
                    assert_eq!(Cursor::new(&bytes).var_u32(), narrow);
                }
            }
        }
    }

    #[test]
    fn text_needs_its_terminator() {
        assert_eq!(Cursor::new(b"a\0b\0\0\0").utf16z().as_deref(), Ok("ab"));
        assert_eq!(Cursor::new(b"a\0b\0").utf16z(), Err(Fault::Short));
        assert_eq!(
            Cursor::new(&[0x00, 0xd8, 0, 0]).utf16z().as_deref(),
            Ok("\u{fffd}")
        );
        assert_eq!(Cursor::new(&[3, b'a']).utf8(), Err(Fault::Short));
    }
}
