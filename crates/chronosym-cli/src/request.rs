//! Parses addresses as written by people and programs.

use chronosym_symbols::log::is_prefixed;
pub use chronosym_symbols::log::{At, Form, Method, Target, split};

use crate::units::{hex, parse_address};

/// A queried address.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressRequest<'a> {
    /// The text as written.
    pub text: &'a str,
    /// Its meaning; `None` if it is not an address.
    pub target: Option<Target<'a>>,
    /// What replaces it in a text.
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
            form,
            address: None,
            symbol_file: None,
        }
    }

    fn read(text: &'a str, number: impl Fn(&str) -> Option<u64>) -> Self {
        if is_command(text) {
            return AddressRequest::at(text, command(text, number));
        }
        AddressRequest::at(text, Target::parse(text, number))
    }
}

/// Whether a line is a command of llvm-symbolizer rather than a list of addresses.
pub fn is_command(line: &str) -> bool {
    ["CODE ", "FILE:", "BUILDID:"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// `[CODE] [FILE:]path address` or `[CODE] BUILDID:id address`; a path with spaces is quoted.
fn command(line: &str, number: impl Fn(&str) -> Option<u64>) -> Option<Target<'_>> {
    let line = line.strip_prefix("CODE ").unwrap_or(line);
    let (module, digits) = line.trim().rsplit_once(char::is_whitespace)?;
    let module = module.trim();
    let mut target = Target::new(None, At::Address(number(digits)?));
    match module.strip_prefix("BUILDID:") {
        Some(id) => target.id = Some(id),
        None => {
            let file = module.strip_prefix("FILE:").unwrap_or(module);
            target.file = Some(file.trim_matches(['"', '\'']));
        }
    }
    Some(target)
}

/// The radix of a list of numbers: decimal where possible, unless one number requires hexadecimal.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The radix requested by the user.
    radix: Option<u32>,
    /// A number without `0x` has hexadecimal letters.
    bare_hex: bool,
    /// Other numbers would have been decimal.
    changed: bool,
}

impl Numbers {
    pub fn new(radix: Option<u32>) -> Self {
        Numbers {
            radix,
            ..Self::default()
        }
    }

    pub fn read<'a>(&mut self, words: &[&'a str]) -> Vec<AddressRequest<'a>> {
        let is_decimal = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
        let is_hex = |word: &&str| {
            let (_, digits) = split(word);
            !is_prefixed(digits) && !is_decimal(digits) && parse_address(digits).is_some()
        };
        self.bare_hex = self.bare_hex || self.radix.is_none() && words.iter().any(is_hex);
        let radix = self.radix.unwrap_or(if self.bare_hex { 16 } else { 0 });
        let number = |digits: &str| match radix {
            16 if !is_prefixed(digits) => hex(digits),
            10 if !is_prefixed(digits) => digits.parse().ok(),
            _ => parse_address(digits),
        };
        let requests: Vec<_> = words
            .iter()
            .map(|word| AddressRequest::read(word, number))
            .collect();
        self.changed |= self.bare_hex
            && (words.iter().zip(&requests))
                .any(|(word, q)| q.target != AddressRequest::parse(word).target);
        requests
    }

    /// Returns a note if the radix of other numbers changed.
    pub fn note(&self) -> Option<String> {
        self.changed.then(|| {
            "some addresses without 0x have hexadecimal digits: all are read as hexadecimal (--radix 10 for decimal)"
                .to_owned()
        })
    }
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
        ] {
            assert_eq!(
                AddressRequest::parse(text).target,
                Some(Target::new(file, at)),
                "{text}"
            );
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

    #[test]
    fn one_hexadecimal_number_makes_a_list_hexadecimal() {
        let targets = |radix, words: &[&'static str]| {
            let mut numbers = Numbers::new(radix);
            let requests = numbers.read(words);
            let targets: Vec<_> = requests.iter().map(|q| q.target).collect();
            (targets, numbers.note().is_some())
        };
        let at = |all: &[u64]| {
            all.iter()
                .map(|&a| Some(Target::new(None, At::Address(a))))
                .collect::<Vec<_>>()
        };
        assert_eq!(targets(None, &["5730", "0x10"]), (at(&[5730, 0x10]), false));
        assert_eq!(
            targets(None, &["5730", "8c70", "0x10"]),
            (at(&[0x5730, 0x8c70, 0x10]), true)
        );
        assert_eq!(targets(Some(16), &["5730"]), (at(&[0x5730]), false));
        let decimal = targets(Some(10), &["5730", "8c70"]);
        assert_eq!(decimal, (vec![at(&[5730])[0], None], false));
        let module = targets(None, &["m+10", "8c70"]).0;
        assert_eq!(module[0], Some(Target::new(Some("m"), At::Rva(0x10))));
    }
}
