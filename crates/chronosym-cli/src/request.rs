//! Parses addresses as written by people and programs.

use chronosym_symbols::log::is_prefixed;
pub use chronosym_symbols::log::{At, Form, Method, Target, split};

use crate::protocol::{self, Wanted, is_command, llvm_number};
use crate::units::{hex, parse_address};

/// A queried address.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressRequest<'a> {
    /// The text as written.
    pub text: &'a str,
    /// Its meaning; `None` if it is not an address.
    pub target: Option<Target<'a>>,
    /// The kind of answer that it takes.
    pub wanted: Wanted,
    /// Its replacement in a text.
    pub form: Form,
    /// The address to print, if the target has another one.
    pub address: Option<u64>,
    /// The name of the symbol file of its module, if stated.
    pub symbol_file: Option<&'a str>,
}

impl<'a> AddressRequest<'a> {
    /// Parses `0x…`, decimal, and `module+0xrva` or `module!0xrva`, with the module's name or path;
    /// `0x06……+0xil`, a method's token with an IL offset, optionally after `module!`; and `CODE
    /// module 0x…`, the input of llvm-symbolizer.
    pub fn parse(text: &'a str) -> Self {
        Self::read(text, parse_address)
    }

    pub fn at(text: &'a str, target: Option<Target<'a>>) -> Self {
        let form = Form::default();
        AddressRequest {
            text,
            target,
            wanted: Wanted::Code,
            form,
            address: None,
            symbol_file: None,
        }
    }

    /// Returns the address to print.
    pub fn shown_address(&self) -> Option<u64> {
        let address = self.target.and_then(|target| target.address());
        self.address.or(address)
    }

    fn read(text: &'a str, number: impl Fn(&str) -> Option<u64>) -> Self {
        if is_command(text) {
            let line = protocol::llvm(text, false, number);
            let wanted = line.wanted;
            return AddressRequest {
                wanted,
                ..AddressRequest::at(text, line.target)
            };
        }
        AddressRequest::at(text, Target::parse(text, number))
    }

    /// Reads a line of llvm-symbolizer's input; it need not name a file if `has_file`.
    pub fn of_llvm(line: &'a str, has_file: bool) -> Self {
        // Most lines are an address.
        if let Some(address) = llvm_number(line).filter(|_| has_file) {
            return AddressRequest::at(line, Some(Target::new(None, At::Address(address))));
        }
        let read = protocol::llvm(line, has_file, llvm_number);
        AddressRequest {
            wanted: read.wanted,
            ..AddressRequest::at(line, read.target)
        }
    }

    /// Reads a line of addr2line's input.
    pub fn of_gnu(line: &'a str) -> Self {
        AddressRequest::at(line, Some(protocol::gnu(line)))
    }
}

/// The radix of a list of numbers without `0x`.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The radix, if it is known.
    radix: Option<u32>,
    /// The user stated it.
    is_stated: bool,
    /// Numbers are hexadecimal that would have been decimal.
    has_changed: bool,
    /// A number in a decimal list has hexadecimal digits.
    has_other: bool,
}

impl Numbers {
    pub fn new(radix: Option<u32>) -> Self {
        Numbers {
            radix,
            is_stated: radix.is_some(),
            ..Self::default()
        }
    }

    /// Reads a whole list: its numbers are decimal, unless one has hexadecimal digits or leading
    /// zeros.
    pub fn read<'a>(&mut self, words: &[&'a str]) -> Vec<AddressRequest<'a>> {
        if self.radix.is_none() {
            let mut evidence = words.iter().filter_map(|word| radix_of(word));
            self.radix = evidence
                .clone()
                .find(|radix| *radix == 16)
                .or(evidence.next());
            self.has_changed =
                self.radix == Some(16) && words.iter().any(|word| radix_of(word) == Some(10));
        }
        self.read_next(words)
    }

    /// Reads a part of a list: the first number of the list decides.
    pub fn read_next<'a>(&mut self, words: &[&'a str]) -> Vec<AddressRequest<'a>> {
        if self.radix.is_none() {
            self.radix = words.iter().find_map(|word| radix_of(word));
        }
        let radix = self.radix.unwrap_or(10);
        self.has_other |=
            radix == 10 && !self.is_stated && words.iter().any(|word| radix_of(word) == Some(16));
        let number = |digits: &str| match radix {
            _ if is_prefixed(digits) => parse_address(digits),
            16 => hex(digits),
            _ => digits.parse().ok(),
        };
        let requests = words.iter().map(|word| AddressRequest::read(word, number));
        requests.collect()
    }

    /// Returns a note if not all numbers suggest the radix.
    pub fn note(&self) -> Option<String> {
        let note = match (self.has_changed, self.has_other) {
            (true, _) => {
                "some addresses without 0x have hexadecimal digits: all are read as hexadecimal (--radix 10 for decimal)"
            }
            (_, true) => {
                "addresses without 0x are read as decimal, like the first one, but some have hexadecimal digits: use --radix 16 to read all as hexadecimal"
            }
            _ => return None,
        };
        Some(note.to_owned())
    }
}

/// Returns the radix that the number of a word suggests; `None` for a word without one, with `0x`,
/// and for 0.
fn radix_of(word: &str) -> Option<u32> {
    let (_, digits) = split(word);
    if is_prefixed(digits) || digits == "0" {
        return None;
    }
    let is_decimal = digits.bytes().all(|b| b.is_ascii_digit());
    parse_address(digits)?;
    Some(if is_decimal && !digits.starts_with('0') {
        10
    } else {
        16
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_several_forms() {
        let token = Method::Token(0x0600_0001);
        for (text, file, at) in [
            ("0x1f", None, At::Address(0x1f)),
            ("31", None, At::Address(31)),
            ("coreclr+0x10", Some("coreclr"), At::Rva(0x10)),
            ("coreclr.dll!0x10", Some("coreclr.dll"), At::Rva(0x10)),
            ("coreclr!+0x10", Some("coreclr"), At::Rva(0x10)),
            ("libstdc++.so.6+0x10", Some("libstdc++.so.6"), At::Rva(0x10)),
            ("0x06000001+0x1a", None, At::Il(token, 0x1a)),
            ("0x6000001+26", None, At::Il(token, 0x1a)),
            ("a/b.dll!0x06000001+0", Some("a/b.dll"), At::Il(token, 0)),
            (
                "b.dll!N.T.M+0x2",
                Some("b.dll"),
                At::Il(Method::Named("N.T.M"), 2),
            ),
            ("0x07000001+0x1a", Some("0x07000001"), At::Rva(0x1a)),
            ("CODE /b/a 0x10", Some("/b/a"), At::Address(0x10)),
            ("CODE \"/b/a b\" 0x10", Some("/b/a b"), At::Address(0x10)),
            ("FILE:a.out  16", Some("a.out"), At::Address(0x10)),
            ("CODE a.out 0x10", Some("a.out"), At::Address(0x10)),
        ] {
            let target = AddressRequest::parse(text).target;
            let parsed = target.map(|target| (target.file, target.at));
            assert_eq!(parsed, Some((file, at)), "{text}");
        }
        let by_id = AddressRequest::parse("BUILDID:c0ffee 0x10").target;
        assert_eq!(by_id.map(|target| target.id), Some(Some("c0ffee")));
        for text in [
            "word",
            "",
            "CODE ",
            "CODE 0x10",
            "CODE a b",
            "0x06000001+0x1ffffffff0",
        ] {
            let target = AddressRequest::parse(text).target;
            assert!(target.is_none_or(|p| !matches!(p.at, At::Il(..))), "{text}");
        }
        assert_eq!(AddressRequest::parse("CODE 0x10").target, None);
    }

    fn targets(radix: Option<u32>, words: &[&'static str]) -> (Vec<Option<u64>>, Option<String>) {
        let mut numbers = Numbers::new(radix);
        let requests = numbers.read(words);
        let targets = requests.iter().map(|q| q.target?.address());
        (targets.collect(), numbers.note())
    }

    #[test]
    fn one_hexadecimal_number_makes_a_list_hexadecimal() {
        let at = |all: &[u64]| all.iter().map(|&a| Some(a)).collect::<Vec<_>>();
        assert_eq!(targets(None, &["5730", "0x10"]), (at(&[5730, 0x10]), None));
        for other in ["8c70", "08070"] {
            let (addresses, note) = targets(None, &["5730", other, "0x10"]);
            assert_eq!(addresses[0], Some(0x5730));
            assert!(note.unwrap().contains("all are read as hexadecimal"));
        }
        assert_eq!(targets(Some(16), &["5730"]), (at(&[0x5730]), None));
        let decimal = targets(Some(10), &["5730", "8c70"]);
        assert_eq!(decimal, (vec![Some(5730), None], None));
        let module = targets(None, &["m+10", "8c70"]).0;
        assert_eq!(module[0], Some(0x10));
    }

    /// The radix cannot depend on how much of the input has arrived.
    #[test]
    fn the_first_number_of_a_stream_decides() {
        let mut numbers = Numbers::new(None);
        let mut read = |word: &'static str| numbers.read_next(&[word])[0].target?.address();
        assert_eq!(read("0x10"), Some(0x10));
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("1139"), Some(1139));
        assert_eq!(read("11a1"), None);
        assert_eq!(read("0x11a1"), Some(0x11a1));
        assert_eq!(read("1149"), Some(1149));
        assert!(numbers.note().unwrap().contains("--radix 16"));
        let mut numbers = Numbers::new(None);
        let mut read = |word: &'static str| numbers.read_next(&[word])[0].target?.address();
        assert_eq!(read("00001139"), Some(0x1139));
        assert_eq!(read("1139"), Some(0x1139));
        assert_eq!(numbers.note(), None);
    }
}
