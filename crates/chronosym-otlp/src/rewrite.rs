//! Adds names and lines to locations; every other byte of the input is kept.

use chronosym_types::hash::HashMap;

use crate::profiles::{DICTIONARY, FUNCTIONS, LOCATIONS, Profiles, STRINGS};
use crate::wire::{Fields, Part, Value, put_bytes, put_int};

/// A function for a location.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewLine {
    /// The function's name.
    pub name: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The line from 1; 0 if unknown.
    pub line: u32,
    /// The column from 1; 0 if unknown.
    pub column: u32,
}

/// Functions and strings to append to the dictionary.
struct Appended<'p> {
    of: &'p Profiles,
    strings: HashMap<String, u64>,
    functions: HashMap<(u64, u64), u64>,
    /// Their fields of the dictionary.
    fields: Vec<u8>,
}

impl Appended<'_> {
    /// Adds the first elements of tables, which represent none, if the tables are empty.
    fn begin(&mut self) {
        if self.of.table(STRINGS).is_empty() {
            put_bytes(&mut self.fields, STRINGS as u64, b"");
        }
        if self.of.table(FUNCTIONS).is_empty() {
            put_bytes(&mut self.fields, FUNCTIONS as u64, b"");
        }
    }

    fn string(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let next = (self.of.table(STRINGS).len().max(1) + self.strings.len()) as u64;
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        put_bytes(&mut self.fields, STRINGS as u64, text.as_bytes());
        self.strings.insert(text.to_owned(), next);
        next
    }

    fn function(&mut self, line: &NewLine) -> u64 {
        let key = (self.string(&line.name), self.string(&line.file));
        let next = (self.of.table(FUNCTIONS).len().max(1) + self.functions.len()) as u64;
        if let Some(&index) = self.functions.get(&key) {
            return index;
        }
        let mut function = Vec::new();
        put_int(&mut function, 1, key.0);
        put_int(&mut function, 3, key.1);
        put_bytes(&mut self.fields, FUNCTIONS as u64, &function);
        self.functions.insert(key, next);
        next
    }
}

impl Profiles {
    /// Returns the message with these functions at locations, innermost first, in place of the
    /// location's own. Everything else keeps its bytes and indices, unknown fields included. A truncated dictionary is kept as it is.
    pub fn with_lines(&self, lines: &HashMap<usize, Vec<NewLine>>) -> Vec<u8> {
        if lines.is_empty() {
            return self.whole.of(&self.bytes).to_vec();
        }
        let mut appended = Appended {
            of: self,
            strings: HashMap::default(),
            functions: HashMap::default(),
            fields: Vec::new(),
        };
        appended.begin();
        let bytes = &self.bytes;
        let fields = || Fields::new(bytes, self.whole);
        let dictionaries = fields().filter_map(|field| field.part(DICTIONARY)).count();
        let (mut out, mut seen, mut location, mut end) = (Vec::new(), 0, 0, self.whole.start);
        for field in fields() {
            end = field.whole.end;
            let Some(dictionary) = field.part(DICTIONARY) else {
                out.extend_from_slice(field.whole.of(bytes));
                continue;
            };
            seen += 1;
            let mut content = Vec::new();
            let mut rest = dictionary.start;
            for field in Fields::new(bytes, dictionary) {
                rest = field.whole.end;
                let part = field.part(LOCATIONS as u64);
                let index = location;
                location += usize::from(part.is_some());
                match part.zip(lines.get(&index)) {
                    Some((part, lines)) => {
                        let changed = self.changed(part, lines, &mut appended);
                        put_bytes(&mut content, LOCATIONS as u64, &changed);
                    }
                    None => content.extend_from_slice(field.whole.of(bytes)),
                }
            }
            if seen == dictionaries {
                content.append(&mut appended.fields);
            }
            let rest = Part {
                start: rest,
                end: dictionary.end,
            };
            content.extend_from_slice(rest.of(bytes));
            put_bytes(&mut out, DICTIONARY, &content);
        }
        let rest = Part {
            start: end,
            end: self.whole.end,
        };
        out.extend_from_slice(rest.of(bytes));
        out
    }

    /// Returns a location with other lines.
    fn changed(&self, location: Part, lines: &[NewLine], appended: &mut Appended<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for field in Fields::new(&self.bytes, location) {
            match field.value {
                // A truncated field would contain what is appended.
                Value::Bytes { is_cut: true, .. } => {}
                Value::Bytes { .. } if field.number == 3 => {}
                _ => out.extend_from_slice(field.whole.of(&self.bytes)),
            }
        }
        for line in lines {
            let mut message = Vec::new();
            put_int(&mut message, 1, appended.function(line));
            put_int(&mut message, 2, line.line.into());
            put_int(&mut message, 3, line.column.into());
            put_bytes(&mut out, 3, &message);
        }
        out
    }
}

/// Joins messages to a file, each with its length before it if `has_lengths`.
pub fn join(messages: &[Vec<u8>], has_lengths: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        if has_lengths {
            out.extend((message.len() as u32).to_be_bytes());
        }
        out.extend_from_slice(message);
    }
    out
}
