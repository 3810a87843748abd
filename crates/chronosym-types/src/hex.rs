use std::fmt;
use std::ops::Deref;

/// Displays bytes as lower-case hex digits.
///
/// # Examples
///
/// ```
/// assert_eq!(chronosym_types::Hex(&[0x5f, 0x0d]).to_string(), "5f0d");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A number as `0x` and lower-case hex digits, faster than by a format string.
///
/// # Examples
///
/// ```
/// assert_eq!(&*chronosym_types::HexText::new(0x7f00_1234), "0x7f001234");
/// assert_eq!(&*chronosym_types::HexText::new(0), "0x0");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HexText {
    bytes: [u8; LONGEST],
    length: usize,
}

const LONGEST: usize = "0x".len() + 16;

impl HexText {
    /// Returns the text of a number.
    #[inline]
    pub fn new(number: u64) -> Self {
        let vacant = (number | 1).leading_zeros() / 4;
        let number = number << (4 * vacant);
        let mut bytes = *b"0x0000000000000000";
        bytes[2..10].copy_from_slice(&eight_digits(number >> 32));
        bytes[10..].copy_from_slice(&eight_digits(number & 0xffff_ffff));
        HexText {
            bytes,
            length: LONGEST - vacant as usize,
        }
    }

    /// Returns the bytes of the text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Returns the digits of a number of 32 bits, all of them computed at once.
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // A byte for each digit.
    let halves = (number | number << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (bytes | bytes << 4) & (0x0f * EACH);
    let is_letter = (digits + 6 * EACH) >> 4 & EACH;
    let text = digits + u64::from(b'0') * EACH + is_letter * u64::from(b'a' - b'0' - 10);
    text.to_be_bytes()
}

impl Deref for HexText {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_a_format_string() {
        for number in (0..64).map(|bit| 1 << bit).chain([0, 0xabc, u64::MAX]) {
            assert_eq!(&*HexText::new(number), format!("{number:#x}"));
            assert_eq!(&*HexText::new(!number), format!("{:#x}", !number));
        }
    }
}
