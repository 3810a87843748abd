//! Adds names and lines to locations; every other byte of the input is kept.

use chronosym_types::hash::HashMap;

use crate::profiles::{DICTIONARY, FUNCTIONS, LOCATIONS, Profiles, STRINGS};
use crate::wire::{Field, Fields, Part, put_bytes, put_int};

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
    /// location's own. Everything else keeps its bytes and indices, unknown fields included. A
    /// truncated field stays the last one: it would contain what is appended.
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
            for field in Fields::new(bytes, dictionary).take_while(Field::is_complete) {
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
        let (mut out, mut rest) = (Vec::new(), location.start);
        for field in Fields::new(&self.bytes, location).take_while(Field::is_complete) {
            rest = field.whole.end;
            if field.part(3).is_none() {
                out.extend_from_slice(field.whole.of(&self.bytes));
            }
        }
        for line in lines {
            let mut message = Vec::new();
            put_int(&mut message, 1, appended.function(line));
            put_int(&mut message, 2, line.line.into());
            put_int(&mut message, 3, line.column.into());
            put_bytes(&mut out, 3, &message);
        }
        let rest = Part {
            start: rest,
            end: location.end,
        };
        out.extend_from_slice(rest.of(&self.bytes));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_field_contains_nothing_that_is_appended() {
        // A profile; then a dictionary with two locations, the second with a truncated line.
        let whole = [
            0x0a, 4, 0x12, 2, 0x12, 0, 0x12, 9, 0x12, 0, 0x12, 5, 0x10, 8, 0x1a, 6, 8,
        ];
        // The same dictionary, its last field a truncated text.
        let mut cut = whole.to_vec();
        cut[7] += 3;
        cut.extend([0x2a, 40, b'a']);
        for bytes in [whole.to_vec(), cut] {
            let line = NewLine {
                name: "work".to_owned(),
                file: String::new(),
                line: 1,
                column: 0,
            };
            let all = Profiles::read(bytes).expect("a profile");
            let named = all[0].with_lines(&[(1, vec![line])].into_iter().collect());
            let all = Profiles::read(named).expect("a profile");
            let location = all[0].location(1).expect("a location");
            let functions = location
                .lines()
                .filter_map(|line| all[0].function(line.function));
            let names: Vec<_> = functions.map(|function| function.name).collect();
            assert_eq!(names, ["work"]);
            assert_eq!(location.address, 8);
        }
    }
}
