//! Lines that llvm-symbolizer and addr2line read.

use chronosym_symbols::log::{At, Symbol, Target, hex, split};

/// The kind of answer that a line requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The function and the line of an address.
    #[default]
    Code,
    /// The variable or function that contains an address.
    Data,
    /// The local variables of the function at an address.
    Frame,
}

/// A line of llvm-symbolizer's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub wanted: Wanted,
    /// `None` if the line is incomplete.
    pub target: Option<Target<'a>>,
}

/// Words that start a line of llvm-symbolizer's input.
const WORDS: [(&str, Wanted); 4] = [
    ("CODE ", Wanted::Code),
    ("DATA ", Wanted::Data),
    ("FRAME ", Wanted::Frame),
    ("SYMBOL ", Wanted::Code),
];

/// Returns whether a line is a command of llvm-symbolizer rather than a list of addresses.
pub fn is_command(line: &str) -> bool {
    let mut starts = WORDS.iter().map(|(word, _)| *word);
    starts.any(|word| line.starts_with(word)) || line.starts_with("FILE:") || is_id(line)
}

fn is_id(line: &str) -> bool {
    line.starts_with("BUILDID:")
}

/// Reads `[CODE|DATA|FRAME|SYMBOL] [[FILE:]path|BUILDID:id] address`; a path with blanks is quoted.
/// An address that is not a number is a symbol, perhaps with `+offset`. If `has_file`, lines need
/// not name one.
pub fn llvm<'a>(line: &'a str, has_file: bool, number: impl Fn(&str) -> Option<u64>) -> Line<'a> {
    let line = line.trim();
    let command = WORDS.iter().find_map(|&(word, wanted)| {
        let rest = line.strip_prefix(word)?;
        Some((rest.trim_start(), wanted, word == "SYMBOL "))
    });
    let (rest, wanted, is_symbol) = command.unwrap_or((line, Wanted::Code, false));
    let (id, rest) = match rest.strip_prefix("BUILDID:") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (is_file, rest) = match rest.strip_prefix("FILE:") {
        Some(rest) => (true, rest),
        None => (rest.starts_with(['"', '\'']), rest),
    };
    let (first, after) = word(rest);
    let (second, _) = word(after);
    // A line of one file with a word too many has its address first.
    let is_address_first = number(first).is_some() || number(second).is_none();
    let names_file = id || is_file || !has_file || !second.is_empty() && !is_address_first;
    let (module, address) = match names_file {
        true => (first, second),
        false => ("", first),
    };
    let at = (!address.is_empty()).then(|| match number(address).filter(|_| !is_symbol) {
        Some(address) => Target::new(None, At::Address(address)),
        None => {
            other(address, &number).unwrap_or_else(|| Target::new(None, symbol(address, &number)))
        }
    });
    let target = at.map(|mut target| {
        if id {
            target.id = Some(module);
        } else if !module.is_empty() {
            target.file = Some(module);
        }
        target
    });
    let is_complete = !names_file || !module.is_empty();
    Line {
        wanted,
        target: target.filter(|_| is_complete),
    }
}

/// Parses targets that the tools have no form for: methods by token and name, offsets in sections
/// and in files by path.
fn other<'a>(text: &'a str, number: &impl Fn(&str) -> Option<u64>) -> Option<Target<'a>> {
    let target = Target::parse(text, number)?;
    let is_file = |name: &str| name.starts_with('.') || name.contains(['/', '\\', '!']);
    let is_own = matches!(target.at, At::Il(..)) || target.file.is_some_and(is_file);
    is_own.then_some(target)
}

/// `name` or `name+offset`.
fn symbol<'a>(text: &'a str, number: &impl Fn(&str) -> Option<u64>) -> At<'a> {
    let parts = text.rsplit_once('+');
    let parts = parts.and_then(|(name, offset)| Some((name, number(offset)?)));
    let (name, offset) = parts.unwrap_or((text, 0));
    let size = None;
    At::Symbol(Symbol { name, offset, size })
}

/// Splits off the first word, which may be in quotes.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let quoted = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quoted {
        let inner = text.get(1..).unwrap_or_default();
        return inner.split_once(quote).unwrap_or((inner, ""));
    }
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// Reads a number as llvm-symbolizer does: `0x`, `0b`, `0o` and a leading zero state the radix.
pub fn llvm_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..)?, 16),
        [b'0', b'b' | b'B', ..] => (text.get(2..)?, 2),
        [b'0', b'o', ..] => (text.get(2..)?, 8),
        [b'0', _, ..] => (text.get(1..)?, 8),
        _ => (text, 10),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    u64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_number)
}

/// Reads a line as addr2line does: the hexadecimal number that it starts with, else 0; but also
/// `module+0x10`.
pub fn gnu(line: &str) -> Target<'_> {
    let line = line.trim();
    let (module, digits) = split(line);
    let number = |digits: &str| hex(digits.strip_prefix("0x").unwrap_or(digits));
    if let Some(target) = Target::parse(line, number).filter(|t| matches!(t.at, At::Il(..))) {
        return target;
    }
    let plain = digits.strip_prefix("0x").unwrap_or(digits);
    if let (false, Some(offset)) = (module.is_empty(), hex(plain)) {
        return Target {
            is_ambiguous: true,
            ..Target::new(Some(module), At::Rva(offset))
        };
    }
    let plain = line.strip_prefix("0x").or_else(|| line.strip_prefix("0X"));
    let plain = plain.unwrap_or(line);
    let end = plain.find(|c: char| !c.is_ascii_hexdigit());
    let digits = plain.get(..end.unwrap_or(plain.len())).unwrap_or_default();
    Target::new(None, At::Address(hex(digits).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronosym_symbols::log::Method;

    fn symbol(name: &str, offset: u64) -> At<'_> {
        let size = None;
        At::Symbol(Symbol { name, offset, size })
    }

    #[test]
    fn lines_of_llvm_symbolizer_are_read() {
        let at = At::Address(0x10);
        for (line, has_file, file, expected) in [
            ("0x10", true, None, at),
            ("  0x10  ", true, None, at),
            ("0x10 rest", true, None, at),
            ("a.out 0x10", true, Some("a.out"), at),
            ("a.out 0x10", false, Some("a.out"), at),
            ("\"/b/a b\" 16", false, Some("/b/a b"), at),
            ("'/b/a b'  020", true, Some("/b/a b"), at),
            ("CODE FILE:a.out  0x10", true, Some("a.out"), at),
            ("CODE FILE:\"a b\" 0x10", true, Some("a b"), at),
            ("main", true, None, symbol("main", 0)),
            ("main+0x4", true, None, symbol("main", 4)),
            (
                "SYMBOL a.out main+4",
                false,
                Some("a.out"),
                symbol("main", 4),
            ),
        ] {
            let read = llvm(line, has_file, llvm_number);
            let target = Some(Target::new(file, expected));
            assert_eq!((read.target, read.wanted), (target, Wanted::Code), "{line}");
        }
        let read = llvm("DATA a.out 0x10", false, llvm_number);
        assert_eq!(read.wanted, Wanted::Data);
        assert_eq!(read.target, Some(Target::new(Some("a.out"), at)));
        assert_eq!(llvm("FRAME 0x10", true, llvm_number).wanted, Wanted::Frame);
        let by_id = llvm("BUILDID:c0ffee 0x10", true, llvm_number).target;
        assert_eq!(
            by_id.map(|t| (t.file, t.id, t.at)),
            Some((None, Some("c0ffee"), at))
        );
        for line in ["", "0x10", "CODE ", "CODE 0x10", "\"a b", "FILE:"] {
            assert_eq!(llvm(line, false, llvm_number).target, None, "{line}");
        }
    }

    #[test]
    fn methods_and_sections_are_read() {
        let token = At::Il(Method::Token(0x0600_0001), 0x1a);
        for text in ["0x06000001+0x1a", "app.dll!0x06000001+0x1a"] {
            assert_eq!(gnu(text).at, token, "{text}");
            assert_eq!(
                llvm(text, true, llvm_number).target.unwrap().at,
                token,
                "{text}"
            );
        }
        let section = llvm(".text+0x10", true, llvm_number).target.unwrap();
        assert_eq!((section.file, section.at), (Some(".text"), At::Rva(0x10)));
    }

    #[test]
    fn numbers_state_their_radix() {
        for (text, number) in [
            ("16", Some(16)),
            ("0x10", Some(16)),
            ("010", Some(8)),
            ("0b11", Some(3)),
            ("0", Some(0)),
            ("+1", None),
            ("0x", None),
            ("c0", None),
            ("0x+1", None),
        ] {
            assert_eq!(llvm_number(text), number, "{text}");
        }
    }

    #[test]
    fn lines_of_addr2line_are_hexadecimal() {
        for (line, address) in [
            ("10", 0x10),
            (" 0x1f rest", 0x1f),
            ("1fz", 0x1f),
            ("zzz", 0),
            ("", 0),
        ] {
            assert_eq!(gnu(line), Target::new(None, At::Address(address)), "{line}");
        }
        let target = gnu(".text+10");
        assert_eq!((target.file, target.at), (Some(".text"), At::Rva(0x10)));
    }
}
