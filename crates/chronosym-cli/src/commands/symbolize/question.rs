//! Addresses as people and programs write them.

use std::ops::Range;

use chronosym::file_name;

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
    /// `0x…`, decimal, `module+0xrva` or `module!0xrva`, the module by its name or path.
    pub fn parse(text: &'a str) -> Self {
        Self::read(text, parse_address)
    }

    fn read(text: &'a str, number: impl Fn(&str) -> Option<u64>) -> Self {
        let (module, digits) = split(text);
        let value = number(digits);
        let place = value.map(|value| match module {
            "" => Place::Address(value),
            module => Place::Rva(file_name(module), value),
        });
        Question { text, place }
    }
}

/// The module, if one is named, and the number.
fn split(text: &str) -> (&str, &str) {
    match text.rfind(['+', '!']) {
        Some(at) if at > 0 => {
            let digits = text[at + 1..].trim_start_matches('+');
            (text[..at].trim_end_matches('!'), digits)
        }
        _ => ("", text),
    }
}

fn is_prefixed(number: &str) -> bool {
    number.starts_with("0x") || number.starts_with("0X")
}

fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(&digits.replace('`', ""), 16).ok()
}

/// How the numbers of a list are read: decimal as far as they can be, unless one shows that the list is hexadecimal.
#[derive(Debug, Default)]
pub struct Numbers {
    /// What the user says, if he does.
    radix: Option<u32>,
    /// A number without `0x` had the letters of a hexadecimal one.
    bare_hex: bool,
    /// Others would have been decimal.
    changed: bool,
}

impl Numbers {
    pub fn new(radix: Option<u32>) -> Self {
        Numbers {
            radix,
            ..Self::default()
        }
    }

    pub fn read<'a>(&mut self, words: &[&'a str]) -> Vec<Question<'a>> {
        let is_decimal = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
        let is_hex = |word: &&str| {
            let (_, digits) = split(word);
            !is_prefixed(digits) && !is_decimal(digits) && parse_address(digits).is_some()
        };
        self.bare_hex |= self.radix.is_none() && words.iter().any(is_hex);
        let radix = self.radix.unwrap_or(if self.bare_hex { 16 } else { 0 });
        let number = |digits: &str| match radix {
            16 if !is_prefixed(digits) => hex(digits),
            10 if !is_prefixed(digits) => digits.parse().ok(),
            _ => parse_address(digits),
        };
        let questions: Vec<_> = words
            .iter()
            .map(|word| Question::read(word, number))
            .collect();
        self.changed |= self.bare_hex
            && (words.iter().zip(&questions))
                .any(|(word, q)| q.place != Question::parse(word).place);
        questions
    }

    /// What is worth saying of how the list was read.
    pub fn note(&self) -> Option<String> {
        self.changed.then(|| {
            "some addresses without 0x have hexadecimal digits: all are read as hexadecimal (--radix 10 for decimal)"
                .to_owned()
        })
    }
}

/// Digits without `0x` are taken for an address from this many on: shorter runs are numbers more often than not.
const BARE_DIGITS: usize = 8;

/// All that may be an address in a text, with where it stands. It stands as a word of its own: what is part of a longer one, or
/// the value of a register, is left alone.
pub fn find_all(text: &[u8]) -> Vec<(Range<usize>, Question<'_>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if !is_part(text[at]) {
            at += 1;
            continue;
        }
        let start = at;
        at += text[at..].iter().take_while(|&&b| is_part(b)).count();
        // A sentence may end after an address.
        let marks = text[start..at].iter().rev();
        let marks = marks.take_while(|b| !b.is_ascii_alphanumeric()).count();
        let end = at - marks;
        // `rip=0x…`: what a register holds need not be code.
        if start == end || (start > 0 && text[start - 1] == b'=') {
            continue;
        }
        let Some((range, question)) = word(text, start, end) else {
            continue;
        };
        // glibc: `program(+0xrva)[0xaddress]` says the same place twice.
        if text[range.start] == b'+'
            && let Some(same) = text[range.end..].strip_prefix(b")[")
        {
            at = range.end + 2 + same.iter().take_while(|&&b| is_part(b)).count();
        }
        found.push((range, question));
    }
    found
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'`')
}

fn is_part(b: u8) -> bool {
    is_word(b) || matches!(b, b'+' | b'!')
}

/// The address that a word is, and what of the text it takes up.
fn word(text: &[u8], start: usize, end: usize) -> Option<(Range<usize>, Question<'_>)> {
    let utf8 = |range: Range<usize>| std::str::from_utf8(&text[range]).ok();
    let own = utf8(start..end)?;
    let (module, number) = split(own);
    let path = |end: usize| {
        let is_path = |&&b: &&u8| is_word(b) || matches!(b, b'/' | b'\\' | b'~');
        let start = end - text[..end].iter().rev().take_while(is_path).count();
        match text[..start] {
            [.., drive, b':'] if drive.is_ascii_alphabetic() && text[start] == b'\\' => start - 2,
            _ => start,
        }
    };
    if let Some(rva) = own.strip_prefix('+') {
        let module = start.checked_sub(1).filter(|&at| text[at] == b'(')?;
        let module = file_name(utf8(path(module)..module)?);
        let place = is_prefixed(rva).then(|| parse_address(rva)).flatten();
        let place = place.filter(|_| !module.is_empty())?;
        let place = Some(Place::Rva(module, place));
        return Some((start..end, Question { text: own, place }));
    }
    if is_prefixed(number) {
        let start = if module.is_empty() {
            start
        } else {
            path(start + module.len())
        };
        let question = Question::parse(utf8(start..end)?);
        return question.place.is_some().then_some((start..end, question));
    }
    // In a text bare digits are hex.
    let bare = module.is_empty() && number.len() >= BARE_DIGITS;
    let value = bare.then(|| hex(number)).flatten()?;
    let place = Some(Place::Address(value));
    Some((start..end, Question { text: own, place }))
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

    #[test]
    fn forms_of_other_tools_are_known() {
        let replaced = |text: &str| {
            let mut out = text.to_owned();
            for (range, question) in find_all(text.as_bytes()).into_iter().rev() {
                let place = match question.place {
                    Some(Place::Rva(module, rva)) => format!("<{module} {rva:x}>"),
                    Some(Place::Address(address)) => format!("<{address:x}>"),
                    None => "<>".to_owned(),
                };
                out.replace_range(range, &place);
            }
            out
        };
        for (text, expected) in [
            // glibc
            ("./prog(+0xbc90)[0x55d0c0]", "./prog(<prog bc90>)[0x55d0c0]"),
            (
                "./prog(main+0x1a) [0x401136]",
                "./prog(<main 1a>) [<401136>]",
            ),
            // AddressSanitizer
            (
                "#1 0x55d0c0 (/srv/b/prog+0xbc90) (BuildId: ab)",
                "#1 <55d0c0> (<prog bc90>) (BuildId: ab)",
            ),
            // HotSpot, Windows
            (
                "V  [libjvm.so+0x8d2f3c]  f+0x1c",
                "V  [<libjvm.so 8d2f3c>]  <f 1c>",
            ),
            (r"at C:\x\prog.exe+0x10", "at <prog.exe 10>"),
            // Not addresses of code, or not whole ones.
            (
                "rip=0x7f001234, 0xbc90h 0x12zz",
                "rip=0x7f001234, 0xbc90h 0x12zz",
            ),
            ("no module (+0x10) x=+0x10", "no module (+0x10) x=+0x10"),
        ] {
            assert_eq!(replaced(text), expected, "{text}");
        }
    }

    #[test]
    fn one_hexadecimal_number_makes_a_list_hexadecimal() {
        let places = |radix, words: &[&'static str]| {
            let mut numbers = Numbers::new(radix);
            let questions = numbers.read(words);
            let places: Vec<_> = questions.iter().map(|q| q.place).collect();
            (places, numbers.note().is_some())
        };
        let at = |all: &[u64]| {
            all.iter()
                .map(|&a| Some(Place::Address(a)))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(None, &["5730", "0x10"]), (at(&[5730, 0x10]), false));
        assert_eq!(
            places(None, &["5730", "8c70", "0x10"]),
            (at(&[0x5730, 0x8c70, 0x10]), true)
        );
        assert_eq!(places(Some(16), &["5730"]), (at(&[0x5730]), false));
        let decimal = places(Some(10), &["5730", "8c70"]);
        assert_eq!(decimal, (vec![Some(Place::Address(5730)), None], false));
        let module = places(None, &["m+10", "8c70"]).0;
        assert_eq!(module[0], Some(Place::Rva("m", 0x10)));
    }
}
