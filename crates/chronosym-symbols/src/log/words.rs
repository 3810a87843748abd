//! Addresses among the words of lines without a known form.

use std::cell::OnceCell;
use std::ops::Range;

use super::code_files::is_code_file;
use super::found::{Sink, placed};
use super::number::{hex, is_prefixed, parse_address};
use super::pattern::escape_len;
use super::target::{At, Form, Target, file_name, split};

/// Minimum number of digits of an address without `0x`: shorter runs are usually other numbers.
const BARE_DIGITS: usize = 8;

/// Words before a number that is not an address of code, registers among them.
const NOT_CODE: &str = "ack alloc allocated build checksum code commit count cpsr cr2 cr3 cr4 crc cxr date errno error \
    esr exccause exr far flags gid handle hash hresult id inode interpreter jobject key len length limit mask md5 msg \
    mutex nid object offset pfn pa pid port ppid process ps ptr result revision scalar seq serial session sha sha1 sha256 signal \
    size slide stamp state status sv task thread tid timestamp trap ttbr0 ttbr1 ttl type uid va version vs xpsr ax bx cx dx si di bp sp fp \
    rip eip cs ds es fs gs ss eflags efl rflags excvaddr lbeg lend base";

/// Phrases before the address of data that a fault accessed or that a text describes.
const DATA: &[&str] = &[
    "abort at address",
    "access to",
    "attempt to read from address",
    "attempt to write to address",
    "bfar address",
    "crash address",
    "dereference at",
    "dereference, address",
    "expected address",
    "fault at",
    "fault at address",
    "fault for address",
    "faulting address",
    "frame pointer",
    "invalid pointer",
    "kern_invalid_address at",
    "kern_protection_failure at",
    "linear address",
    "load address",
    "mapped region at address",
    "memory at",
    "memory at address",
    "object at",
    "on address",
    "read of address",
    "reading address",
    "reading location",
    "stack pointer",
    "thread pointer",
    "unknown address",
    "virtual address",
    "write of address",
    "writing address",
    "writing location",
];

/// Words after a number that is an amount.
const UNITS: &str = "b byte bytes kb kib mb mib pages ms us ns";

/// Words before an address of code.
const CODE: &str = "addr address at ip pc";

fn is_listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// A line of free text.
struct Line<'a> {
    text: &'a str,
    /// The module that it names, once needed.
    module: OnceCell<Option<&'a str>>,
    /// Whether it has an offset in a module: other numbers are then rarely addresses of code.
    has_offset: bool,
    parentheses: Parentheses,
    /// Offset of its first word.
    first: usize,
}

/// Adds the addresses of a line, at `start` in the text. An address must be a separate word: a part
/// of a longer word, or the value of a register, is ignored.
pub(super) fn find<'a>(line: &'a str, start: usize, sink: &mut Sink<'a>) {
    let mut own = Line {
        text: line,
        module: OnceCell::new(),
        has_offset: line.contains("+0x") || line.contains('!'),
        parentheses: Parentheses::default(),
        first: line.len().saturating_sub(line.trim_start().len()),
    };
    let mut at = 0_usize;
    // End of the last escape sequence of a terminal.
    let mut floor = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let escape = escape_len(rest);
        if escape > 0 {
            at = at.saturating_add(escape);
            floor = at;
            continue;
        }
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        let word_start = at;
        let step = after.chars().next().map_or(0, char::len_utf8);
        // A separator after the word means that it starts a path.
        let is_path = after.starts_with(['/', '\\', '~']);
        // A sentence may end after an address.
        let word = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        at = at.saturating_add(len);
        // Skip a character that starts no escape sequence.
        if len == 0 || !after.starts_with('\x1b') {
            at = at.saturating_add(step);
        }
        if word.is_empty() || is_path {
            continue;
        }
        let end = word_start.saturating_add(word.len());
        if let Some((range, mut target)) = address(line, floor, word_start..end)
            && (target.file.is_some() || own.complete(range.clone(), &mut target))
        {
            let moved = start.saturating_add(range.start)..start.saturating_add(range.end);
            sink.found.push(placed(moved, target, Form::Names));
        }
    }
}

impl<'a> Line<'a> {
    /// Adds the module of the line to an address without one; returns false if the number is not an
    /// address of code.
    fn complete(&mut self, range: Range<usize>, target: &mut Target<'a>) -> bool {
        // The arguments of a function: `main.f(0x1, 0x11c1)`.
        let open = self.parentheses.open_at(self.text, range.start);
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '>' | ']');
        let before_open = open.and_then(|at| self.text.get(..at));
        let is_argument = before_open.is_some_and(|name| name.ends_with(is_name));
        let is_first = range.start <= self.first;
        let part = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let (before, after) = (part(0..range.start), part(range.end..self.text.len()));
        let (before, after) = (last_part(before), first_part(after));
        target.file = *self.module.get_or_init(|| module_of(self.text));
        // The end of a stack.
        if target.at == At::Address(0) {
            return false;
        }
        let own = part(range);
        // `Fault address: 00401185 01:00000185 C:\\x\\app.exe` is code, with its module.
        let is_fault =
            target.file.is_none() && ends_with_phrase(before, &["fault addr", "fault address"]);
        is_code(before, own, after, is_argument)
            && !is_fault
            && (is_prefixed(own) || self.is_bare(before, own, after, is_first))
    }

    /// Returns whether digits without `0x` are an address: they are numbers more often than not.
    fn is_bare(&self, before: &str, own: &str, after: &str, is_first: bool) -> bool {
        let is_date = own.len() == 8 && (own.starts_with("19") || own.starts_with("20"));
        if is_date {
            return false;
        }
        let is_frame = before.ends_with("@ ");
        let before = before.trim_end();
        if is_frame || before.ends_with(['[', '(', '<']) {
            return true;
        }
        if self.has_offset {
            return false;
        }
        let next = after.split_whitespace().next().unwrap_or_default();
        // Two numbers of a width are columns: memory, or the stack addresses of frames.
        let is_column = next.len() == own.len() && hex(next).is_some();
        let is_first = is_first && !is_column && (own.len() >= 12 || next.is_empty());
        is_first || is_listed(CODE, &last_word(before)) || is_frame_number(before)
    }
}

/// How many bytes before and after a number are examined.
const NEAR: usize = 128;

fn last_part(text: &str) -> &str {
    let start = text.len().saturating_sub(NEAR);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at));
    start.and_then(|start| text.get(start..)).unwrap_or(text)
}

fn first_part(text: &str) -> &str {
    let end = (0..=NEAR.min(text.len())).rev();
    let end = end.into_iter().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Detects `#3`, `3:` or `[3]` at the start of a line.
fn is_frame_number(before: &str) -> bool {
    if before.len() >= NEAR {
        return false;
    }
    let digits = before.trim().trim_matches(['#', ':', '[', ']', '.']);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the last word of a text, in lower case.
fn last_word(text: &str) -> String {
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let start = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_'));
    let word = start.and_then(|at| text.get(at.saturating_add(1)..));
    word.unwrap_or(text).to_lowercase()
}

fn is_register(word: &str) -> bool {
    let number = word.strip_prefix(['r', 'x', 'w', 'a', 't', 's', 'k']);
    let number = number.unwrap_or_default();
    let number = number.trim_end_matches(['b', 'd', 'w']);
    let is_numbered = number.parse::<u8>().is_ok_and(|number| number < 32);
    let x86 = word.strip_prefix(['r', 'e']).unwrap_or(word);
    is_numbered || x86.len() == 2 && is_listed(NOT_CODE, x86)
}

/// Detects the register of an operand of x86 code, as in `[rip+0x2f1a]`.
pub(super) fn is_operand(name: &str) -> bool {
    let plain = name.strip_prefix(['r', 'e']);
    plain.is_some_and(|plain| plain == "ip" || plain.len() == 2 && is_listed(NOT_CODE, plain))
}

/// Returns whether the words around a number allow it to be an address of code, and the module they
/// name.
fn is_code(before: &str, own: &str, after: &str, is_argument: bool) -> bool {
    let unit = after
        .split_whitespace()
        .next()
        .filter(|_| after.starts_with(' '));
    let unit = unit.map(|unit| {
        unit.trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase()
    });
    if unit.is_some_and(|unit| is_listed(UNITS, &unit)) {
        return false;
    }
    let last = last_word(before);
    let trimmed = before.trim_end();
    // The value of a register need not be code. `Name() + 0x…` is an offset.
    if trimmed.ends_with('=') {
        return last == "pc";
    }
    let (_, kind) = last.rsplit_once('_').unwrap_or_default();
    let is_other =
        is_listed(NOT_CODE, &last) || is_listed("base code id len size stack time", kind);
    if before.ends_with("+ ") || is_other || is_register(&last) {
        return false;
    }
    let is_data = is_data(before, after) || after.starts_with("(%");
    if own.ends_with('h') || is_kind_of_fault(&last) || is_data {
        return false;
    }
    !is_argument
}

/// Detects `SIGSEGV (0xb)` and `InvalidOperationException: 0x1185`.
fn is_kind_of_fault(word: &str) -> bool {
    word.starts_with("sig") || word.ends_with("exception") || word.ends_with("error")
}

/// Returns whether the words before a number end with one of these phrases.
fn ends_with_phrase(before: &str, phrases: &[&str]) -> bool {
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '='));
    let ends = |phrase: &&str| {
        let at = before.len().checked_sub(phrase.len());
        let end = at.and_then(|at| before.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(phrase))
    };
    phrases.iter().any(ends)
}

/// Returns whether the words around a number state that it is the address of data, or a part of a
/// sum.
fn is_data(before: &str, after: &str) -> bool {
    let trimmed = before.trim_end();
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Sanitizers: `READ of size 4 at 0x602000000010 thread T0`.
    let access = trimmed.rsplit_once(" of size ");
    let is_access = access.is_some_and(|(_, rest)| {
        let mut words = rest.split_whitespace();
        words.next().is_some_and(is_digits) && words.all(|word| matches!(word, "at" | "addr"))
    });
    // V8: `[4711:0x55d0c0a01185] 12345 ms`, a process and an address of data.
    let isolate = before
        .strip_suffix(':')
        .and_then(|text| text.rsplit_once('['));
    let is_isolate = isolate.is_some_and(|(_, pid)| is_digits(pid));
    // Python: `<function f at 0x7f12a4001187>`.
    let is_described = after.starts_with('>')
        && trimmed.ends_with(" at")
        && trimmed.rfind('<') > trimmed.rfind('>');
    is_access
        || is_isolate
        || is_described
        || before.ends_with("(@")
        || trimmed.ends_with("*)")
        || after.starts_with(" + ")
        || ends_with_phrase(before, DATA)
}

/// The parentheses that are open at a position, which only grows.
#[derive(Default)]
struct Parentheses {
    open: Vec<usize>,
    /// How many bytes of the line have been read.
    read: usize,
}

impl Parentheses {
    /// Returns the position of the innermost parenthesis that is open before `end`.
    fn open_at(&mut self, line: &str, end: usize) -> Option<usize> {
        let bytes = line.as_bytes().get(self.read..end).unwrap_or_default();
        for (at, byte) in (self.read..).zip(bytes) {
            match byte {
                b'(' => self.open.push(at),
                b')' => _ = self.open.pop(),
                _ => {}
            }
        }
        self.read = self.read.max(end);
        self.open.last().copied()
    }
}

/// Returns the module that a line names: a path or a file name of code, `… from lib`, ` 1: 0x… f()
/// [node]`, `… <unknown> in prog`.
fn module_of(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let is_name = |module: &str| !module.contains(char::is_whitespace) && !is_prefixed(module);
    if let Some((_, module)) = line.rsplit_once("<unknown> in ") {
        return Some(module).filter(|module| is_name(module));
    }
    if let Some((_, module)) = line.rsplit_once(" from ")
        && is_name(module)
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
        && is_name(module)
    {
        return Some(module);
    }
    let words = line.split(|c: char| c.is_whitespace() || "()[]<>\"',;=".contains(c));
    words
        .filter_map(|word| {
            let path = word.split("+0x").next().unwrap_or(word);
            // `app!f`, and `base.apk!libc.so`.
            let (path, is_module) = match path.split_once('!') {
                Some((_, inner)) if is_code_file(inner) => (inner, false),
                Some((module, function)) if function.starts_with(is_function_start) => {
                    (module, !module.is_empty())
                }
                _ => (path, false),
            };
            let name = file_name(path);
            let is_file = is_module || is_code_file(name);
            let is_path =
                path.starts_with('/') && path[1..].contains('/') && !name.contains(['.', ':']);
            let is_windows = path.as_bytes().get(1..3) == Some(b":\\") && !name.contains('.');
            (is_file || (is_path || is_windows) && !name.is_empty()).then_some(path)
        })
        .next()
}

fn is_function_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '?' | '~')
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '`')
}

fn is_part(c: char) -> bool {
    is_word(c) || matches!(c, '+' | '!')
}

/// Returns the start of the path that ends at `end`.
fn path_start(line: &str, floor: usize, end: usize) -> usize {
    let text = line.get(floor..end).unwrap_or_default();
    let is_path = |c: char| is_word(c) || matches!(c, '/' | '\\' | '~');
    let front = text.trim_end_matches(is_path);
    let start = floor.saturating_add(front.len());
    let drive = front
        .strip_suffix(':')
        .filter(|_| line.get(start..).is_some_and(|path| path.starts_with('\\')));
    let mut before = drive.unwrap_or_default().chars().rev();
    let is_drive = before.next().is_some_and(|c| c.is_ascii_alphabetic());
    match is_drive && !before.next().is_some_and(is_word) {
        true => start.saturating_sub(2),
        false => start,
    }
}

/// Returns the address in a word, and the range of the line that it takes up.
fn address(line: &str, floor: usize, word: Range<usize>) -> Option<(Range<usize>, Target<'_>)> {
    let own = line.get(word.clone())?;
    let (module, number) = split(own);
    if is_operand(module) {
        return None;
    }
    if is_prefixed(number) {
        let start = match module {
            "" => word.start,
            module => path_start(line, floor, word.start.checked_add(module.len())?),
        };
        let range = start..word.end;
        let target = Target::parse(line.get(range.clone())?, parse_address)?;
        return Some((range, target));
    }
    // In free text, digits without `0x` are hexadecimal.
    let is_bare = module.is_empty() && number.len() >= BARE_DIGITS;
    let at = At::Address(is_bare.then(|| hex(number)).flatten()?);
    Some((word, Target::new(None, at)))
}
