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
    start: usize,
}

const LONGEST: usize = "0x".len() + 16;

impl HexText {
    /// Returns the text of a number.
    pub fn new(number: u64) -> Self {
        let mut bytes = [b'0'; LONGEST];
        let mut start = LONGEST;
        let mut rest = number;
        while rest != 0 || start == LONGEST {
            start -= 1;
            bytes[start] = b"0123456789abcdef"[(rest & 0xf) as usize];
            rest >>= 4;
        }
        bytes[start - 1] = b'x';
        HexText {
            bytes,
            start: start - 2,
        }
    }
}

impl Deref for HexText {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.bytes[self.start..]).unwrap_or_default()
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
