//! Lines of logs that name a module and its addresses, each tool's in a form of its own.

use std::ops::Range;

use super::mappings::split;
use crate::request::{AddressRequest, At, Target, is_prefixed};
use crate::units::{hex, parse_address};

/// Where in a text an address is, and the request.
pub type FoundAddress<'a> = (Range<usize>, AddressRequest<'a>);

/// A form of a line. `None`: the line has another one. Every address that the line has besides is left alone.
type Parse = for<'a> fn(&'a str, &mut State<'a>) -> Option<Vec<FoundAddress<'a>>>;

/// What earlier lines state about later ones.
#[derive(Default)]
pub struct State<'a> {
    /// The module of a Windows Error Reporting event.
    faulting_module: Option<&'a str>,
}

/// The forms, of which the first that fits applies.
const FORMS: &[Parse] = &[
    mapping,
    hex_dump,
    stackwalk_fields,
    tombstone,
    segfault,
    windows_event,
    macos,
    module_plus_offset,
];

/// The addresses of a line of one of the forms.
pub fn parse<'a>(line: &'a str, state: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    FORMS.iter().find_map(|form| form(line, state))
}

/// A request for an address of a module, which replaces `part` of the line.
fn request<'a>(line: &'a str, part: &'a str, file: &'a str, at: At<'a>) -> FoundAddress<'a> {
    let target = Target::new(Some(file), at);
    (range_of(line, part), AddressRequest::at(part, Some(target)))
}

/// Where a part of a line is in it.
fn range_of(line: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - line.as_ptr().addr();
    start..start + part.len()
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `/proc/PID/maps`: `55d0c0a00000-55d0c0a04000 r-xp 00001000 fe:01 1234 /srv/prog`.
fn mapping<'a>(line: &'a str, _: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    let (start, end, _) = split(line)?;
    (is_hex(start) && is_hex(end)).then(Vec::new)
}

/// Memory: an address, then bytes or words.
fn hex_dump<'a>(line: &'a str, _: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    let (address, rest) = line.trim_start().split_once(':')?;
    let plain = |word: &'a str| word.strip_prefix("0x").unwrap_or(word);
    let mut words = rest.split_whitespace().map(plain).peekable();
    words.peek()?;
    let is_word = |word: &str| is_hex(word) && matches!(word.len(), 2 | 4 | 8 | 16);
    (plain(address).len() >= 8 && is_hex(plain(address)) && words.all(is_word)).then(Vec::new)
}

/// `minidump_stackwalk -m`: `thread|frame|module|function|file|line|offset`.
fn stackwalk_fields<'a>(line: &'a str, _: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    let fields: Vec<&str> = line.trim_end().split('|').collect();
    let [thread, frame, module, function, _, _, offset, ..] = *fields else {
        return None;
    };
    if !is_decimal(thread) || !is_decimal(frame) {
        return None;
    }
    // With a function, the offset counts from its line.
    let rva = parse_address(offset).filter(|_| function.is_empty() && !module.is_empty());
    Some(Vec::from_iter(
        rva.map(|rva| request(line, offset, module, At::Rva(rva))),
    ))
}

/// Android: `#01 pc 00000000000011c1  /system/lib64/libc.so (f+32) (BuildId: c0ffee)`. The address is one of the file.
fn tombstone<'a>(line: &'a str, _: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    let (before, after) = line.split_once(" pc ")?;
    let (_, number) = before.rsplit_once('#')?;
    let address = after.split_whitespace().next()?;
    let digits = address.strip_prefix("0x").unwrap_or(address);
    if !is_decimal(number.trim()) || !is_hex(digits) {
        return None;
    }
    let rest = after[range_of(after, address).end..].trim();
    // An embedded library: `base.apk!libc.so (offset 0x1000)`.
    let path = rest.split(" (").next().unwrap_or_default().trim();
    let file = path.rsplit('!').next().unwrap_or(path);
    if file.is_empty() || file.starts_with(['<', '[']) {
        return Some(Vec::new());
    }
    let mut found = request(line, address, file, At::Address(hex(digits)?));
    if let Some(target) = &mut found.1.target {
        target.id = build_id(rest);
    }
    Some(vec![found])
}

/// The build id that a line states: `(BuildId: c0ffee)`.
pub fn build_id(line: &str) -> Option<&str> {
    let (_, id) = line.split_once("(BuildId: ")?;
    Some(id.split_once(')')?.0).filter(|id| is_hex(id))
}

/// The kernel's log: `prog[12]: segfault at 0 ip 000055d0c0a011c1 sp … error 4 in prog[1000,55d0c0a00000+a000]`, in which `1000` is a
/// file offset. Older kernels do not write it: then only the addresses of an image that is not relocated are those of the file.
fn segfault<'a>(line: &'a str, _: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    let is_fault = line.contains(" segfault at ") || line.contains(" general protection fault");
    let (_, after) = line
        .split_once(" ip ")
        .or_else(|| line.split_once(" ip:"))
        .filter(|_| is_fault)?;
    let ip = after.split_whitespace().next()?;
    let Some((module, mapping)) = after
        .rsplit_once(" in ")
        .and_then(|(_, tail)| tail.split_once('['))
    else {
        return Some(Vec::new());
    };
    let mapping = mapping.split(']').next().unwrap_or_default();
    let at = match mapping.split_once(',') {
        Some((offset, _)) => hex(offset).map(At::FileOffset),
        None => hex(ip).map(At::Address),
    };
    Some(Vec::from_iter(
        at.filter(|_| is_hex(ip))
            .map(|at| request(line, ip, module, at)),
    ))
}

/// Windows Error Reporting: `Faulting module name: prog.dll, …`, then `Fault offset: 0x00000000000011c1`, in one line or several.
fn windows_event<'a>(line: &'a str, state: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    if let Some((_, after)) = line.split_once("Faulting module name: ") {
        state.faulting_module = after.split([',', '\r', '\n']).next().map(str::trim);
    }
    let Some((_, after)) = line.split_once("Fault offset: ") else {
        let is_event =
            line.trim_start().starts_with("Faulting ") || line.starts_with("Exception code: ");
        return is_event.then(Vec::new);
    };
    let end = after.find(|c: char| !c.is_ascii_alphanumeric());
    let offset = &after[..end.unwrap_or(after.len())];
    let rva = parse_address(offset).filter(|_| is_prefixed(offset));
    let found = state.faulting_module.take().zip(rva);
    Some(Vec::from_iter(found.map(|(module, rva)| {
        request(line, offset, module, At::Rva(rva))
    })))
}

/// macOS: `2   prog    0x000000010a0011c1 0x10a000000 + 4545`, or with a symbol in place of the base.
fn macos<'a>(line: &'a str, _: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    let (number, rest) = line.trim_start().split_once(char::is_whitespace)?;
    let (module, rest) = rest.split_once("0x")?;
    let module = module.trim();
    let (address, rest) = rest.split_once(' ')?;
    let (base, offset) = rest.trim().rsplit_once(" + ")?;
    let is_form = is_decimal(number) && !module.is_empty() && !module.ends_with([':', '(', '[']);
    if !is_form || !is_hex(address) || !is_decimal(offset) {
        return None;
    }
    let offset_value: u64 = offset.parse().ok()?;
    let start = hex(base.strip_prefix("0x").unwrap_or("?"));
    let fits = start.and_then(|start| start.checked_add(offset_value)) == hex(address);
    let range = range_of(line, base).start..range_of(line, offset).end;
    let part = &line[range];
    Some(Vec::from_iter(
        fits.then(|| request(line, part, module, At::Rva(offset_value))),
    ))
}

/// systemd-coredump: `#0  0x… n/a (prog + 0x11c1)`; minidump_stackwalk: ` 1  prog + 0x11c1`; Wine: `… in prog (+0x11c1)`.
fn module_plus_offset<'a>(line: &'a str, _: &mut State<'a>) -> Option<Vec<FoundAddress<'a>>> {
    let (before, after, in_brackets) = match line.split_once(" (+0x") {
        Some((before, after)) => (before, after, true),
        None => {
            let (before, after) = line.split_once(" + 0x")?;
            (before, after, false)
        }
    };
    let module_start = before.rfind([' ', '(', '\t']).map_or(0, |at| at + 1);
    let (prefix, module) = before.split_at(module_start);
    let digits = after.len()
        - after
            .trim_start_matches(|c: char| c.is_ascii_hexdigit())
            .len();
    let (digits, rest) = after.split_at(digits);
    let is_form = match in_brackets {
        true => prefix.ends_with(" in ") && rest.starts_with(')'),
        false if prefix.ends_with('(') => rest.starts_with(')'),
        false => is_decimal(prefix.trim()) && rest.trim().is_empty(),
    };
    if !is_form || module.is_empty() {
        return None;
    }
    let end = line.len() - rest.len() + usize::from(in_brackets);
    let part = &line[module_start..end];
    Some(vec![request(line, part, module, At::Rva(hex(digits)?))])
}
