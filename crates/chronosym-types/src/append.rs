//! Appends values of JSON to a buffer: for outputs with millions of them, without format strings.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "positions in a text of at most 20 digits"
)]

use std::borrow::Cow;

use crate::{HexText, WStr, escape};

/// The digits of the numbers below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends a number of millionths with six decimals.
///
/// # Examples
///
/// ```
/// let mut out = Vec::new();
/// chronosym_types::append::millionths(&mut out, 12_034_567);
/// assert_eq!(out, b"12.034567");
/// ```
pub fn millionths(out: &mut Vec<u8>, millionths: u64) {
    const ONE: u64 = 1_000_000;
    number(out, millionths / ONE);
    let decimals = (millionths % ONE) as usize;
    let [a, b] = PAIRS[decimals / 10_000];
    let [c, d] = PAIRS[decimals / 100 % 100];
    let [e, f] = PAIRS[decimals % 100];
    out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
}

/// Appends a number.
///
/// # Examples
///
/// ```
/// let mut out = b"[".to_vec();
/// chronosym_types::append::number(&mut out, 1207);
/// assert_eq!(out, b"[1207");
/// ```
pub fn number(out: &mut Vec<u8>, number: u64) {
    if number < 10 {
        // Most cells of a table have one digit.
        return out.push(b'0' + number as u8);
    }
    let mut digits = [0; 20];
    let (mut rest, mut start) = (number, digits.len());
    while rest > 99 {
        start -= 2;
        [digits[start], digits[start + 1]] = PAIRS[(rest % 100) as usize];
        rest /= 100;
    }
    [digits[start - 2], digits[start - 1]] = PAIRS[rest as usize];
    start -= if rest > 9 { 2 } else { 1 };
    out.extend_from_slice(&digits[start..]);
}

/// Appends a signed number.
pub fn signed(out: &mut Vec<u8>, signed: i64) {
    if signed < 0 {
        out.push(b'-');
    }
    number(out, signed.unsigned_abs());
}

/// Appends a string: quoted, with escapes for hostile characters.
///
/// # Examples
///
/// ```
/// let mut out = Vec::new();
/// chronosym_types::append::text(&mut out, "a\"b\n");
/// assert_eq!(out, br#""a\"b\n""#);
/// ```
pub fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(escape::json(text).as_bytes());
    out.push(b'"');
}

/// Appends UTF-16 text as a string.
pub fn wide(out: &mut Vec<u8>, text: WStr<'_>) {
    out.push(b'"');
    let start = out.len();
    text.append_to(out);
    let own = str::from_utf8(&out[start..]).unwrap_or_default();
    if let Cow::Owned(escaped) = escape::json(own) {
        out.truncate(start);
        out.extend_from_slice(escaped.as_bytes());
    }
    out.push(b'"');
}

/// Appends a number as a string of hex digits: `"0x…"`.
pub fn hex(out: &mut Vec<u8>, number: u64) {
    out.push(b'"');
    out.extend_from_slice(HexText::new(number).as_bytes());
    out.push(b'"');
}

/// Appends a member that is not the first of its object.
///
/// # Examples
///
/// ```
/// use chronosym_types::append;
///
/// let mut out = b"{\"a\":1".to_vec();
/// append::member(&mut out, "b", |out| append::number(out, 2));
/// assert_eq!(out, b"{\"a\":1,\"b\":2");
/// ```
pub fn member(out: &mut Vec<u8>, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    value(out);
}

/// Appends items in brackets, with commas between them.
///
/// # Examples
///
/// ```
/// use chronosym_types::append;
///
/// let mut out = Vec::new();
/// append::list(&mut out, b"[]", [1, 2], append::number);
/// assert_eq!(out, b"[1,2]");
/// ```
pub fn list<T>(
    out: &mut Vec<u8>,
    brackets: &[u8; 2],
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(brackets[0]);
    for (index, it) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        item(out, it);
    }
    out.push(brackets[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_text_is_escaped_as_other_text_is() {
        for plain in [
            "",
            "Main",
            "Größe😀",
            "a\"b\\\n",
            "0123456789abcdef\u{202e}",
        ] {
            let units: Vec<u8> = plain.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let (mut of_wide, mut of_text) = (b"x".to_vec(), b"x".to_vec());
            wide(&mut of_wide, WStr::new(&units));
            text(&mut of_text, plain);
            assert_eq!(of_wide, of_text);
        }
    }

    #[test]
    fn numbers_are_written_as_by_a_format_string() {
        let powers = (0..20).map(|digits| 10u64.pow(digits));
        for value in powers.flat_map(|power| [power - 1, power, power + 1, power | 0x2a]) {
            let mut out = Vec::new();
            number(&mut out, value);
            out.push(b' ');
            millionths(&mut out, value);
            out.push(b' ');
            signed(&mut out, value as i64);
            out.push(b' ');
            signed(&mut out, -(value as i64));
            out.push(b' ');
            hex(&mut out, value);
            let signed = value as i64;
            let negative = -signed;
            let (whole, part) = (value / 1_000_000, value % 1_000_000);
            let expected = format!("{value} {whole}.{part:06} {signed} {negative} \"{value:#x}\"");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        number(&mut out, u64::MAX);
        signed(&mut out, i64::MIN);
        millionths(&mut out, u64::MAX);
        let expected = format!("{}{}18446744073709.551615", u64::MAX, i64::MIN);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
