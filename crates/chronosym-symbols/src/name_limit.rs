//! The maximum length of names and paths of symbol files; longer ones are truncated.
//!
//! A file of 2 MB can contain a name of nearly that size, which every frame in its function would
//! repeat.

use std::borrow::Cow;

use chronosym_types::copied_text;

use crate::demangle::Scheme;

/// Maximum length of a name or path, in bytes; compilers mangle names before they get longer.
const MAX_TEXT: usize = 4 << 10;

/// The same for a mangled name, which would be lost as a whole.
const MAX_MANGLED: usize = 64 << 10;

/// Appended to a truncated text.
const MARK: &str = "…";

/// Returns the text, or its start with a mark if it is too long.
pub(crate) fn limited(text: &[u8]) -> Cow<'_, [u8]> {
    if text.len() <= MAX_TEXT {
        return Cow::Borrowed(text);
    }
    let start = text.get(..MAX_TEXT).unwrap_or(text);
    let is_mangled = || Scheme::of(&copied_text(start.get(..8).unwrap_or(start))).is_some();
    if text.len() <= MAX_MANGLED && is_mangled() {
        return Cow::Borrowed(text);
    }
    // Drop a character that is cut in two.
    let is_start = |&at: &usize| start.get(at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let end = match start.get(MAX_TEXT - 1) {
        Some(byte) if byte.is_ascii() => MAX_TEXT,
        _ => (MAX_TEXT - 4..MAX_TEXT).rev().find(is_start).unwrap_or(0),
    };
    let whole = start.get(..end).unwrap_or_default();
    Cow::Owned([whole, MARK.as_bytes()].concat())
}

/// Returns true for a truncated text.
pub(crate) fn is_cut(text: &str) -> bool {
    text.len() > MAX_TEXT - 4 && text.ends_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        for (text, len) in [("x", 4096), ("ä", 4096), ("xä", 4096), ("漢", 4095)] {
            let short = text.repeat(4096 / text.len());
            assert_eq!(limited(short.as_bytes()), short.as_bytes());
            assert!(!is_cut(&short));
            let long = text.repeat(100_000);
            let cut = String::from_utf8(limited(long.as_bytes()).into_owned()).unwrap();
            let (start, end) = cut.split_at(cut.len() - MARK.len());
            assert!(
                long.starts_with(start) && end == MARK && is_cut(&cut),
                "{text}"
            );
            assert!(
                start.len() > len - 5 && start.len() <= len,
                "{text} {}",
                start.len()
            );
        }
    }

    #[test]
    fn mangled_names_are_longer() {
        let name = format!("_ZN{}E", "3abc".repeat(10_000));
        assert_eq!(limited(name.as_bytes()), name.as_bytes());
        let longer = format!("_ZN{}E", "3abc".repeat(100_000));
        assert!(limited(longer.as_bytes()).len() < 5000);
    }
}
