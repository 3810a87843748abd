//! Addresses in a text, in the forms in which runtimes and tools write stacks.

use std::ops::Range;

use chronosym::file_name;

use super::log_json;
use super::log_lines::{self, FoundAddress, State};
use crate::request::{AddressRequest, At, Form, Method, Target, is_prefixed, split, token};
use crate::units::{hex, parse_address};

/// Digits without `0x` are taken for an address from this many on: shorter runs are numbers more often than not.
const BARE_DIGITS: usize = 8;

/// All that may be an address in a text. It stands as a word of its own: what is part of a longer one, or the value of a
/// register, is left alone.
pub fn find_all(text: &[u8]) -> Vec<FoundAddress<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut state = State::default();
    for line in text.split_inclusive(|&b| b == b'\n') {
        let frames = [dotnet, mono, native_aot, perf];
        let frame = |line| {
            frames
                .iter()
                .find_map(|form| form(line))
                .map(|one| vec![one])
        };
        let whole = std::str::from_utf8(line).ok();
        let of_form =
            whole.and_then(|line| frame(line).or_else(|| log_lines::parse(line, &mut state)));
        match of_form {
            Some(addresses) => {
                let moved = addresses.into_iter();
                found.extend(
                    moved.map(|(range, request)| (start + range.start..start + range.end, request)),
                );
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
    let start = path_start(line.as_bytes(), 0, before.len());
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
    if is_alone
        || !is_hex
        || is_prefixed(file)
        || !(symbol == "[unknown]" || symbol.contains("+0x"))
    {
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
    let own = Line::new(text, line.clone());
    let (mut at, line_end) = (line.start, line.end);
    // Where the last escape sequence of a terminal ends.
    let mut floor = line.start;
    while at < line_end {
        if text[at..line_end].starts_with(b"\x1b[") {
            let end = text[at + 2..line_end]
                .iter()
                .position(u8::is_ascii_alphabetic);
            at = end.map_or(line_end, |end| at + 3 + end);
            floor = at;
            continue;
        }
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
        // What a separator follows is the beginning of a path.
        let is_path = matches!(text.get(at), Some(b'/' | b'\\' | b'~'));
        if start == end || is_path {
            continue;
        }
        let Some((range, mut request)) = word(text, floor, start, end) else {
            continue;
        };
        if found.last().is_some_and(|(last, _)| last.end > range.start) {
            continue;
        }
        if let Some(target) = &mut request.target
            && target.file.is_none()
            && !own.complete(range.clone(), target)
        {
            continue;
        }
        // glibc: `program(+0xrva)[0xaddress]` says the same place twice.
        if text[range.start] == b'+'
            && let Some(same) = text[range.end..].strip_prefix(b")[")
        {
            at = range.end + 2 + same.iter().take_while(|&&b| is_part(b)).count();
        }
        found.push((range, request));
    }
}

/// A line of free text.
struct Line<'a> {
    text: &'a [u8],
    range: Range<usize>,
    /// The module that it names, and the build id.
    module: Option<&'a str>,
    id: Option<&'a str>,
    /// Whether it has an offset in a module: other numbers are then rarely addresses of code.
    has_offset: bool,
}

/// Words before a number that is not an address of code, registers among them.
const NOT_CODE: &[&str] = &[
    "alloc",
    "allocated",
    "build",
    "checksum",
    "code",
    "commit",
    "count",
    "crc",
    "date",
    "errno",
    "error",
    "flags",
    "gid",
    "handle",
    "hash",
    "id",
    "inode",
    "key",
    "len",
    "length",
    "mask",
    "md5",
    "nid",
    "offset",
    "pid",
    "ppid",
    "process",
    "revision",
    "serial",
    "session",
    "sha",
    "sha1",
    "sha256",
    "signal",
    "size",
    "stamp",
    "status",
    "thread",
    "tid",
    "timestamp",
    "uid",
    "version",
    "ax",
    "bx",
    "cx",
    "dx",
    "si",
    "di",
    "bp",
    "sp",
    "fp",
    "cs",
    "ds",
    "es",
    "fs",
    "gs",
    "ss",
    "eflags",
    "efl",
    "rflags",
];

/// Words after a number that is an amount.
const UNITS: &[&str] = &[
    "b", "byte", "bytes", "kb", "kib", "mb", "mib", "pages", "ms", "us", "ns",
];

/// Words before an address of code.
const CODE: &[&str] = &["addr", "address", "at", "eip", "ip", "pc", "rip"];

/// Endings of files with code.
const BINARIES: &[&str] = &[".so", ".dll", ".exe", ".dylib", ".sys", ".ko", ".node"];

impl<'a> Line<'a> {
    fn new(text: &'a [u8], range: Range<usize>) -> Self {
        let line = std::str::from_utf8(&text[range.clone()]).unwrap_or_default();
        Line {
            text,
            range,
            module: module_of(line),
            id: log_lines::build_id(line),
            has_offset: line.contains("+0x") || line.contains('!'),
        }
    }

    /// Adds the module of the line to an address without one; false if the number is none of code.
    fn complete(&self, range: Range<usize>, target: &mut Target<'a>) -> bool {
        let utf8 = |range: Range<usize>| std::str::from_utf8(&self.text[range]).unwrap_or_default();
        let before = utf8(self.range.start..range.start);
        let after = utf8(range.end..self.range.end);
        if before.ends_with('"') && after.starts_with('"') {
            return log_json::complete(self.text, range, target);
        }
        target.file = self.module;
        target.id = target.id.or(self.id);
        let own = utf8(range);
        is_code(before, own, after) && (is_prefixed(own) || self.is_bare(before, own, after))
    }

    /// Whether digits without `0x` are an address: they are numbers more often than not.
    fn is_bare(&self, before: &str, own: &str, after: &str) -> bool {
        let is_date = own.len() == 8 && (own.starts_with("19") || own.starts_with("20"));
        if self.has_offset || is_date {
            return false;
        }
        let before = before.trim_end();
        let is_first = before.is_empty() && (own.len() >= 12 || after.trim().is_empty());
        is_first
            || before.ends_with(['[', '(', '<'])
            || CODE.contains(&&*last_word(before))
            || is_frame_number(before)
    }
}

/// `#3`, `3:` or `[3]`, with which a line starts.
fn is_frame_number(before: &str) -> bool {
    let digits = before.trim().trim_matches(['#', ':', '[', ']', '.']);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The last word of a text, in lower case.
fn last_word(text: &str) -> String {
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let start = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_'));
    text[start.map_or(0, |at| at + 1)..].to_lowercase()
}

fn is_register(word: &str) -> bool {
    let number = word.strip_prefix(['r', 'x', 'w']).unwrap_or_default();
    let number = number.trim_end_matches(['b', 'd', 'w']);
    let is_numbered = number.parse::<u8>().is_ok_and(|number| number < 32);
    let x86 = word.strip_prefix(['r', 'e']).unwrap_or(word);
    is_numbered || x86.len() == 2 && NOT_CODE.contains(&x86)
}

/// Whether a number can be an address of code by the words around it.
fn is_code(before: &str, own: &str, after: &str) -> bool {
    let unit = after
        .split_whitespace()
        .next()
        .filter(|_| after.starts_with(' '));
    let unit = unit.map(|unit| {
        unit.trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase()
    });
    if unit.is_some_and(|unit| UNITS.contains(&&*unit)) {
        return false;
    }
    let last = last_word(before);
    let trimmed = before.trim_end();
    // What a register holds need not be code. `Name() + 0x…` is an offset.
    if trimmed.ends_with('=') {
        return last == "pc";
    }
    if before.ends_with("+ ") || NOT_CODE.contains(&&*last) || is_register(&last) {
        return false;
    }
    if trimmed.ends_with("fault addr") || own.ends_with('h') {
        return false;
    }
    // The arguments of a function: `main.f(0x1, 0x11c1)`.
    let mut depth = 0_usize;
    let open = before.char_indices().rev().find(|&(_, c)| {
        match c {
            ')' => depth += 1,
            '(' if depth == 0 => return true,
            '(' => depth -= 1,
            _ => {}
        }
        false
    });
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '>' | ']');
    !open.is_some_and(|(at, _)| before[..at].ends_with(is_name))
}

/// The module that a line names: a path or a file name of code, `… from lib`, ` 1: 0x… f() [node]`, `… <unknown> in prog`.
fn module_of(line: &str) -> Option<&str> {
    let line = line.trim_end();
    if let Some((_, module)) = line.rsplit_once("<unknown> in ") {
        return Some(module).filter(|module| !module.contains(char::is_whitespace));
    }
    if let Some((_, module)) = line.rsplit_once(" from ")
        && !module.contains(char::is_whitespace)
    {
        return Some(module);
    }
    if let Some((before, module)) = line
        .strip_suffix(']')
        .and_then(|line| line.rsplit_once(" ["))
        && before
            .split_whitespace()
            .next()
            .is_some_and(|word| word.ends_with(':') && is_frame_number(word))
        && !module.contains(char::is_whitespace)
    {
        return Some(module);
    }
    let words = line.split(|c: char| c.is_whitespace() || "()[]<>\"',;=".contains(c));
    words
        .filter_map(|word| {
            let path = word.split("+0x").next().unwrap_or(word);
            let name = file_name(path);
            let lower = name.to_lowercase();
            let is_file =
                BINARIES.iter().any(|ending| lower.ends_with(ending)) || lower.contains(".so.");
            let is_path =
                path.starts_with('/') && path[1..].contains('/') && !name.contains(['.', ':']);
            let is_windows = path.as_bytes().get(1..3) == Some(b":\\") && !name.contains('.');
            (is_file || (is_path || is_windows) && !name.is_empty()).then_some(path)
        })
        .next()
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'`')
}

fn is_part(b: u8) -> bool {
    is_word(b) || matches!(b, b'+' | b'!')
}

/// Where the path begins that ends at `end`.
fn path_start(text: &[u8], floor: usize, end: usize) -> usize {
    let is_path = |&&b: &&u8| is_word(b) || matches!(b, b'/' | b'\\' | b'~');
    let start = end - text[floor..end].iter().rev().take_while(is_path).count();
    let is_drive = |before: &[u8]| match *before {
        [.., before, drive] => drive.is_ascii_alphabetic() && !is_word(before),
        [drive] => drive.is_ascii_alphabetic(),
        [] => false,
    };
    match text[floor..start].strip_suffix(b":") {
        Some(before) if is_drive(before) && text.get(start) == Some(&b'\\') => start - 2,
        _ => start,
    }
}

/// The address that a word is, and what of the text it takes up.
fn word(text: &[u8], floor: usize, start: usize, end: usize) -> Option<FoundAddress<'_>> {
    let utf8 = |range: Range<usize>| std::str::from_utf8(&text[range]).ok();
    let own = utf8(start..end)?;
    let (module, number) = split(own);
    if let Some(rva) = own.strip_prefix('+') {
        let module = start.checked_sub(1).filter(|&at| text[at] == b'(')?;
        let module = utf8(path_start(text, floor, module)..module)?;
        let rva = is_prefixed(rva).then(|| parse_address(rva)).flatten()?;
        let place = Target::new(Some(module), At::Rva(rva));
        let is_named = !file_name(module).is_empty();
        return is_named.then(|| (start..end, AddressRequest::at(own, Some(place))));
    }
    if is_prefixed(number) {
        let start = if module.is_empty() {
            start
        } else {
            path_start(text, floor, start + module.len())
        };
        let mut question = AddressRequest::parse(utf8(start..end)?);
        let id = text[end..].strip_prefix(b") ").and_then(|after| {
            log_lines::build_id(std::str::from_utf8(after.get(..after.len().min(80))?).ok()?)
        });
        question.target.as_mut()?.id = id;
        return Some((start..end, question));
    }
    // In a text bare digits are hex.
    let bare = module.is_empty() && number.len() >= BARE_DIGITS;
    let place = Target::new(None, At::Address(bare.then(|| hex(number)).flatten()?));
    Some((start..end, AddressRequest::at(own, Some(place))))
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
                "#1 </srv/b/prog ab 55d0c0> (</srv/b/prog ab +bc90>) (BuildId: ab)",
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

    /// The requests of a text: module, kind and number.
    fn requests(text: &str) -> Vec<(Option<&str>, At<'_>)> {
        let found = find_all(text.as_bytes()).into_iter();
        let targets = found.map(|(_, request)| request.target.unwrap());
        targets.map(|target| (target.file, target.at)).collect()
    }

    /// One line of each form, about a module `prog` and the address 0x11c1.
    #[test]
    fn addresses_are_of_the_module_that_the_line_names() {
        let rva = At::Rva(0x11c1);
        let address = At::Address(0x11c1);
        for (text, module, at) in [
            (
                "      #01 pc 00000000000011c1  /system/lib64/prog (f(int)+32) (BuildId: c0ffee)",
                "/system/lib64/prog",
                address,
            ),
            (
                "    #00 pc 000011c1  /data/app/base.apk!prog (offset 0x1000)",
                "prog",
                address,
            ),
            ("#0  0x000055d0c0a011c1 n/a (prog + 0x11c1)", "prog", rva),
            (" 1  prog + 0x11c1", "prog", rva),
            ("0|1|prog||||0x11c1", "prog", rva),
            (
                "2   prog  \t0x55d0c0a011c1 0x55d0c0a00000 + 4545",
                "prog",
                rva,
            ),
            (
                "2   My Program  0x55d0c0a011c1 0x55d0c0a00000 + 4545",
                "My Program",
                rva,
            ),
            (
                "prog[1]: segfault at 0 ip 000055d0c0a011c1 sp 00007ffd1234 error 4 in prog[11c1,55d0c0a00000+a000]",
                "prog",
                At::FileOffset(0x11c1),
            ),
            (
                "prog[1]: segfault at 0 ip 00000000000011c1 sp 00007ffd1234 error 4 in prog[1000+a000]",
                "prog",
                address,
            ),
            (
                "traps: prog[1] general protection fault ip:11c1 sp:7ffd1234 error:0 in prog[1000+a000]",
                "prog",
                address,
            ),
            (
                "Faulting module name: prog.dll, version: 1.0, time stamp: 0x65a0\r\nException code: 0xc0000005\r\nFault offset: 0x00000000000011c1\r\nFaulting process id: 0x11c1\r\n",
                "prog.dll",
                rva,
            ),
            (
                "  0 0x0000000055d011c1 in prog (+0x11c1) (0x000000000061fe30)",
                "prog",
                rva,
            ),
            (
                "#1  0x000011c1 in ?? () from /srv/prog",
                "/srv/prog",
                address,
            ),
            (" 1: 0x11c1 wrk(int) [prog]", "prog", address),
            (
                "1 [ra] 0x00000000000011c1 <unknown> in prog",
                "prog",
                address,
            ),
            (
                "{\"frame\":0,\"module\":\"prog\",\"module_offset\":\"0x11c1\",\"offset\":\"0x55d0c0a011c1\"}",
                "prog",
                rva,
            ),
            (
                "{\"instruction_addr\": \"0x55d0c0a011c1\",\n\"image_addr\": \"0x55d0c0a00000\",\n \"package\": \"/srv/prog\"}",
                "/srv/prog",
                rva,
            ),
            ("0x11c1 in prog.so.1, which is loaded", "prog.so.1", address),
            ("\x1b[31m/srv/prog+0x11c1\x1b[0m", "/srv/prog", rva),
        ] {
            assert_eq!(requests(text), [(Some(module), at)], "{text}");
        }
    }

    #[test]
    fn addresses_without_a_module_are_found() {
        for text in [
            "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x11c1]",
            "#  SIGSEGV (0xb) at pc=0x11c1, pid=4711, tid=4712",
            "    @           0x11c1  wrk()",
            "   4:     0x11c1 - <unknown>",
            "\x1b[31m0x11c1\x1b[0m",
            "{\"addr\": \"0x11c1\"}",
        ] {
            let found = requests(text);
            assert!(
                found.contains(&(None, At::Address(0x11c1))),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn other_numbers_are_left_alone() {
        for text in [
            "55d0c0a00000-55d0c0a04000 r-xp 00001149 fd:00 00001149   /srv/prog",
            "allocated 0x11c1 bytes",
            "0x11c1 bytes in 3 blocks",
            "pid 000011c1, commit 000011c1",
            "000011c1 fix a bug",
            "2026-11-24 20261124 x",
            "main.wrk(0x11c1, 0xc000012080)",
            "RAX=0x00000000000011c1 is an unknown value",
            "    rsp = 0x00000000000011c1   rbx = 0x11c1",
            "rax            0x11c1   4545",
            "x0  00000000000011c1  x1  00000000000011c1",
            "00007ffd1234:   00000000000011c1 00000000000011c1",
            "0x00007ffd12345678:   48 8b 05 c1 11 00 00",
            "00000000`0012f6b8 00000001`400011c1 prog!wrk",
            "#00 pc 000011c1  <anonymous:7f00>",
            "0|1|prog|wrk|a.c|7|0x11c1",
            "   at N.T.M() + 0x2a offset",
            "{\"image_addr\": \"0x11c1\", \"image_size\": \"0x11c1\"}",
            "2   prog  0x55d0c0a011c1 0x55d0c0a00000 + 17",
            "Exception code: 0xc0000005",
            "0|1|prog||||",
            "prog[1]: segfault at 11c1 ip 000011c1 sp 000011c1 error 4",
        ] {
            assert_eq!(requests(text), [], "{text}");
        }
    }
}
