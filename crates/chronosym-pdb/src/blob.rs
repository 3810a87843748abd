//! Compressed integers (ECMA-335 II.23.2), the encoding of metadata blobs and of CodeView's binary
//! annotations.

/// Decodes the compressed unsigned integer at the start of `data` and returns it with the bytes
/// that follow: one byte up to 0x7F, two up to 0x3FFF, four beyond.
#[inline]
pub(crate) fn compressed(data: &[u8]) -> Option<(u32, &[u8])> {
    Some(match data {
        [a, rest @ ..] if a & 0x80 == 0 => (u32::from(*a), rest),
        [a, b, rest @ ..] if a & 0xC0 == 0x80 => (u32::from_be_bytes([0, 0, a & 0x3F, *b]), rest),
        [a, b, c, d, rest @ ..] if a & 0xE0 == 0xC0 => {
            (u32::from_be_bytes([a & 0x1F, *b, *c, *d]), rest)
        }
        _ => return None,
    })
}

/// A read position in a blob.
#[derive(Debug, Clone)]
pub(crate) struct BlobReader<'d> {
    data: &'d [u8],
}

impl<'d> BlobReader<'d> {
    pub(crate) fn new(data: &'d [u8]) -> Self {
        Self { data }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the unread bytes.
    pub(crate) fn rest(&self) -> &'d [u8] {
        self.data
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.data.first().copied()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.data.split_first()?;
        self.data = rest;
        Some(first)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'d [u8]> {
        let (bytes, rest) = self.data.split_at_checked(length)?;
        self.data = rest;
        Some(bytes)
    }

    #[inline]
    pub(crate) fn unsigned(&mut self) -> Option<u32> {
        Some(self.integer()?.0)
    }

    #[inline]
    fn integer(&mut self) -> Option<(u32, usize)> {
        let (value, rest) = compressed(self.data)?;
        let length = self.data.len().saturating_sub(rest.len());
        self.data = rest;
        Some((value, length))
    }

    /// Returns a compressed signed integer: rotated right by one within its 7, 14 or 29 bits.
    pub(crate) fn signed(&mut self) -> Option<i32> {
        let (value, length) = self.integer()?;
        let bits = match length {
            1 => 6,
            2 => 13,
            _ => 28,
        };
        let magnitude = (value >> 1) as i32;
        Some(if value & 1 == 0 {
            magnitude
        } else {
            magnitude.wrapping_sub(1 << bits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of II.23.2.
    #[test]
    fn compressed_integers() {
        for (bytes, value) in [
            (&[0x03][..], 0x03),
            (&[0x7f], 0x7f),
            (&[0x80, 0x80], 0x80),
            (&[0xae, 0x57], 0x2e57),
            (&[0xbf, 0xff], 0x3fff),
            (&[0xc0, 0x00, 0x40, 0x00], 0x4000),
            (&[0xdf, 0xff, 0xff, 0xff], 0x1fff_ffff),
        ] {
            assert_eq!(compressed(bytes), Some((value, &[][..])));
            assert_eq!(compressed(&bytes[..bytes.len() - 1]), None);
        }
        for (bytes, value) in [
            (&[0x06][..], 3),
            (&[0x7b], -3),
            (&[0x80, 0x80], 64),
            (&[0x01], -64),
            (&[0xc0, 0x00, 0x40, 0x00], 8192),
            (&[0x80, 0x01], -8192),
            (&[0xdf, 0xff, 0xff, 0xfe], 268_435_455),
            (&[0xc0, 0x00, 0x00, 0x01], -268_435_456),
        ] {
            assert_eq!(BlobReader::new(bytes).signed(), Some(value));
        }
    }
}
