//! Addresses in one line.

use std::ops::Range;

use super::code_files::is_code_file;
use super::forms::{Kind, Row, rows};
use super::found::{Found, Sink, placed};
use super::images::Image;
use super::number::{hex, method_token};
use super::pattern::{Characters, Field, Match};
use super::target::{At, Form, Method, Symbol, Target};
use super::words;

/// Maximum steps of matching per byte of a line: three times as many as any line of a known form
/// takes.
const STEPS_PER_BYTE: usize = 32;

/// A line, at `start` in the text.
pub(super) fn find_in_line<'a>(line: &'a str, start: usize, sink: &mut Sink<'a>) {
    let has_digit = line.bytes().any(|b| b.is_ascii_digit());
    let has = |text| line.contains(text);
    if !has_digit
        && !["build-id", "Module Name", "fatal error"]
            .into_iter()
            .any(has)
    {
        return;
    }
    if is_hex_dump(line) {
        return;
    }
    let most = line.len().saturating_add(64).saturating_mul(STEPS_PER_BYTE);
    let mut steps = most;
    let mut from = 0;
    let mut form: Option<&Row> = None;
    let characters = Characters::of(line);
    loop {
        // The frames of a line have one form, apart from the form that states their module.
        let found = match form.filter(|row| row.kind != Kind::Module) {
            Some(row) => row.pattern.find(line, from, &mut steps).map(|m| (row, m)),
            None => rows()
                .iter()
                .filter(|row| row.pattern.may_match(characters))
                .find_map(|row| Some((row, row.pattern.find(line, from, &mut steps)?))),
        };
        let Some((row, matched)) = found else { break };
        form = Some(row);
        add(row, line, &matched, start, sink);
        if matched.range.end <= from {
            break;
        }
        from = matched.range.end;
    }
    sink.steps = sink.steps.saturating_add(most.saturating_sub(steps));
    // Of a line that ran out of steps it is unknown which module it names.
    if form.is_none() && steps > 0 && !sink.only_forms && !sink.images_only {
        words::find(line, start, sink);
    }
}

/// Adds the content of a match.
fn add<'a>(row: &Row, line: &'a str, matched: &Match, start: usize, sink: &mut Sink<'a>) {
    let fields = Fields { line, matched };
    match row.kind {
        Kind::Other => {}
        Kind::OnlyForms => sink.only_forms = true,
        Kind::Module => sink.module = fields.file(),
        Kind::Image => sink.images.extend(fields.image()),
        Kind::Code => fields.code(fields.file(), start, &mut sink.found),
        Kind::NextIsModule | Kind::NextIsOffset => sink.next = Some(row.kind),
        Kind::Value => {
            let value = fields.matched.range_of(Field::File);
            let text = fields.text(Field::File);
            match (sink.next.take(), text.zip(value), sink.module) {
                (Some(Kind::NextIsModule), Some((text, _)), _) => sink.module = Some(text),
                (Some(Kind::NextIsOffset), Some((text, range)), Some(module)) => {
                    let range = start.saturating_add(range.start)..start.saturating_add(range.end);
                    let target = hex(text).map(|rva| Target::new(Some(module), At::Rva(rva)));
                    let found = target.map(|target| placed(range, target, Form::Names));
                    sink.found.extend(found);
                }
                _ => {}
            }
        }
        Kind::CodeOfModule => {
            if let Some(module) = sink.module.take() {
                fields.code(Some(module), start, &mut sink.found);
            }
        }
    }
}

/// The fields of a match.
struct Fields<'a, 'm> {
    line: &'a str,
    matched: &'m Match,
}

impl<'a> Fields<'a, '_> {
    fn text(&self, field: Field) -> Option<&'a str> {
        self.line.get(self.matched.range_of(field)?)
    }

    fn number(&self, field: Field) -> Option<u64> {
        let text = self.text(field)?;
        match self.matched.is_decimal(field) {
            true => text.parse().ok(),
            false => hex(text
                .strip_prefix("0x")
                .or_else(|| text.strip_prefix("0X"))
                .unwrap_or(text)),
        }
    }

    /// Returns the module, without the additions of tools to its path; `None` for placeholders of
    /// an unknown one.
    fn file(&self) -> Option<&'a str> {
        let file = self.text(Field::File)?.trim();
        let file = file.strip_suffix("(deleted)").unwrap_or(file).trim_end();
        // A library in an archive: `base.apk!libc.so`.
        let file = file.rsplit('!').next().unwrap_or(file);
        let is_unknown = matches!(file, "" | "n/a" | "??" | "???" | "<unknown>");
        (!is_unknown && !words::is_operand(file)).then_some(file)
    }

    fn image(&self) -> Option<Image> {
        let marked = self.matched.marked();
        let marked = marked.and_then(|range| self.line.get(range));
        let name = self.text(Field::Name).unwrap_or_default().trim();
        let name = name.strip_prefix('+').unwrap_or(name);
        let path = marked.or_else(|| self.file()).unwrap_or_default().trim();
        let path = path.strip_suffix("(deleted)").unwrap_or(path).trim_end();
        let last = self
            .number(Field::Last)
            .and_then(|last| last.checked_add(1));
        let end_by_len = || {
            self.number(Field::Start)?
                .checked_add(self.number(Field::Len)?)
        };
        Some(Image {
            path: if path.is_empty() { name } else { path }.to_owned(),
            name: name.to_owned(),
            id: self.text(Field::Id).map(str::to_owned),
            symbol_file: self.text(Field::SymbolFile).map(str::to_owned),
            start: self.number(Field::Start),
            end: self.number(Field::End).or(last).or_else(end_by_len),
            file_offset: self.number(Field::FileOffset),
            index: None,
        })
    }

    /// Appends the alternatives for the code in a match, the best first.
    fn code(&self, file: Option<&'a str>, start: usize, out: &mut Vec<Found<'a>>) {
        let is_of_module = self.matched.range_of(Field::File).is_some();
        if is_of_module && file.is_none() {
            return;
        }
        let offset = self.matched.range_of(Field::Rva);
        let has_rva = offset.is_some();
        let function = offset.and_then(|_| module_and_function(self.text(Field::File)?));
        let file = function.map_or(file, |(module, _)| Some(module));
        let mut marked = self.matched.marked();
        let mut is_alternative = false;
        let mut add = |field: Range<usize>, at: At<'a>, form: Form| {
            let range = marked.take().unwrap_or(field);
            let mut target = Target::new(file, at);
            target.id = self.text(Field::Id);
            let range = start.saturating_add(range.start)..start.saturating_add(range.end);
            let mut found = placed(range, target, form);
            found.is_alternative = std::mem::replace(&mut is_alternative, true);
            out.push(found);
        };
        let address = self.number(Field::Address);
        let mapped = self.number(Field::Start).zip(self.number(Field::Len));
        for field in [Field::Rva, Field::FileOffset, Field::Address] {
            let (Some(number), Some(range)) = (self.number(field), self.matched.range_of(field))
            else {
                continue;
            };
            let base = self.number(Field::Base);
            // macOS: `0x10a0011c1 0x10a000000 + 4545`.
            let is_sum = base.is_none_or(|base| base.checked_add(number) == address);
            match field {
                Field::Rva if !is_sum => return,
                Field::Rva => {
                    let base = self.matched.range_of(Field::Base).unwrap_or(range.clone());
                    let at = function.map_or(At::Rva(number), |(_, name)| {
                        let (offset, size) = (number, None);
                        At::Symbol(Symbol { name, offset, size })
                    });
                    add(base.start.min(range.start)..range.end, at, Form::Names);
                }
                Field::FileOffset => add(range, At::FileOffset(number), Form::Names),
                _ if let Some(base) = base => {
                    let rva = number.checked_sub(base).filter(|_| !has_rva);
                    if let Some(rva) = rva {
                        add(range, At::Rva(rva), Form::Names);
                    }
                }
                _ if mapped.is_some() => {
                    let (start, len) = mapped.unwrap_or_default();
                    let within = number.checked_sub(start).filter(|within| *within < len);
                    if within.is_none() {
                        return;
                    }
                    let address = number;
                    add(
                        range,
                        At::Mapped {
                            address,
                            start,
                            len,
                        },
                        Form::Names,
                    );
                }
                _ => add(range, At::Address(number), Form::Names),
            }
        }
        if let (Some(address), Some(range)) = (
            self.number(Field::Process),
            self.matched.range_of(Field::Process),
        ) {
            let (start, len) = (address, 0);
            let at = At::Mapped {
                address,
                start,
                len,
            };
            add(range, at, Form::Names);
        }
        if let (Some(name), Some(offset)) =
            (self.text(Field::Symbol), self.number(Field::SymbolOffset))
            && let (Some(first), Some(last)) = (
                self.matched.range_of(Field::Symbol),
                self.matched
                    .range_of(Field::SymbolSize)
                    .or(self.matched.range_of(Field::SymbolOffset)),
            )
        {
            let size = self.number(Field::SymbolSize);
            // Process Monitor: `prog.exe + 0x11c1` in place of a function.
            let at = match is_code_file(name) && file == Some(name) {
                true => At::Rva(offset),
                false => At::Symbol(Symbol { name, offset, size }),
            };
            add(first.start..last.end, at, Form::Names);
        }
        let il = self
            .number(Field::IlOffset)
            .and_then(|il| u32::try_from(il).ok());
        let Some((il, range)) = il.zip(self.matched.range_of(Field::IlOffset)) else {
            return;
        };
        let method = self.matched.range_of(Field::Method);
        // Include the bracket that ends the parameters.
        let method = method.and_then(|range| self.line.get(range.start..range.end.checked_add(1)?));
        if let Some(token) = self.text(Field::Token).and_then(method_token) {
            add(
                range,
                At::Il(Method::Token(token), il),
                Form::Line(":line "),
            );
        } else if let Some(method) = method {
            add(range, At::Il(Method::Named(method), il), Form::Line(":"));
        }
    }
}

/// Splits `app!f`, where a form has a module; `base.apk!libc.so` and `app.apk!lib/x/libc.so` are
/// modules.
fn module_and_function(file: &str) -> Option<(&str, &str)> {
    let (module, function) = file.rsplit_once('!')?;
    let is_file = function.contains(['/', '\\']) || is_code_file(function);
    let is_archive = module.to_lowercase().ends_with(".apk");
    (!is_file && !is_archive && !module.is_empty() && !function.is_empty())
        .then_some((module, function))
}

/// Minimum number of bytes in a line that dumps memory and has more than these.
const DUMPED_BYTES: usize = 8;

/// Returns whether a line dumps memory: an address, then bytes or words. Bytes may be followed by
/// their characters, and words by the functions that they point to.
fn is_hex_dump(line: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let line = line.trim_start();
    let end = line.find(|c: char| c == ':' || c.is_whitespace());
    let Some((address, rest)) = end.and_then(|end| line.split_at_checked(end)) else {
        return false;
    };
    let plain = |word| str::strip_prefix(word, "0x").unwrap_or(word);
    let address = plain(address);
    if !is_hex(address) || address.len() != 4 && address.len() < 8 {
        return false;
    }
    let (has_colon, rest) = match rest.strip_prefix(':') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let words = rest.split_whitespace().map(plain);
    let bytes = words
        .clone()
        .take_while(|word| word.len() == 2 && is_hex(word));
    if bytes.count() >= DUMPED_BYTES {
        return true;
    }
    let is_word = |word: &&str| is_hex(word) && matches!(word.len(), 2 | 4 | 8 | 16);
    let dumped = words.clone().take_while(is_word).count();
    // Linux writes the last four digits of the address only.
    let least = if address.len() == 4 { 4 } else { 1 };
    let is_pointer = || address.len() >= 16 && words.clone().next().is_some_and(|w| w.len() == 16);
    has_colon && dumped >= least && (dumped == words.clone().count() || is_pointer())
}
