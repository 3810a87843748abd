//! Patterns of lines, in the notation of the table of forms.
//!
//! - Text matches itself, a blank matches one or more blanks, `~` any number of blanks.
//! - `{name}` is a field. Its name selects the characters that it may have ([`Class`]). `{0xname}`
//!   is a hexadecimal number that must have its prefix.
//! - `«` and `»` enclose the text to be replaced, if that is more than the field with the address;
//!   of an image, its path.
//! - A pattern matches anywhere in a line, but not within a word. `^` starts it at the first
//!   character that is not a blank, a last `$` ends it at the last.
//!
//! Escape sequences of terminals are ignored. The steps for a line are limited to a multiple of its
//! length.

use std::ops::Range;

use memchr::memmem::Finder;

/// Maximum length in bytes of a field that is followed by others.
const LONGEST_FIELD: usize = 4096;

/// Maximum number of fields of any text in a pattern.
const MAX_ANY: usize = 4;

/// Programs that state their work in the title of their processes, as in
/// `postgres: user db [local] SELECT`, which glibc writes in place of the path.
const TITLED: &[&str] = &["nginx", "php-fpm", "postgres", "sshd"];

/// The meaning of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Ignored.
    Other,
    /// The name or path of a module.
    File,
    /// An identity of the module.
    Id,
    /// The name of its symbol file.
    SymbolFile,
    /// Bytes from the base of the module.
    Rva,
    /// Bytes from the start of the file.
    FileOffset,
    /// An address.
    Address,
    /// An address of the process, never one in the file.
    Process,
    /// The load address of the module.
    Base,
    /// The first address of a mapping.
    Start,
    /// The end of a mapping.
    End,
    /// The length of a mapping.
    Len,
    /// The last address of an image.
    Last,
    /// The name of an image in a list that also has its path.
    Name,
    /// A function.
    Symbol,
    /// Bytes from the start of the function.
    SymbolOffset,
    /// The size of the function.
    SymbolSize,
    /// A method by its metadata token.
    Token,
    /// A method by its name.
    Method,
    /// Bytes from the start of a method's IL.
    IlOffset,
}

/// The characters of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Decimal digits.
    Decimal,
    /// Hexadecimal digits, with or without `0x`.
    Hex,
    /// Hexadecimal digits after `0x`.
    Prefixed,
    /// Hexadecimal digits and dashes.
    Id,
    /// Characters of an identifier.
    Identifier,
    /// Anything but blanks.
    Word,
    /// `r-xp`.
    Mode,
    /// One letter.
    Letter,
    /// A name or path without blanks.
    Path,
    /// A name or path that may have blanks.
    File,
    /// The name of a program that changes the title of its processes.
    Titled,
    /// The rest of the line, to its last character that is not a blank.
    Rest,
    /// A function, possibly with parameters and blanks.
    Symbol,
    /// The same, with blanks only in its parameters.
    Callee,
    /// Anything, also nothing.
    Any,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Text(&'static str),
    Blanks,
    MaybeBlanks,
    Field(Field, Class),
    /// The start and the end of the text to replace.
    Open,
    Close,
    /// The end of the line.
    End,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    /// Whether it starts at the first character of the line.
    is_anchored: bool,
    /// The texts that a matching line contains, in this order.
    needed: Vec<Finder<'static>>,
    /// The characters that it contains.
    characters: Characters,
}

/// A set of ASCII characters, a bit for each. Most lines lack a character of most patterns, and sets
/// are compared in less time than texts are searched for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Characters(u128);

impl Characters {
    /// Returns the characters of a text. `X` of `0X` counts as `x`.
    pub(super) fn of(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii);
        let bit = |byte| 1_u128 << if byte == b'X' { b'x' } else { byte };
        Characters(ascii.fold(0, |all, byte| all | bit(byte)))
    }

    fn add(&mut self, text: &str) {
        self.0 |= Self::of(text).0;
    }

    fn contain(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// A match.
#[derive(Debug, Default)]
pub(super) struct Match {
    fields: Vec<(Field, Class, Range<usize>)>,
    open: Option<usize>,
    close: Option<usize>,
    pub(super) range: Range<usize>,
    /// For each field of any text, counted from the last, the position before which it cannot end:
    /// what follows it does not match there, wherever the field starts.
    tried: [usize; MAX_ANY],
}

impl Match {
    /// Returns the range of a field.
    pub(super) fn range_of(&self, field: Field) -> Option<Range<usize>> {
        let mut fields = self.fields.iter();
        fields
            .find(|(own, ..)| *own == field)
            .map(|(.., range)| range.clone())
    }

    /// Returns the text to replace, if the pattern marks it.
    pub(super) fn marked(&self) -> Option<Range<usize>> {
        Some(self.open?..self.close?)
    }

    /// Returns true for a number without `0x` in decimal.
    pub(super) fn is_decimal(&self, field: Field) -> bool {
        let is_it = |(own, class, _): &(Field, Class, _)| *own == field && *class == Class::Decimal;
        self.fields.iter().any(is_it)
    }
}

/// Returns the field and the characters for a name in braces.
fn field(name: &str) -> (Field, Class) {
    let (name, is_prefixed) = match name.strip_prefix("0x") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let hex = if is_prefixed {
        Class::Prefixed
    } else {
        Class::Hex
    };
    match name {
        "n" => (Field::Other, Class::Decimal),
        "h" => (Field::Other, hex),
        "word" => (Field::Other, Class::Word),
        "mode" => (Field::Other, Class::Mode),
        "letter" => (Field::Other, Class::Letter),
        "any" => (Field::Other, Class::Any),
        "path" => (Field::File, Class::Path),
        // Folders of Android's packages have `=` in their names.
        "entry" => (Field::File, Class::Word),
        "file" => (Field::File, Class::File),
        "titled" => (Field::File, Class::Titled),
        "rest" => (Field::File, Class::Rest),
        "name" => (Field::Name, Class::File),
        "id" => (Field::Id, Class::Id),
        "symbols" => (Field::SymbolFile, Class::Path),
        "rva" => (Field::Rva, hex),
        "rva10" => (Field::Rva, Class::Decimal),
        "offset" => (Field::FileOffset, hex),
        "address" => (Field::Address, hex),
        "process" => (Field::Process, hex),
        "base" => (Field::Base, hex),
        "start" => (Field::Start, hex),
        "end" => (Field::End, hex),
        "len" => (Field::Len, hex),
        "len10" => (Field::Len, Class::Decimal),
        "last" => (Field::Last, hex),
        "function" => (Field::Symbol, Class::Symbol),
        "callee" => (Field::Symbol, Class::Callee),
        "identifier" => (Field::Symbol, Class::Identifier),
        "+" => (Field::SymbolOffset, hex),
        "+10" => (Field::SymbolOffset, Class::Decimal),
        "size" => (Field::SymbolSize, hex),
        "token" => (Field::Token, hex),
        "method" => (Field::Method, Class::Any),
        "il" => (Field::IlOffset, hex),
        // A test compiles the whole table.
        _ => unreachable!("no field of this name"),
    }
}

impl Pattern {
    /// Compiles a pattern of the table.
    pub(super) fn new(text: &'static str) -> Self {
        let (mut rest, is_anchored) = match text.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let is_whole = rest.ends_with('$');
        rest = rest.strip_suffix('$').unwrap_or(rest);
        let mut parts = Vec::new();
        let mut needed = Vec::new();
        let mut characters = Characters::default();
        while let Some(first) = rest.chars().next() {
            let whole = rest;
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            parts.push(match first {
                ' ' => Part::Blanks,
                '~' => Part::MaybeBlanks,
                '«' => Part::Open,
                '»' => Part::Close,
                '{' => {
                    let (name, after) = rest.split_once('}').unwrap_or((rest, ""));
                    rest = after;
                    let (field, class) = field(name);
                    if class == Class::Prefixed {
                        characters.add("0x");
                    }
                    Part::Field(field, class)
                }
                _ => {
                    let is_special = |c: char| " ~«»{".contains(c);
                    let end = rest.find(is_special).unwrap_or(rest.len());
                    rest = rest.get(end..).unwrap_or_default();
                    let literal = whole.strip_suffix(rest).unwrap_or(whole);
                    needed.push(Finder::new(literal.as_bytes()));
                    characters.add(literal);
                    Part::Text(literal)
                }
            });
        }
        if is_whole {
            parts.push(Part::End);
        }
        Pattern {
            parts,
            is_anchored,
            needed,
            characters,
        }
    }

    /// Returns false if a line with these characters cannot match.
    pub(super) fn may_match(&self, line: Characters) -> bool {
        line.contain(self.characters)
    }

    /// Returns the first match from `from` on. Subtracts its steps from `steps`.
    pub(super) fn find(&self, line: &str, from: usize, steps: &mut usize) -> Option<Match> {
        let mut rest = line.as_bytes().get(from..)?;
        for needed in &self.needed {
            let at = needed.find(rest)?;
            rest = rest.get(at.checked_add(needed.needle().len())?..)?;
        }
        let mut at = from;
        if self.is_anchored {
            if from > 0 {
                return None;
            }
            at = blanks(line, 0);
            let mut found = Match::default();
            return self.matches(line, at, &mut found, steps).then_some(found);
        }
        let mut found = Match::default();
        loop {
            if let Some(Part::Text(text)) = self.parts.first() {
                at = at.checked_add(line.get(at..)?.find(text)?)?;
            }
            if is_boundary(line, at) && self.matches(line, at, &mut found, steps) {
                return Some(found);
            }
            let next = line.get(at..)?.chars().next()?;
            at = at.checked_add(next.len_utf8())?;
        }
    }

    /// Matches at one position.
    fn matches(&self, line: &str, at: usize, found: &mut Match, steps: &mut usize) -> bool {
        match follow(&self.parts, line, at, found, steps) {
            Some(end) => {
                found.range = at..end;
                true
            }
            None => false,
        }
    }
}

/// Returns whether a match may start here: not within a word, a path or a number.
fn is_boundary(line: &str, at: usize) -> bool {
    let (Some(before), Some(after)) = (line.get(..at), line.get(at..)) else {
        return false;
    };
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '\\' | '-' | '`');
    let last = before.chars().next_back();
    !(last.is_some_and(is_word) && after.starts_with(is_word)) || ends_with_escape(before)
}

/// Maximum length in bytes of an escape sequence before a word.
const LONGEST_ESCAPE: usize = 64;

/// Returns whether a text ends with an escape sequence such as `\x1b[31m`.
fn ends_with_escape(text: &str) -> bool {
    let near = text.len().saturating_sub(LONGEST_ESCAPE);
    let escape = memchr::memrchr(b'\x1b', text.as_bytes().get(near..).unwrap_or_default());
    let escape = escape.and_then(|at| text.get(near.saturating_add(at)..));
    escape.is_some_and(|escape| escape_len(escape) == escape.len())
}

/// Returns the length of the escape sequence that a text starts with, or 0.
pub(super) fn escape_len(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let end = rest.find(|c: char| !matches!(c, '0'..='9' | ';'));
    end.map_or(text.len(), |end| end.saturating_add(3).min(text.len()))
}

/// The end of escape sequences at `at`.
fn escapes(line: &str, mut at: usize) -> usize {
    while let Some(len) = line.get(at..).map(escape_len).filter(|len| *len > 0) {
        at = at.saturating_add(len);
    }
    at
}

/// The end of blanks at `at`.
fn blanks(line: &str, mut at: usize) -> usize {
    loop {
        at = escapes(line, at);
        match line.as_bytes().get(at) {
            Some(b' ' | b'\t') => at = at.saturating_add(1),
            _ => return at,
        }
    }
}

/// Takes steps; `None` if too few are left, of which then none is.
fn take(steps: &mut usize, count: usize) -> Option<()> {
    match steps.checked_sub(count) {
        Some(left) => *steps = left,
        None => {
            *steps = 0;
            return None;
        }
    }
    Some(())
}

/// Returns the number of fields of any text.
fn anys(parts: &[Part]) -> usize {
    let is_any = |part: &&Part| matches!(part, Part::Field(_, Class::Any));
    parts.iter().filter(is_any).count()
}

/// Returns whether parts may match a text, by its first byte.
fn may_follow(parts: &[Part], text: &[u8]) -> bool {
    let is_marker = |part: &&Part| matches!(part, Part::Open | Part::Close);
    let next = parts.iter().find(|part| !is_marker(part));
    let first = text.first();
    match (next, first) {
        (_, Some(b'\x1b')) => true,
        (Some(Part::Text(literal)), first) => first == literal.as_bytes().first(),
        (Some(Part::Blanks), first) => matches!(first, Some(b' ' | b'\t')),
        _ => true,
    }
}

/// Matches parts from `at` on and returns the end.
fn follow(
    parts: &[Part],
    line: &str,
    at: usize,
    found: &mut Match,
    steps: &mut usize,
) -> Option<usize> {
    take(steps, 1)?;
    let Some((part, parts)) = parts.split_first() else {
        return Some(at);
    };
    match *part {
        Part::Text(text) => {
            // Blanks and escapes before are not text.
            let at = escapes(line, at);
            let at = line
                .get(at..)?
                .starts_with(text)
                .then(|| at.checked_add(text.len()))??;
            follow(parts, line, at, found, steps)
        }
        Part::Blanks => {
            let end = blanks(line, at);
            let has_blank = line.get(at..end)?.contains([' ', '\t']);
            if !has_blank {
                return None;
            }
            follow(parts, line, end, found, steps)
        }
        Part::MaybeBlanks => follow(parts, line, blanks(line, at), found, steps),
        Part::End => line
            .get(at..)?
            .trim_end()
            .chars()
            .all(char::is_control)
            .then_some(at)
            .or_else(|| {
                let end = blanks(line, at);
                line.get(end..)?.trim_end().is_empty().then_some(at)
            }),
        Part::Open => {
            found.open = Some(escapes(line, at));
            follow(parts, line, at, found, steps)
        }
        Part::Close => {
            found.close = Some(at);
            follow(parts, line, at, found, steps)
        }
        Part::Field(field, class) => {
            let start = if class == Class::Any {
                at
            } else {
                escapes(line, at)
            };
            let text = line.get(start..)?;
            let depth = found.fields.len();
            let try_end = |len: usize, found: &mut Match, steps: &mut usize| {
                let end = start.checked_add(len)?;
                found.fields.push((field, class, start..end));
                let matched = follow(parts, line, end, found, steps);
                if matched.is_none() {
                    found.fields.truncate(depth);
                }
                matched
            };
            match fixed_len(class, text) {
                Some(len) => (len > 0).then(|| try_end(len, found, steps))?,
                None => {
                    let is_last = parts.is_empty();
                    // The last field is greedy.
                    if is_last && class != Class::Any {
                        let longest = longest_len(class, text);
                        take(steps, longest)?;
                        return (longest > 0).then(|| try_end(longest, found, steps))?;
                    }
                    let is_function = matches!(class, Class::Symbol | Class::Callee);
                    if class != Class::Any && !starts(class, text) {
                        return None;
                    }
                    let (mut len, mut brackets) = (0_usize, 0_usize);
                    let any = (class == Class::Any).then(|| anys(parts));
                    if let Some(tried) = any.and_then(|any| found.tried.get(any)) {
                        len = tried.saturating_sub(start);
                    }
                    let mut chars = text.get(len..)?.chars();
                    loop {
                        // The brackets of a function are in pairs.
                        let is_whole = !is_function || brackets == 0;
                        let after = text.as_bytes().get(len..).unwrap_or_default();
                        if (len > 0 || class == Class::Any)
                            && is_whole
                            && may_follow(parts, after)
                            && let Some(end) = try_end(len, found, steps)
                        {
                            return Some(end);
                        }
                        take(steps, 1)?;
                        let next = chars.next().filter(|c| is_of(class, *c));
                        let next_len = next.map_or(1, char::len_utf8);
                        if let Some(tried) = any.and_then(|any| found.tried.get_mut(any)) {
                            *tried = start.saturating_add(len).saturating_add(next_len);
                        }
                        let next = next?;
                        if len >= LONGEST_FIELD {
                            return None;
                        }
                        match next {
                            '(' => brackets = brackets.saturating_add(1),
                            ')' if is_function => brackets = brackets.checked_sub(1)?,
                            ' ' if class == Class::Callee && brackets == 0 => return None,
                            // The event before an address in a line of perf script.
                            ' ' if is_function && text.get(..len)?.ends_with(':') => return None,
                            _ => {}
                        }
                        len = len.saturating_add(next.len_utf8());
                    }
                }
            }
        }
    }
}

/// Returns the length of a greedy field.
fn fixed_len(class: Class, text: &str) -> Option<usize> {
    let run = |text: &str, is: fn(char) -> bool| text.find(|c| !is(c)).unwrap_or(text.len());
    let is_whole = |len: usize| {
        let next = text.get(len..).and_then(|rest| rest.chars().next());
        !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
    };
    let len = match class {
        Class::Decimal => run(text, |c| c.is_ascii_digit()),
        Class::Hex | Class::Prefixed => {
            let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            let prefix = text.len().saturating_sub(digits.unwrap_or(text).len());
            let is_hex = |c: char| c.is_ascii_hexdigit() || matches!(c, '`' | '\'');
            let len = run(digits.unwrap_or(text), is_hex);
            let is_number = len > 0 && (prefix > 0 || class == Class::Hex);
            if is_number {
                prefix.saturating_add(len)
            } else {
                0
            }
        }
        Class::Id => run(text, |c| c.is_ascii_hexdigit() || c == '-'),
        Class::Identifier => {
            return Some(run(text, |c| {
                c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
            }));
        }
        Class::Word => return Some(run(text, |c| !c.is_whitespace() && c != '\x1b')),
        Class::Titled => {
            let name = TITLED.iter().find(|name| text.starts_with(**name));
            name.map_or(0, |name| name.len())
        }
        Class::Mode => run(text, |c| matches!(c, 'r' | 'w' | 'x' | 's' | 'p' | '-')),
        Class::Letter => {
            return Some(usize::from(
                text.starts_with(|c: char| c.is_ascii_alphabetic()),
            ));
        }
        Class::Rest => return Some(text.trim_end().len()),
        Class::Path | Class::File | Class::Symbol | Class::Callee | Class::Any => return None,
    };
    let is_mode = class != Class::Mode || matches!(len, 3 | 4);
    Some(if is_whole(len) && is_mode { len } else { 0 })
}

/// Returns the maximum length of a field of another class.
fn longest_len(class: Class, text: &str) -> usize {
    if !starts(class, text) {
        return 0;
    }
    text.find(|c| !is_of(class, c)).unwrap_or(text.len())
}

/// Returns whether a field of a class can contain a character.
fn is_of(class: Class, c: char) -> bool {
    match class {
        Class::Path => !c.is_whitespace() && !c.is_control() && !"()[]<>\"',;=|".contains(c),
        Class::File => !c.is_control() && !"()[]<>\"|".contains(c),
        Class::Symbol | Class::Callee => !c.is_control() && !"\"|".contains(c),
        _ => !matches!(c, '\n' | '\r'),
    }
}

/// Returns whether a field of a class can start like this.
fn starts(class: Class, text: &str) -> bool {
    text.starts_with(|c: char| match class {
        Class::Symbol | Class::Callee => c.is_alphabetic() || "_?<(~$-+.".contains(c),
        Class::File => !c.is_whitespace(),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pattern: &'static str, line: &str) -> Option<Vec<String>> {
        let found = Pattern::new(pattern).find(line, 0, &mut 10_000)?;
        let named = found
            .fields
            .iter()
            .filter(|(field, ..)| *field != Field::Other);
        Some(
            named
                .map(|(.., range)| line[range.clone()].to_owned())
                .collect(),
        )
    }

    #[test]
    fn fields_are_found_anywhere_in_a_line() {
        let pattern = "({path}+{0xrva}) (BuildId: {id})";
        let line = "  #1 \x1b[31m0x55\x1b[0m in f (/a/libstdc++.so+0x10) (BuildId: c0ffee)\r\n";
        let expected = ["/a/libstdc++.so", "0x10", "c0ffee"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(fields(pattern, line), Some(expected));
        assert_eq!(fields(pattern, "(/a+0x10) (BuildId: xyz)"), None);
        assert_eq!(fields("^{n} {file} {0xaddress} $", "3 a 0x1"), None);
        let spaced = fields("^{n} {file} {0xaddress}$", " 3  My App  0x1 \n");
        assert_eq!(spaced, Some(vec!["My App".to_owned(), "0x1".to_owned()]));
    }

    #[test]
    fn colours_count_as_nothing() {
        let found = fields(
            "({path}~+~{0xrva})",
            "(\x1b[1mprog\x1b[0m + \x1b[2m0x10\x1b[0m)",
        );
        assert_eq!(found, Some(vec!["prog".to_owned(), "0x10".to_owned()]));
    }

    #[test]
    fn lines_without_a_character_cannot_match() {
        let pattern = Pattern::new("({path}+{0xrva})");
        for (line, may_match) in [
            ("(a+0x1)", true),
            ("(a+0X1)", true),
            ("(é+0x1)", true),
            ("(a-0x1)", false),
            ("(a+1)", false),
            ("", false),
        ] {
            assert_eq!(pattern.may_match(Characters::of(line)), may_match, "{line}");
        }
    }

    #[test]
    fn steps_are_limited() {
        let line = "(a ".repeat(5000);
        let mut steps = 100_000;
        let pattern = Pattern::new("({any}({any}({any})x");
        assert!(pattern.find(&line, 0, &mut steps).is_none());
        assert!(pattern.find("(((", 0, &mut 1).is_none());
    }
}
