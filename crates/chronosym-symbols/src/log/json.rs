//! Addresses in JSON: an object states the module next to them, or its index in a list of images.
//! Formats: Apple's `.ips`, Sentry's events, minidump-stackwalk, Crashpad, Node.js reports, MongoDB, Bugsnag, ABRT.

use super::found::{Found, Sink, placed, range_of};
use super::images::Image;
use super::line::find_in_line;
use super::number::{hex, is_prefixed, parse_address};
use super::target::{At, Form, Symbol, Target, file_name};

/// Maximum nesting depth that is read.
const MAX_DEPTH: usize = 128;

/// The meaning of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Address,
    Rva,
    Module,
    Path,
    Index,
    Mode,
    Base,
    End,
    Size,
    CodeId,
    DebugId,
    DebugFile,
    Symbol,
    SymbolOffset,
    /// Whether a handle of libuv is active: its address is one of data.
    Handle,
    /// MongoDB's address, load address and their difference: hexadecimal without a prefix.
    PlainAddress,
    PlainBase,
    PlainRva,
}

fn key(name: &str) -> Option<Key> {
    Some(match name {
        "addr"
        | "address"
        | "instruction_addr"
        | "instruction_address"
        | "ip"
        | "pc"
        | "native_address"
        | "frameAddress" => Key::Address,
        "module_offset"
        | "module_relative_address"
        | "image_offset"
        | "imageOffset"
        | "build_id_offset" => Key::Rva,
        "module" | "package" | "object" | "image_name" | "imageName" | "binary" | "binaryName"
        | "machoFile" => Key::Module,
        "path" | "code_file" | "filename" | "name" => Key::Path,
        "imageIndex" => Key::Index,
        "addr_mode" => Key::Mode,
        "image_addr" | "base_addr" | "base" | "loadAddress" | "machoLoadAddress" => Key::Base,
        "end_addr" => Key::End,
        "image_size" | "size" => Key::Size,
        "code_id" | "build_id" | "buildId" | "codeIdentifier" | "machoUUID" => Key::CodeId,
        "debug_id" | "uuid" => Key::DebugId,
        "debug_file" => Key::DebugFile,
        "symbol" | "function" => Key::Symbol,
        "symbolLocation" => Key::SymbolOffset,
        "is_active" => Key::Handle,
        "a" => Key::PlainAddress,
        "b" => Key::PlainBase,
        "o" => Key::PlainRva,
        _ => return None,
    })
}

/// A value: its text without quotes.
#[derive(Clone, Copy, Debug)]
struct Value<'a> {
    text: &'a str,
    is_string: bool,
}

impl<'a> Value<'a> {
    /// Returns the text of a string. If it has escape sequences, only the text after the last one,
    /// as in `C:\\x\\app.dll`.
    fn name(self) -> Option<&'a str> {
        let plain = self.text.rsplit('\\').next();
        plain.filter(|text| self.is_string && !text.is_empty())
    }

    fn number(self) -> Option<u64> {
        match self.is_string {
            true => parse_address(self.text),
            false => self.text.parse().ok(),
        }
    }

    /// Returns the number of a string of hexadecimal digits.
    fn plain(self) -> Option<u64> {
        hex(self.text).filter(|_| self.is_string)
    }
}

/// An object or an array that is open.
#[derive(Debug, Default)]
struct Level<'a> {
    is_array: bool,
    /// The key that has this value.
    name: &'a str,
    /// Completed values.
    count: u32,
    values: Vec<(Key, Value<'a>)>,
}

impl<'a> Level<'a> {
    fn get(&self, key: Key) -> Option<Value<'a>> {
        let mut values = self.values.iter();
        values.find(|(own, _)| *own == key).map(|(_, value)| *value)
    }
}

/// Returns whether JSON may start at a brace: an object with a key.
pub(super) fn starts_object(text: &str) -> bool {
    let key = text.strip_prefix('{').map(str::trim_start);
    let key = key.and_then(|rest| rest.strip_prefix('"')?.split_once('"'));
    key.is_some_and(|(key, rest)| !key.contains(['\n', '\\']) && rest.trim_start().starts_with(':'))
}

/// Reads an object at the start of `text`; returns the length of the JSON.
pub(super) fn read<'a>(text: &'a str, sink: &mut Sink<'a>) -> usize {
    let mut levels: Vec<Level<'a>> = Vec::new();
    let mut rest = text;
    let mut name = "";
    while let Some(first) = rest.chars().next() {
        let consumed = match first {
            '{' | '[' if levels.len() < MAX_DEPTH => {
                levels.push(Level {
                    is_array: first == '[',
                    name: std::mem::take(&mut name),
                    ..Level::default()
                });
                1
            }
            '}' | ']' => {
                let Some(level) = levels.pop() else { break };
                if level.is_array != (first == ']') {
                    break;
                }
                let list = levels.last();
                if !level.is_array {
                    object(text, &level, list, sink);
                }
                match levels.last_mut() {
                    Some(outer) => outer.count = outer.count.saturating_add(1),
                    // The whole object.
                    None => {
                        rest = rest.get(1..).unwrap_or_default();
                        break;
                    }
                }
                1
            }
            '"' => {
                let Some(len) = string_len(rest) else { break };
                let inner = rest.get(1..len.saturating_sub(1)).unwrap_or_default();
                let after = rest.get(len..).unwrap_or_default().trim_start();
                let in_object = levels.last().is_some_and(|level| !level.is_array);
                if in_object && name.is_empty() && after.starts_with(':') {
                    name = inner;
                } else {
                    let is_string = true;
                    let value = Value {
                        text: inner,
                        is_string,
                    };
                    if !add(&mut levels, std::mem::take(&mut name), value) {
                        lines(text, inner, sink);
                    }
                }
                len
            }
            ',' | ':' => 1,
            c if c.is_whitespace() => c.len_utf8(),
            c if c.is_ascii_alphanumeric() || c == '-' => {
                let is_scalar = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
                let len = rest.find(|c| !is_scalar(c)).unwrap_or(rest.len());
                let text = rest.get(..len).unwrap_or_default();
                let is_string = false;
                add(
                    &mut levels,
                    std::mem::take(&mut name),
                    Value { text, is_string },
                );
                len
            }
            _ => break,
        };
        rest = rest.get(consumed..).unwrap_or_default();
    }
    // A truncated object is read as well.
    while let Some(level) = levels.pop() {
        if !level.is_array {
            object(text, &level, levels.last(), sink);
        }
    }
    text.len().saturating_sub(rest.len())
}

/// Adds a value to the innermost object; returns false if its key is irrelevant.
fn add<'a>(levels: &mut [Level<'a>], name: &str, value: Value<'a>) -> bool {
    let Some(level) = levels.last_mut() else {
        return false;
    };
    if level.is_array {
        level.count = level.count.saturating_add(1);
        return false;
    }
    let key = key(name);
    if let Some(key) = key
        && level.get(key).is_none()
    {
        level.values.push((key, value));
    }
    key.is_some_and(|key| !matches!(key, Key::Path | Key::Symbol | Key::Size))
}

/// Returns the length of a string with its quotes.
fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    let mut chars = text.char_indices().skip(1);
    chars.find_map(|(at, c)| {
        if c == '"' && !escaped {
            return at.checked_add(1);
        }
        escaped = c == '\\' && !escaped;
        None
    })
}

/// A string with lines of a log.
fn lines<'a>(text: &'a str, string: &'a str, sink: &mut Sink<'a>) {
    if !string.contains([' ', '+', '(']) {
        return;
    }
    let start = sink.found.len();
    let base = range_of(text, string).start;
    for line in string.split(['\\', '\n']) {
        // The character after a backslash is `n`, `t` or `r`.
        let is_first = range_of(string, line).start == 0;
        let line = match line.strip_prefix(['n', 't', 'r']) {
            Some(rest) if !is_first => rest,
            _ => line,
        };
        let within = range_of(string, line).start;
        find_in_line(line, base.saturating_add(within), sink);
    }
    for found in sink.found.get_mut(start..).unwrap_or_default() {
        if found.form == Form::Names {
            found.form = Form::JsonText;
        }
    }
}

fn object<'a>(text: &'a str, level: &Level<'a>, list: Option<&Level<'a>>, sink: &mut Sink<'a>) {
    if level.get(Key::Handle).is_some() {
        return;
    }
    match level.get(Key::Rva).or(level.get(Key::Address)) {
        Some(value) => frame(text, level, value, sink),
        None if level.get(Key::PlainRva).is_some() => sink.found.extend(plain_frame(text, level)),
        None => sink.images.extend(image(level, list)),
    }
}

/// An object of MongoDB with an address.
fn plain_frame<'a>(text: &'a str, level: &Level<'a>) -> Option<Found<'a>> {
    let rva = level.get(Key::PlainRva)?;
    let base = level.get(Key::PlainBase)?.plain()?;
    let address = base.checked_add(rva.plain()?)?;
    let stated = level.get(Key::PlainAddress);
    let is_sum = stated.is_none_or(|stated| stated.plain() == Some(address));
    let range = range_of(text, stated.unwrap_or(rva).text);
    let target = Target::new(None, At::Address(address));
    is_sum.then(|| placed(range, target, Form::JsonText))
}

/// An object with an address.
fn frame<'a>(text: &'a str, level: &Level<'a>, value: Value<'a>, sink: &mut Sink<'a>) {
    let Some(number) = value.number() else {
        return;
    };
    let symbol = level.get(Key::Symbol).and_then(Value::name);
    // Node.js: `wrk(int) [prog]`.
    let in_symbol = || {
        symbol?
            .strip_suffix(']')?
            .rsplit_once(" [")
            .map(|(_, module)| module)
    };
    let module = level
        .get(Key::Module)
        .and_then(Value::name)
        .or_else(in_symbol);
    let base = level.get(Key::Base).and_then(Value::number);
    let index = level.get(Key::Index).and_then(Value::number);
    let relative = level.get(Key::Mode).and_then(Value::name);
    let index = index.or_else(|| relative?.strip_prefix("rel:")?.parse().ok());
    let index = index.and_then(|index| u32::try_from(index).ok());
    let is_rva = level.get(Key::Rva).is_some();
    let is_address = value.is_string && is_prefixed(value.text);
    if !is_rva && !is_address {
        return;
    }
    let at = match (is_rva, index, base) {
        (_, Some(index), _) if module.is_none() => At::Listed(index, number),
        (true, ..) => At::Rva(number),
        (false, _, Some(base)) => At::Rva(number.wrapping_sub(base)),
        (false, ..) => At::Address(number),
    };
    let mut target = Target::new(module, at);
    target.id = level.get(Key::CodeId).and_then(Value::name);
    if module.is_none() && target.id.is_none() && matches!(at, At::Rva(_)) {
        return;
    }
    let form = if value.is_string {
        Form::JsonText
    } else {
        Form::JsonValue
    };
    let range = range_of(text, value.text);
    sink.found.push(placed(range.clone(), target, form));
    let offset = level.get(Key::SymbolOffset).and_then(Value::number);
    if let (Some(name), Some(offset)) = (symbol, offset) {
        let size = None;
        let symbol = Symbol { name, offset, size };
        let mut other = placed(range, Target::new(module, At::Symbol(symbol)), form);
        other.is_alternative = true;
        sink.found.push(other);
    }
}

/// Returns an object of a list of images.
fn image(level: &Level<'_>, list: Option<&Level<'_>>) -> Option<Image> {
    let number = |key| level.get(key).and_then(Value::number);
    let text = |key| level.get(key).and_then(Value::name).map(str::to_owned);
    let id = text(Key::CodeId)
        .filter(|id| id.len() >= 32)
        .or_else(|| text(Key::DebugId));
    let plain = || level.get(Key::PlainBase)?.plain();
    let start = number(Key::Base).or_else(plain)?;
    let size = number(Key::Size);
    let end = number(Key::End).or_else(|| start.checked_add(size?));
    if id.is_none() && end.is_none() {
        return None;
    }
    // MongoDB's main program has no path.
    let path = text(Key::Path).or_else(|| plain().map(|_| String::new()))?;
    let is_list = |list: &&Level<'_>| list.is_array && matches!(list.name, "usedImages" | "images");
    Some(Image {
        name: file_name(&path).to_owned(),
        path,
        id,
        symbol_file: text(Key::DebugFile),
        start: Some(start),
        end,
        file_offset: None,
        index: list.filter(is_list).map(|list| list.count),
    })
}
