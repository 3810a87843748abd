use crate::{AStr, Action, DecodeError, Guid, PointerSize, WStr};

/// What the event's key says about its layout beyond the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) action: Action,
    /// Method events that carry names.
    pub(crate) verbose: bool,
    /// Markers at the begin, not the end, of a rundown.
    pub(crate) init: bool,
    /// Layouts of the private provider.
    pub(crate) private: bool,
    /// Events whose strings are 8-bit text where the other layout has UTF-16.
    pub(crate) ansi: bool,
    /// PDB records of the IL behind a native image.
    pub(crate) il: bool,
    /// User parts of stacks.
    pub(crate) user: bool,
    /// Processes that have ended but are still held.
    pub(crate) defunct: bool,
    /// The oldest version whose layout is known.
    pub(crate) oldest: u32,
}

impl Shape {
    pub(crate) const fn new(action: Action) -> Self {
        Self {
            action,
            verbose: false,
            init: false,
            private: false,
            ansi: false,
            il: false,
            user: false,
            defunct: false,
            oldest: 0,
        }
    }
    pub(crate) const fn verbose(self) -> Self {
        Self {
            verbose: true,
            ..self
        }
    }
    /// A marker at the begin of a rundown.
    pub(crate) const fn init(self) -> Self {
        Self { init: true, ..self }
    }
    pub(crate) const fn private(self) -> Self {
        Self {
            private: true,
            ..self
        }
    }
    pub(crate) const fn il(self) -> Self {
        Self { il: true, ..self }
    }
    pub(crate) const fn user(self) -> Self {
        Self { user: true, ..self }
    }
    pub(crate) const fn defunct(self) -> Self {
        Self {
            defunct: true,
            ..self
        }
    }
    pub(crate) const fn since(self, oldest: u32) -> Self {
        Self { oldest, ..self }
    }
    pub(crate) const fn ansi(self) -> Self {
        Self { ansi: true, ..self }
    }
}

/// A checked reader over one payload.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    payload: &'a [u8],
    at: usize,
    pub(crate) version: u32,
    pub(crate) pointer_size: PointerSize,
    pub(crate) shape: Shape,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl<'a> Cursor<'a> {
    pub(crate) fn new(
        payload: &'a [u8],
        version: u32,
        pointer_size: PointerSize,
        shape: Shape,
    ) -> Self {
        Self {
            payload,
            at: 0,
            version,
            pointer_size,
            shape,
        }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.payload[self.at..]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let needed = self.at.saturating_add(count);
        let bytes = self
            .payload
            .get(self.at..needed)
            .ok_or(DecodeError::Short {
                needed,
                found: self.payload.len(),
            })?;
        self.at = needed;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A pointer of the payload's own width.
    pub(crate) fn pointer(&mut self) -> Result<u64> {
        match self.pointer_size {
            PointerSize::Four => self.u32().map(u64::from),
            PointerSize::Eight => self.u64(),
        }
    }

    pub(crate) fn guid(&mut self) -> Result<Guid> {
        self.array().map(Guid)
    }

    /// UTF-16 text up to its NUL.
    pub(crate) fn wide(&mut self) -> Result<WStr<'a>> {
        let offset = self.at;
        let rest = self.rest();
        let end = end_of_wide(rest).ok_or(DecodeError::BadString { offset })?;
        self.at += end + 2;
        Ok(WStr::new(&rest[..end]))
    }

    /// 8-bit text up to its NUL.
    pub(crate) fn narrow(&mut self) -> Result<AStr<'a>> {
        let offset = self.at;
        let rest = self.rest();
        let len = rest
            .iter()
            .position(|&b| b == 0)
            .ok_or(DecodeError::BadString { offset })?;
        self.at += len + 1;
        Ok(AStr::new(&rest[..len]))
    }

    /// An unsigned LEB128 integer.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let offset = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::BadValue { offset })
    }
}

/// Where the first NUL among UTF-16 units begins.
fn end_of_wide(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0001_0001_0001_0001;
    let (words, rest) = bytes.as_chunks();
    for (word, at) in words.iter().zip((0..).step_by(8)) {
        let word = u64::from_le_bytes(*word);
        // Below the lowest unit that is 0, no unit borrows from the next.
        let nul = word.wrapping_sub(ONES) & !word & ONES << 15;
        if nul != 0 {
            return Some(at + nul.trailing_zeros() as usize / 16 * 2);
        }
    }
    let unit = rest.chunks_exact(2).position(|unit| unit == [0, 0])?;
    Some(bytes.len() - rest.len() + 2 * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

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
