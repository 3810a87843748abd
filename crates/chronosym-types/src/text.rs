use std::fmt;

/// Copies bytes as text; invalid UTF-8 becomes U+FFFD.
///
/// Copies before it validates: bytes of a mapped file can change in between, and invalid text in a
/// `str` is undefined behaviour.
#[inline]
pub fn copied_text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// UTF-16LE text inside a payload, without its terminator, decoded on demand.
///
/// Decoding is lossy: a lone surrogate becomes U+FFFD.
///
/// # Examples
///
/// ```
/// use chronosym_types::WStr;
///
/// let text = WStr::new(b"M\0a\0i\0n\0");
/// assert_eq!(text.to_string(), "Main");
/// assert_eq!(text.chars().count(), 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WStr<'a>(&'a [u8]);

impl<'a> WStr<'a> {
    /// Wraps UTF-16LE code units. Ignores an odd last byte.
    pub fn new(utf16le: &'a [u8]) -> Self {
        Self(utf16le.get(..utf16le.len() & !1).unwrap_or_default())
    }

    /// Returns the bytes of the code units.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the UTF-16 code units.
    pub fn units(&self) -> impl Iterator<Item = u16> + use<'a> {
        let (units, _) = self.0.as_chunks();
        units.iter().map(|unit| u16::from_le_bytes(*unit))
    }

    /// Iterates over the characters.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        char::decode_utf16(self.units()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Returns the text.
    pub fn to_text(&self) -> String {
        let mut text = Vec::with_capacity(self.0.len() / 2);
        self.append_to(&mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// Appends the text to `out` as UTF-8.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let (units, _) = self.0.as_chunks();
        // Nearly all names are ASCII. No early exit, so that many units are read at a time.
        let bits = units
            .iter()
            .fold(0, |bits, unit| bits | u16::from_le_bytes(*unit));
        if bits < 0x80 {
            out.extend(units.iter().map(|[low, _]| *low));
            return;
        }
        for c in self.chars() {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

impl fmt::Display for WStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Debug for WStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl PartialEq<str> for WStr<'_> {
    fn eq(&self, other: &str) -> bool {
        let (units, _) = self.0.as_chunks();
        // No early exit, so that many units are compared at a time.
        let pairs = units.iter().zip(other.as_bytes());
        let differences = pairs.fold(0, |bits, (unit, &byte)| {
            let byte = u16::from(byte);
            bits | u16::from_le_bytes(*unit) ^ byte | byte & 0x80
        });
        (units.len() == other.len() && differences == 0) || self.chars().eq(other.chars())
    }
}

impl PartialEq<&str> for WStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// Eight-bit text inside a payload, without its terminator: UTF-8 or an unknown ANSI code page.
///
/// Decoding is lossy: invalid UTF-8 becomes U+FFFD.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AStr<'a>(&'a [u8]);

impl<'a> AStr<'a> {
    /// Wraps bytes of text.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text; borrowed if it is UTF-8.
    pub fn to_text(&self) -> std::borrow::Cow<'a, str> {
        // Valid text is checked many bytes at once.
        std::str::from_utf8(self.0).map_or_else(|_| String::from_utf8_lossy(self.0), Into::into)
    }
}

impl fmt::Display for AStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Debug for AStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_text(), f)
    }
}

impl PartialEq<str> for AStr<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for AStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(units: &[u16]) -> Vec<u8> {
        units.iter().flat_map(|u| u.to_le_bytes()).collect()
    }

    #[test]
    fn text_is_decoded_lossily() {
        let bytes = utf16(&[0x61, 0xe9, 0xd83d, 0xde00, 0xd800, 0x62]);
        let text = WStr::new(&bytes);
        assert_eq!(text.to_string(), "aé😀\u{fffd}b");
        let mut out = b">".to_vec();
        text.append_to(&mut out);
        assert_eq!(out, ">aé😀\u{fffd}b".as_bytes());
        assert_eq!(text, "aé😀\u{fffd}b");
        assert_eq!(AStr::new(b"a\xff").to_string(), "a\u{fffd}");
    }

    #[test]
    fn long_text_is_decoded_and_compared_wherever_ascii_ends() {
        for at in [0, 1, 63, 64, 65, 127, 128, 200] {
            let mut units = vec![0x61; 200];
            units.insert(at, 0xc3);
            units.insert(at + 1, 0xa9);
            let bytes = utf16(&units);
            let mut expected = "a".repeat(200);
            expected.insert_str(at, "\u{c3}\u{a9}");
            assert_eq!(WStr::new(&bytes).to_string(), expected);
            assert_eq!(WStr::new(&bytes), expected.as_str());
            // As bytes, é has the values of these two units.
            assert_ne!(
                WStr::new(&bytes),
                expected.replace("\u{c3}\u{a9}", "é").as_str()
            );
            assert_ne!(WStr::new(&bytes[2..]), expected.as_str());
        }
        assert_ne!(WStr::new(&utf16(&[0xc3, 0xa9])), "é");
    }

    #[test]
    fn odd_byte_is_left_out() {
        assert_eq!(WStr::new(b"a\0b"), "a");
    }
}
