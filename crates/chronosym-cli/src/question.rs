//! Addresses as people and programs write them.

use crate::units::parse_address;

/// One address that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Question<'a> {
    /// As it was written.
    pub text: &'a str,
    /// What it means; `None` if it is no address.
    pub place: Option<Place<'a>>,
    /// What replaces it in a text.
    pub form: Form,
}

/// What replaces an address in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The names, each with its line.
    #[default]
    Names,
    /// File and line, with this between them: the name stands there already.
    Line(&'static str),
}

/// Where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The module, where one is named: by its name or a path.
    pub file: Option<&'a str>,
    /// What else tells which module: its build id, the id of its PDB, or its module version id.
    pub id: Option<&'a str>,
    pub at: At<'a>,
}

/// Where in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At<'a> {
    /// An address as it is.
    Address(u64),
    /// Bytes from the image's base.
    Rva(u64),
    /// Bytes from the start of the file.
    FileOffset(u64),
    /// Bytes from the start of a method's IL.
    Il(Method<'a>, u32),
}

/// A managed method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method<'a> {
    /// By its metadata token.
    Token(u32),
    /// By its full name.
    Named(&'a str),
}

impl<'a> Place<'a> {
    pub fn new(file: Option<&'a str>, at: At<'a>) -> Self {
        let file = file.filter(|file| !file.is_empty());
        Place { file, id: None, at }
    }
}

impl Place<'_> {
    /// The number that frames show, where it is one of an image.
    pub fn address(&self) -> Option<u64> {
        match self.at {
            At::Address(n) | At::Rva(n) | At::FileOffset(n) => Some(n),
            At::Il(..) => None,
        }
    }
}

impl<'a> Question<'a> {
    /// `0x…`, decimal, `module+0xrva` or `module!0xrva`, the module by its name or path; `0x06……+0xil` is a method's token with
    /// an IL offset, `module!` before it names the module, and `CODE module 0x…` is how llvm-symbolizer is asked.
    pub fn parse(text: &'a str) -> Self {
        Self::read(text, parse_address)
    }

    pub fn at(text: &'a str, place: Option<Place<'a>>) -> Self {
        let form = Form::default();
        Question { text, place, form }
    }

    fn read(text: &'a str, number: impl Fn(&str) -> Option<u64>) -> Self {
        if is_command(text) {
            return Question::at(text, command(text, number));
        }
        let (module, digits) = split(text);
        let place = number(digits).map(|value| match module {
            "" => Place::new(None, At::Address(value)),
            module => {
                method(module, value).unwrap_or_else(|| Place::new(Some(module), At::Rva(value)))
            }
        });
        Question::at(text, place)
    }
}

/// `0x06……` or `module!0x06……`, or `module!Type.Method`.
fn method(text: &str, il: u64) -> Option<Place<'_>> {
    let (module, method) = match text.rsplit_once('!') {
        Some((module, method)) => (Some(module), method),
        None => (None, text),
    };
    let method = match (token(method), module) {
        (Some(token), _) => Method::Token(token),
        (None, Some(_)) if !method.is_empty() => Method::Named(method),
        _ => return None,
    };
    Some(Place::new(module, At::Il(method, il.try_into().ok()?)))
}

/// The token of a method: `0x06……`.
pub fn token(text: &str) -> Option<u32> {
    const METHOD_DEF: u64 = 6;
    let token = parse_address(text).filter(|_| is_prefixed(text))?;
    u32::try_from(token)
        .ok()
        .filter(|_| token >> 24 == METHOD_DEF)
}

/// Whether a line is a command of llvm-symbolizer rather than a list of addresses.
pub fn is_command(line: &str) -> bool {
    ["CODE ", "FILE:", "BUILDID:"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// `[CODE] [FILE:]path address` or `[CODE] BUILDID:id address`; a path with blanks stands in quotes.
fn command(line: &str, number: impl Fn(&str) -> Option<u64>) -> Option<Place<'_>> {
    let line = line.strip_prefix("CODE ").unwrap_or(line);
    let (module, digits) = line.trim().rsplit_once(char::is_whitespace)?;
    let module = module.trim();
    let mut place = Place::new(None, At::Address(number(digits)?));
    match module.strip_prefix("BUILDID:") {
        Some(id) => place.id = Some(id),
        None => {
            let file = module.strip_prefix("FILE:").unwrap_or(module);
            place.file = Some(file.trim_matches(['"', '\'']));
        }
    }
    Some(place)
}

/// The module, if one is named, and the number.
pub fn split(text: &str) -> (&str, &str) {
    match text.rfind(['+', '!']) {
        Some(at) if at > 0 => {
            let digits = text[at + 1..].trim_start_matches('+');
            (text[..at].trim_end_matches('!'), digits)
        }
        _ => ("", text),
    }
}

pub fn is_prefixed(number: &str) -> bool {
    number.starts_with("0x") || number.starts_with("0X")
}

pub fn hex(digits: &str) -> Option<u64> {
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
                Question::parse(text).place,
                Some(Place::new(file, at)),
                "{text}"
            );
        }
        let by_id = Question::parse("BUILDID:c0ffee 0x10").place;
        assert_eq!(by_id.map(|place| place.id), Some(Some("c0ffee")));
        for text in [
            "word",
            "",
            "CODE ",
            "CODE 0x10",
            "CODE a b",
            "0x06000001+0x1ffffffff0",
        ] {
            let place = Question::parse(text).place;
            assert!(place.is_none_or(|p| !matches!(p.at, At::Il(..))), "{text}");
        }
        assert_eq!(Question::parse("CODE 0x10").place, None);
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
                .map(|&a| Some(Place::new(None, At::Address(a))))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(None, &["5730", "0x10"]), (at(&[5730, 0x10]), false));
        assert_eq!(
            places(None, &["5730", "8c70", "0x10"]),
            (at(&[0x5730, 0x8c70, 0x10]), true)
        );
        assert_eq!(places(Some(16), &["5730"]), (at(&[0x5730]), false));
        let decimal = places(Some(10), &["5730", "8c70"]);
        assert_eq!(decimal, (vec![at(&[5730])[0], None], false));
        let module = places(None, &["m+10", "8c70"]).0;
        assert_eq!(module[0], Some(Place::new(Some("m"), At::Rva(0x10))));
    }
}
