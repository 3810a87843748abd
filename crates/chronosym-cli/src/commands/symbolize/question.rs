//! Addresses as people and programs write them.

use std::ops::Range;

use crate::units::parse_address;

/// One address that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Question<'a> {
    /// As it was written.
    pub text: &'a str,
    /// What it means; `None` if it is no address.
    pub place: Option<Place<'a>>,
}

/// Where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place<'a> {
    /// An address as it is.
    Address(u64),
    /// Bytes from the base of an image that is named.
    Rva(&'a str, u64),
}

impl<'a> Question<'a> {
    /// `0x…`, decimal, `module+0xrva` or `module!0xrva`.
    pub fn parse(text: &'a str) -> Self {
        let place = match text.rfind(['+', '!']) {
            Some(at) if at > 0 => parse_address(text[at + 1..].trim_start_matches('+'))
                .map(|rva| Place::Rva(text[..at].trim_end_matches('!'), rva)),
            _ => parse_address(text).map(Place::Address),
        };
        Question { text, place }
    }
}

/// Digits without `0x` are taken for an address from this many on: shorter runs are numbers more often than not.
const BARE_DIGITS: usize = 8;

/// All that may be an address in a text, with where it stands.
pub fn find_all(text: &[u8]) -> Vec<(Range<usize>, Question<'_>)> {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'`');
    let is_part = |b: u8| is_word(b) || matches!(b, b'+' | b'!');
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if !is_part(text[at]) {
            at += 1;
            continue;
        }
        let len = text[at..].iter().take_while(|&&b| is_part(b)).count();
        let mut range = at..at + len;
        at = range.end;
        // A sentence may end after an address.
        while range.len() > 1 && !text[range.end - 1].is_ascii_hexdigit() {
            range.end -= 1;
        }
        let Ok(word) = std::str::from_utf8(&text[range.clone()]) else {
            continue;
        };
        let number = word.rsplit(['+', '!']).next().unwrap_or(word);
        let prefixed = number.starts_with("0x") || number.starts_with("0X");
        let digits = || number.chars().all(|c| c.is_ascii_hexdigit() || c == '`');
        let bare = || number.len() == word.len() && number.len() >= BARE_DIGITS && digits();
        if !(prefixed || bare()) {
            continue;
        }
        let mut question = Question::parse(word);
        if !prefixed {
            // In a text bare digits are hex.
            let value = u64::from_str_radix(&number.replace('`', ""), 16);
            question.place = value.ok().map(Place::Address);
        }
        if question.place.is_some() {
            found.push((range, question));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_several_forms() {
        let place = |text| Question::parse(text).place;
        assert_eq!(place("0x1f"), Some(Place::Address(0x1f)));
        assert_eq!(place("31"), Some(Place::Address(31)));
        assert_eq!(place("coreclr+0x10"), Some(Place::Rva("coreclr", 0x10)));
        assert_eq!(
            place("coreclr.dll!0x10"),
            Some(Place::Rva("coreclr.dll", 0x10))
        );
        assert_eq!(place("coreclr!+0x10"), Some(Place::Rva("coreclr", 0x10)));
        assert_eq!(
            place("libstdc++.so.6+0x10"),
            Some(Place::Rva("libstdc++.so.6", 0x10))
        );
        assert_eq!(place("word"), None);
        assert_eq!(place(""), None);
    }

    #[test]
    fn addresses_are_found_in_text() {
        let text =
            b"at 0x7f00, [00007fcc`a43da4a7] in coreclr+0x1a2. (12345678901) \xff day 2026 0xyz";
        let found: Vec<(&str, Option<Place<'_>>)> = find_all(text)
            .iter()
            .map(|(_, q)| (q.text, q.place))
            .collect();
        assert_eq!(
            found,
            [
                ("0x7f00", Some(Place::Address(0x7f00))),
                ("00007fcc`a43da4a7", Some(Place::Address(0x7fcc_a43d_a4a7))),
                ("coreclr+0x1a2", Some(Place::Rva("coreclr", 0x1a2))),
                ("12345678901", Some(Place::Address(0x123_4567_8901))),
            ]
        );
    }
}
