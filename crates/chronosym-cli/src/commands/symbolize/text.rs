//! Addresses in a text, in the forms in which runtimes and tools write stacks.

use std::ops::Range;

use chronosym::file_name;

use crate::request::{AddressRequest, At, Form, Method, Target, is_prefixed, split, token};
use crate::units::{hex, parse_address};

/// Digits without `0x` are taken for an address from this many on: shorter runs are numbers more often than not.
const BARE_DIGITS: usize = 8;

/// Where in a text an address stands, and what it asks.
pub type FoundAddress<'a> = (Range<usize>, AddressRequest<'a>);

/// All that may be an address in a text. It stands as a word of its own: what is part of a longer one, or the value of a
/// register, is left alone.
pub fn find_all(text: &[u8]) -> Vec<FoundAddress<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(|&b| b == b'\n') {
        let known = [dotnet, mono, native_aot, perf];
        let whole = std::str::from_utf8(line).ok();
        match whole.and_then(|line| known.iter().find_map(|form| form(line))) {
            Some((range, question)) => {
                found.push((start + range.start..start + range.end, question));
            }
            None => words(text, start..start + line.len(), &mut found),
        }
        start += line.len();
    }
    found
}

/// .NET with `ShowILOffsets`: `at N.T.M() in App.dll:token 0x6000001+0x1a`.
fn dotnet(line: &str) -> Option<FoundAddress<'_>> {
    let (before, after) = line.split_once(":token ")?;
    let (_, file) = before.rsplit_once(" in ")?;
    let (method, rest) = after.split_once('+')?;
    let il = prefix(rest, |b| b == b'x' || b.is_ascii_hexdigit());
    let place = Target::new(
        Some(file),
        At::Il(
            Method::Token(token(method)?),
            parse_address(il)?.try_into().ok()?,
        ),
    );
    let range = before.len() - file.len()..line.len() - rest.len() + il.len();
    Some(asking(line, range, place, Form::Line(":line ")))
}

/// Mono: `at N.T.M (System.Int32 x) [0x0001a] in <module version id>:0`.
fn mono(line: &str) -> Option<FoundAddress<'_>> {
    let (before, after) = line.split_once("] in <")?;
    let (before, il) = before.rsplit_once('[')?;
    let (_, method) = before.split_once("at ")?;
    let method = method.trim_end();
    let (id, rest) = after.split_once(">:0")?;
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // Code compiled ahead of time adds an id of its own.
    let mvid = prefix(id, |b| b.is_ascii_hexdigit());
    let is_form = is_prefixed(il) && mvid.len() == 32 && method.ends_with(')');
    let il = parse_address(il).filter(|_| is_form)?;
    let mut place = Target::new(None, At::Il(Method::Named(method), il.try_into().ok()?));
    place.id = Some(mvid);
    let range = line.len() - after.len() - 1..line.len() - rest.len();
    Some(asking(line, range, place, Form::Line(":")))
}

/// Native AOT without names: `at App!<BaseAddress>+0x1234`.
fn native_aot(line: &str) -> Option<FoundAddress<'_>> {
    let (before, after) = line.split_once("!<BaseAddress>+")?;
    let digits = prefix(after, |b| b == b'x' || b.is_ascii_hexdigit());
    let rva = parse_address(digits).filter(|_| is_prefixed(digits))?;
    let start = path_start(line.as_bytes(), before.len());
    let place = Target::new(Some(line.get(start..before.len())?), At::Rva(rva));
    let range = start..line.len() - after.len() + digits.len();
    Some(asking(line, range, place, Form::Names))
}

/// `perf script`: `  55d0c0 main+0x1a (/srv/b/prog)`, also behind what else a sample says, and with `dsoff` `(/srv/b/prog+0x10c0)`,
/// which counts from the start of the file.
fn perf(line: &str) -> Option<FoundAddress<'_>> {
    let tail = line.rsplit_once(": ").map_or(line, |(_, tail)| tail);
    let rest = tail.trim_start();
    let is_alone = tail.len() == line.len() && rest.len() == tail.len();
    let (address, rest) = rest.split_once(' ')?;
    let is_hex = address.bytes().all(|b| b.is_ascii_hexdigit());
    let (symbol, file) = rest.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
    if is_alone || !is_hex || !(symbol == "[unknown]" || symbol.contains("+0x")) {
        return None;
    }
    let end = line.trim_end().len() - 1;
    if let Some((path, offset)) = file.rsplit_once("+0x") {
        let place = Target::new(Some(path), At::FileOffset(hex(offset)?));
        return Some(asking(line, end - file.len()..end, place, Form::Names));
    }
    let start = line.len() - tail.trim_start().len();
    let place = Target::new(Some(file), At::Address(hex(address)?));
    Some(asking(
        line,
        start..start + address.len(),
        place,
        Form::Names,
    ))
}

fn asking<'a>(
    line: &'a str,
    range: Range<usize>,
    place: Target<'a>,
    form: Form,
) -> FoundAddress<'a> {
    let text = line.get(range.clone()).unwrap_or_default();
    let mut question = AddressRequest::at(text, Some(place));
    question.form = form;
    (range, question)
}

/// The beginning of a text, as long as its bytes are of a kind.
fn prefix(text: &str, is: impl Fn(u8) -> bool) -> &str {
    let len = text.bytes().take_while(|&b| is(b)).count();
    text.get(..len).unwrap_or_default()
}

/// Addresses that are words: glibc, sanitizers, HotSpot, Windows, and plain ones.
fn words<'a>(text: &'a [u8], line: Range<usize>, found: &mut Vec<FoundAddress<'a>>) {
    let (mut at, line_end) = (line.start, line.end);
    while at < line_end {
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
        // `rip=0x…`: what a register holds need not be code. `Name() + 0x…`: no address, but an offset.
        let is_value = matches!(text[..start], [.., b'='] | [.., b'+', b' ']);
        // What a separator follows is the beginning of a path.
        let is_path = matches!(text.get(at), Some(b'/' | b'\\' | b'~'));
        if start == end || is_value || is_path {
            continue;
        }
        let Some((range, question)) = word(text, start, end) else {
            continue;
        };
        if found.last().is_some_and(|(last, _)| last.end > range.start) {
            continue;
        }
        // glibc: `program(+0xrva)[0xaddress]` says the same place twice.
        if text[range.start] == b'+'
            && let Some(same) = text[range.end..].strip_prefix(b")[")
        {
            at = range.end + 2 + same.iter().take_while(|&&b| is_part(b)).count();
        }
        found.push((range, question));
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'`')
}

fn is_part(b: u8) -> bool {
    is_word(b) || matches!(b, b'+' | b'!')
}

/// Where the path begins that ends at `end`.
fn path_start(text: &[u8], end: usize) -> usize {
    let is_path = |&&b: &&u8| is_word(b) || matches!(b, b'/' | b'\\' | b'~');
    let start = end - text[..end].iter().rev().take_while(is_path).count();
    let is_drive = |before: &[u8]| match *before {
        [.., before, drive] => drive.is_ascii_alphabetic() && !is_word(before),
        [drive] => drive.is_ascii_alphabetic(),
        [] => false,
    };
    match text[..start].strip_suffix(b":") {
        Some(before) if is_drive(before) && text.get(start) == Some(&b'\\') => start - 2,
        _ => start,
    }
}

/// The address that a word is, and what of the text it takes up.
fn word(text: &[u8], start: usize, end: usize) -> Option<FoundAddress<'_>> {
    let utf8 = |range: Range<usize>| std::str::from_utf8(&text[range]).ok();
    let own = utf8(start..end)?;
    let (module, number) = split(own);
    if let Some(rva) = own.strip_prefix('+') {
        let module = start.checked_sub(1).filter(|&at| text[at] == b'(')?;
        let module = utf8(path_start(text, module)..module)?;
        let rva = is_prefixed(rva).then(|| parse_address(rva)).flatten()?;
        let place = Target::new(Some(module), At::Rva(rva));
        let is_named = !file_name(module).is_empty();
        return is_named.then(|| (start..end, AddressRequest::at(own, Some(place))));
    }
    if is_prefixed(number) {
        let start = if module.is_empty() {
            start
        } else {
            path_start(text, start + module.len())
        };
        let mut question = AddressRequest::parse(utf8(start..end)?);
        question.target.as_mut()?.id = build_id(&text[end..]);
        return Some((start..end, question));
    }
    // In a text bare digits are hex.
    let bare = module.is_empty() && number.len() >= BARE_DIGITS;
    let place = Target::new(None, At::Address(bare.then(|| hex(number)).flatten()?));
    Some((start..end, AddressRequest::at(own, Some(place))))
}

/// Sanitizers say behind a place which build it is in: `(prog+0x10) (BuildId: c0ffee)`.
fn build_id(behind: &[u8]) -> Option<&str> {
    let id = behind.strip_prefix(b") (BuildId: ")?;
    let len = id.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    std::str::from_utf8(&id[..len]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_text() {
        let text =
            b"at 0x7f00, [00007fcc`a43da4a7] in coreclr+0x1a2. (12345678901) \xff day 2026 0xyz";
        let found: Vec<(&str, Option<Target<'_>>)> = find_all(text)
            .iter()
            .map(|(_, q)| (q.text, q.target))
            .collect();
        let address = |at| Some(Target::new(None, At::Address(at)));
        assert_eq!(
            found,
            [
                ("0x7f00", address(0x7f00)),
                ("00007fcc`a43da4a7", address(0x7fcc_a43d_a4a7)),
                (
                    "coreclr+0x1a2",
                    Some(Target::new(Some("coreclr"), At::Rva(0x1a2)))
                ),
                ("12345678901", address(0x123_4567_8901)),
            ]
        );
    }

    #[test]
    fn forms_of_other_tools_are_known() {
        let replaced = |text: &str| {
            let mut out = text.to_owned();
            for (range, question) in find_all(text.as_bytes()).into_iter().rev() {
                let Target { file, id, at } = question.target.unwrap();
                let at = match at {
                    At::Address(address) => format!("{address:x}"),
                    At::Rva(rva) => format!("+{rva:x}"),
                    At::FileOffset(offset) => format!("@{offset:x}"),
                    At::Il(Method::Token(token), il) => format!("{token:x} {il:x}"),
                    At::Il(Method::Named(name), il) => format!("{name} {il:x}"),
                };
                let named = [file, id].into_iter().flatten();
                let words: Vec<&str> = named.chain([&*at]).collect();
                out.replace_range(range, &format!("<{}>", words.join(" ")));
            }
            out
        };
        for (text, expected) in [
            // glibc
            (
                "./prog(+0xbc90)[0x55d0c0]",
                "./prog(<./prog +bc90>)[0x55d0c0]",
            ),
            (
                "./prog(main+0x1a) [0x401136]",
                "./prog(<main +1a>) [<401136>]",
            ),
            // AddressSanitizer
            (
                "#1 0x55d0c0 (/srv/b/prog+0xbc90) (BuildId: ab)",
                "#1 <55d0c0> (</srv/b/prog ab +bc90>) (BuildId: ab)",
            ),
            // HotSpot, Windows
            (
                "V  [libjvm.so+0x8d2f3c]  f+0x1c",
                "V  [<libjvm.so +8d2f3c>]  <f +1c>",
            ),
            (r"at C:\x\prog.exe+0x10", r"at <C:\x\prog.exe +10>"),
            // .NET
            (
                "   at N.T.M(Int32 x) in App.dll:token 0x6000001+0x1a",
                "   at N.T.M(Int32 x) in <App.dll 6000001 1a>",
            ),
            (
                "   at N.T.M(Int32 x) in /src/a.cs:line 7",
                "   at N.T.M(Int32 x) in /src/a.cs:line 7",
            ),
            (
                "  at N.T.M[T] (T x) [0x0001a] in <0123456789abcdef0123456789abcdef>:0 ",
                "  at N.T.M[T] (T x) [0x0001a] in <0123456789abcdef0123456789abcdef N.T.M[T] (T x) 1a> ",
            ),
            (
                "   at App!<BaseAddress>+0x1234\n   at N.T.M(Int32) + 0x23",
                "   at <App +1234>\n   at N.T.M(Int32) + 0x23",
            ),
            // perf script
            (
                "\t 55d0c0 main+0x1a (/srv/b/prog)\n",
                "\t </srv/b/prog 55d0c0> main+0x1a (/srv/b/prog)\n",
            ),
            (
                "prog 12 3.4: 5 cycles:  55d0c0 f(int, char)+0x1a (/srv/b/prog+0x10c0)",
                "prog 12 3.4: 5 cycles:  55d0c0 f(int, char)+0x1a (</srv/b/prog @10c0>)",
            ),
            // Not addresses of code, or not whole ones.
            (
                "rip=0x7f001234, 0xbc90h 0x12zz",
                "rip=0x7f001234, 0xbc90h 0x12zz",
            ),
            ("no module (+0x10) x=+0x10", "no module (+0x10) x=+0x10"),
            ("0x10/srv/prog+0x1a", "<0x10/srv/prog +1a>"),
            (
                "in a.dll:token 0x7000001+0x1a] in <ab>:0",
                "in a.dll:token <0x7000001 +1a>] in <ab>:0",
            ),
        ] {
            assert_eq!(replaced(text), expected, "{text}");
        }
    }

    /// Whatever forms run into each other, what is found is a part of the text, one behind the other.
    #[test]
    fn forms_that_are_broken_off_are_left_alone() {
        let parts = [
            "at N.T.M (T x) [0x1",
            "] in <",
            "0123456789abcdef0123456789abcdef",
            ">:0",
            " in a.dll",
            ":token 0x6000001",
            "+0x1a",
            "App!",
            "<BaseAddress>",
            "(",
            ")",
            "[",
            "\u{e9}",
            "\n",
            " ",
            "0x7f00",
            "(+0x10)[",
            "/srv/prog",
            ": 55d0c0",
            " (BuildId: ",
            "C:\\x",
            "=",
            "+ ",
            "!",
            "\\",
        ];
        for a in parts {
            for b in parts {
                for c in parts {
                    for text in [[a, b, c].concat(), [a, b, " ", c, a].concat()] {
                        let mut end = 0;
                        for (range, question) in find_all(text.as_bytes()) {
                            assert!(end <= range.start && range.start < range.end, "{text:?}");
                            assert!(
                                range.end <= text.len() && question.target.is_some(),
                                "{text:?}"
                            );
                            end = range.end;
                        }
                    }
                }
            }
        }
    }
}
