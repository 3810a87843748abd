//! Profiles with their dictionary: tables, resources, samples.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::wire::{Field, Fields, Ints, Part, Value};

/// Maximum length of the input in bytes.
pub const MAX_BYTES: usize = 1 << 30;

/// Maximum length of a text in bytes; the rest of a longer one is left out. A text may be referred to
/// by every element of a table.
pub const MAX_TEXT: usize = 4096;

/// Maximum number of attributes of an element, and of functions at a location, that are read.
const MAX_LIST: usize = 256;

/// Tables of the dictionary, by the number of their field.
const TABLES: Range<usize> = 1..8;
pub(crate) const MAPPINGS: usize = 1;
pub(crate) const LOCATIONS: usize = 2;
pub(crate) const FUNCTIONS: usize = 3;
pub(crate) const STRINGS: usize = 5;
const ATTRIBUTES: usize = 6;
const STACKS: usize = 7;

/// The number of the dictionary's field.
pub(crate) const DICTIONARY: u64 = 2;

/// A `ProfilesData` message, or an `ExportProfilesServiceRequest`, which has the same fields.
///
/// Elements of tables are decoded when they are requested. An index that is out of range has no
/// element.
pub struct Profiles {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) whole: Part,
    tables: [Vec<Part>; TABLES.end],
    profiles: Vec<ProfileParts>,
    damaged: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ProfileParts {
    resource: Part,
    message: Part,
}

impl Profiles {
    /// Reads all messages of a file: one, or any number of them with their lengths in four bytes
    /// before each, as the file exporter of the OpenTelemetry Collector writes.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no profile.
    pub fn read(bytes: Vec<u8>) -> Result<Vec<Profiles>, Error> {
        if bytes.len() > MAX_BYTES {
            return Err(Error::TooLong { limit: MAX_BYTES });
        }
        let bytes = Arc::new(bytes);
        let all = messages(&bytes).map(|(whole, is_cut)| Profiles::parse(&bytes, whole, is_cut));
        let all: Vec<Profiles> = all.collect();
        match all.iter().any(|it| !it.profiles.is_empty()) {
            true => Ok(all),
            false => Err(Error::NotProfiles {
                found: bytes.first().copied(),
            }),
        }
    }

    fn parse(bytes: &Arc<Vec<u8>>, whole: Part, is_cut: bool) -> Self {
        let mut found = Profiles {
            bytes: Arc::clone(bytes),
            whole,
            tables: Default::default(),
            profiles: Vec::new(),
            damaged: is_cut.into(),
        };
        let mut fields = Fields::new(bytes, whole);
        for field in fields.by_ref() {
            match (field.number, field.value) {
                (1, Value::Bytes { part, .. }) => found.resource(part),
                (DICTIONARY, Value::Bytes { part, .. }) => found.dictionary(part),
                _ => {}
            }
        }
        found.damaged += u64::from(fields.is_damaged);
        found
    }

    fn resource(&mut self, message: Part) {
        let bytes = Arc::clone(&self.bytes);
        let mut fields = Fields::new(&bytes, message);
        let resource = fields.filter_map(|field| field.part(1)).last();
        let resource = resource.unwrap_or_default();
        for field in fields.by_ref() {
            if let (2, Value::Bytes { part, .. }) = (field.number, field.value) {
                self.scope(&bytes, part, resource);
            }
        }
        self.damaged += u64::from(fields.is_damaged);
    }

    fn scope(&mut self, bytes: &[u8], message: Part, resource: Part) {
        let mut fields = Fields::new(bytes, message);
        for field in fields.by_ref() {
            if let (2, Value::Bytes { part, .. }) = (field.number, field.value) {
                let message = part;
                self.profiles.push(ProfileParts { resource, message });
            }
        }
        self.damaged += u64::from(fields.is_damaged);
    }

    fn dictionary(&mut self, message: Part) {
        let bytes = Arc::clone(&self.bytes);
        let mut fields = Fields::new(&bytes, message);
        for field in fields.by_ref() {
            let table = usize::try_from(field.number).ok();
            let table = table.and_then(|number| self.tables.get_mut(number));
            // A truncated element could be another one.
            let element = field.part(field.number);
            if let (Some(table), Some(element)) = (table, element) {
                table.push(element);
            }
        }
        self.damaged += u64::from(fields.is_damaged);
    }

    /// Returns the number of messages that end early, or are truncated.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Returns the profiles of all resources.
    pub fn profiles(&self) -> impl Iterator<Item = Profile<'_>> {
        let parts = self.profiles.iter();
        parts.map(|&parts| Profile { of: self, parts })
    }

    /// Returns a profile by its position in [`Profiles::profiles`].
    pub fn profile(&self, index: usize) -> Option<Profile<'_>> {
        let parts = *self.profiles.get(index)?;
        Some(Profile { of: self, parts })
    }

    pub(crate) fn table(&self, table: usize) -> &[Part] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }

    fn element(&self, table: usize, index: usize) -> Option<Part> {
        self.table(table).get(index).copied()
    }

    fn fields(&self, part: Part) -> Fields<'_> {
        Fields::new(&self.bytes, part)
    }

    /// Returns a string of the dictionary; empty if there is none. Invalid UTF-8 is replaced.
    pub fn text(&self, index: usize) -> Cow<'_, str> {
        self.string(self.element(STRINGS, index).unwrap_or_default())
    }

    fn string(&self, part: Part) -> Cow<'_, str> {
        let bytes = part.of(&self.bytes);
        String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes))
    }

    /// Returns the number of locations.
    pub fn location_count(&self) -> usize {
        self.table(LOCATIONS).len()
    }

    /// Returns the number of mappings.
    pub fn mapping_count(&self) -> usize {
        self.table(MAPPINGS).len()
    }

    /// Returns the number of stacks.
    pub fn stack_count(&self) -> usize {
        self.table(STACKS).len()
    }

    /// Returns a location.
    pub fn location(&self, index: usize) -> Option<Location<'_>> {
        let part = self.element(LOCATIONS, index)?;
        let mut location = Location {
            mapping: 0,
            address: 0,
            of: self,
            part,
        };
        for field in self.fields(part) {
            match field.value {
                Value::Int(value) if field.number == 1 => location.mapping = value as usize,
                Value::Int(value) if field.number == 2 => location.address = value,
                _ => {}
            }
        }
        Some(location)
    }

    /// Returns a mapping.
    pub fn mapping(&self, index: usize) -> Option<Mapping<'_>> {
        let part = self.element(MAPPINGS, index)?;
        let mut mapping = Mapping {
            start: 0,
            limit: 0,
            file_offset: 0,
            path: Cow::Borrowed(""),
            of: self,
            part,
        };
        for field in self.fields(part) {
            match (field.number, field.value) {
                (1, Value::Int(value)) => mapping.start = value,
                (2, Value::Int(value)) => mapping.limit = value,
                (3, Value::Int(value)) => mapping.file_offset = value,
                (4, Value::Int(value)) => mapping.path = self.text(value as usize),
                _ => {}
            }
        }
        Some(mapping)
    }

    /// Returns a function.
    pub fn function(&self, index: usize) -> Option<Function<'_>> {
        let part = self.element(FUNCTIONS, index)?;
        let mut function = Function::default();
        for field in self.fields(part) {
            match (field.number, field.value) {
                (1, Value::Int(value)) => {
                    function.name_index = value as usize;
                    function.name = self.text(function.name_index);
                }
                (3, Value::Int(value)) => function.file = self.text(value as usize),
                _ => {}
            }
        }
        Some(function)
    }

    /// Returns the locations of a stack, innermost first.
    pub fn stack(&self, index: usize) -> impl Iterator<Item = usize> + Clone {
        let part = self.element(STACKS, index).unwrap_or_default();
        Ints::new(&self.bytes, part, 1).map(|location| location as usize)
    }

    /// Returns the attributes of these indices.
    fn attributes(&self, part: Part, number: u64) -> impl Iterator<Item = Attribute<'_>> {
        let indices = Ints::new(&self.bytes, part, number).take(MAX_LIST);
        indices.filter_map(|index| self.attribute(index as usize))
    }

    fn attribute(&self, index: usize) -> Option<Attribute<'_>> {
        let mut key = Cow::Borrowed("");
        let mut value = AttributeValue::Other;
        for field in self.fields(self.element(ATTRIBUTES, index)?) {
            match (field.number, field.value) {
                (1, Value::Int(index)) => key = self.text(index as usize),
                (2, Value::Bytes { part, .. }) => value = self.value(part),
                _ => {}
            }
        }
        Some(Attribute { key, value })
    }

    /// Decodes an `AnyValue`.
    fn value(&self, part: Part) -> AttributeValue<'_> {
        let value = |field: Field| match (field.number, field.value) {
            (1, Value::Bytes { part, .. }) => Some(AttributeValue::Text(self.string(part))),
            (3, Value::Int(value)) => Some(AttributeValue::Int(value as i64)),
            (8, Value::Int(index)) => Some(AttributeValue::Text(self.text(index as usize))),
            _ => None,
        };
        let values = self.fields(part).filter_map(value);
        values.last().unwrap_or(AttributeValue::Other)
    }
}

/// The messages in a file, and whether each is truncated.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (Part, bool)> {
    // No message begins with a zero; lengths below 16 MiB do.
    let has_lengths = bytes.first() == Some(&0);
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let (before, length) = match (has_lengths, rest.first_chunk()) {
            (false, _) => (0, rest.len()),
            (true, Some(length)) => (4, u32::from_be_bytes(*length) as usize),
            (true, None) => (rest.len(), 1),
        };
        let start = at + before;
        let end = start.saturating_add(length).min(bytes.len());
        at = end;
        let whole = Part {
            start: start as u32,
            end: end as u32,
        };
        Some((whole, end - start < length))
    })
}

/// One profile: samples with one type of value.
#[derive(Clone, Copy)]
pub struct Profile<'p> {
    of: &'p Profiles,
    parts: ProfileParts,
}

/// The type of the values of a profile, or of its period: `cpu` and `nanoseconds`.
///
/// Closed: the format defines these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueType<'p> {
    /// What is measured.
    pub name: Cow<'p, str>,
    /// The unit.
    pub unit: Cow<'p, str>,
}

impl<'p> Profile<'p> {
    fn fields(&self) -> Fields<'p> {
        self.of.fields(self.parts.message)
    }

    fn int(&self, number: u64) -> u64 {
        let ints = self.fields().filter_map(|field| field.int(number));
        ints.last().unwrap_or(0)
    }

    fn value_type(&self, number: u64) -> ValueType<'p> {
        let mut found = ValueType::default();
        let parts = self.fields().filter_map(|field| field.part(number));
        for field in parts.flat_map(|part| self.of.fields(part)) {
            match (field.number, field.value) {
                (1, Value::Int(index)) => found.name = self.of.text(index as usize),
                (2, Value::Int(index)) => found.unit = self.of.text(index as usize),
                _ => {}
            }
        }
        found
    }

    /// Returns the type of its values.
    pub fn sample_type(&self) -> ValueType<'p> {
        self.value_type(1)
    }

    /// Returns the type of the period.
    pub fn period_type(&self) -> ValueType<'p> {
        self.value_type(5)
    }

    /// Returns the amount between two samples, in the unit of [`Profile::period_type`]; 0 if
    /// unknown.
    pub fn period(&self) -> u64 {
        u64::try_from(self.int(6) as i64).unwrap_or(0)
    }

    /// Returns when it began, in ns since 1970-01-01 UTC; 0 if unknown.
    pub fn time_unix_ns(&self) -> u64 {
        self.int(3)
    }

    /// Returns its duration in ns.
    pub fn duration_ns(&self) -> u64 {
        self.int(4)
    }

    /// Returns the attributes of its resource: the process, in profiles of one.
    pub fn resource(&self) -> impl Iterator<Item = Attribute<'p>> {
        let of = self.of;
        let attributes = of.fields(self.parts.resource);
        let attributes = attributes.filter_map(|field| field.part(1));
        attributes.take(MAX_LIST).map(move |part| {
            let mut key = Cow::Borrowed("");
            let mut value = AttributeValue::Other;
            for field in of.fields(part) {
                match (field.number, field.value) {
                    (1, Value::Bytes { part, .. }) => key = of.string(part),
                    (2, Value::Bytes { part, .. }) => value = of.value(part),
                    (3, Value::Int(index)) => key = of.text(index as usize),
                    _ => {}
                }
            }
            Attribute { key, value }
        })
    }

    /// Returns its samples. A truncated one is left out.
    pub fn samples(&self) -> Samples<'p> {
        self.samples_from(self.parts.message.start)
    }

    /// Returns the samples from a [`Samples::position`] on.
    pub fn samples_from(&self, start: u32) -> Samples<'p> {
        let message = Part {
            start,
            ..self.parts.message
        };
        Samples {
            of: self.of,
            fields: self.of.fields(message),
        }
    }
}

/// The samples of a profile.
#[derive(Clone)]
pub struct Samples<'p> {
    of: &'p Profiles,
    fields: Fields<'p>,
}

impl Samples<'_> {
    /// Returns the offset of the next sample.
    pub fn position(&self) -> u32 {
        self.fields.position()
    }
}

impl<'p> Iterator for Samples<'p> {
    type Item = Sample<'p>;

    fn next(&mut self) -> Option<Sample<'p>> {
        let part = self.fields.find_map(|field| field.part(2))?;
        let of = self.of;
        let stack = of.fields(part).filter_map(|field| field.int(1)).last();
        Some(Sample {
            stack: stack.unwrap_or(0) as usize,
            of,
            part,
        })
    }
}

/// A sample.
#[derive(Clone, Copy)]
pub struct Sample<'p> {
    /// Index of its stack.
    pub stack: usize,
    of: &'p Profiles,
    part: Part,
}

impl<'p> Sample<'p> {
    /// Returns its values, one for each time, or one in all.
    pub fn values(&self) -> impl Iterator<Item = i64> + Clone + use<'p> {
        Ints::new(&self.of.bytes, self.part, 4).map(|value| value as i64)
    }

    /// Returns its times, in ns since 1970-01-01 UTC.
    pub fn times_unix_ns(&self) -> impl Iterator<Item = u64> + Clone + use<'p> {
        Ints::fixed(&self.of.bytes, self.part, 5)
    }

    /// Returns its attributes.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'p>> {
        self.of.attributes(self.part, 2)
    }

    /// Returns the indices of its attributes, which are equal for equal attributes.
    pub fn attribute_indices(&self) -> impl Iterator<Item = u64> + use<'p> {
        Ints::new(&self.of.bytes, self.part, 2)
    }
}

/// An attribute.
///
/// Closed: the format defines these.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute<'p> {
    /// Its key, of the semantic conventions.
    pub key: Cow<'p, str>,
    /// Its value.
    pub value: AttributeValue<'p>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttributeValue<'p> {
    /// Text.
    Text(Cow<'p, str>),
    /// A number.
    Int(i64),
    /// A value of another type.
    Other,
}

/// Instructions at an address, or a line of an interpreted program.
pub struct Location<'p> {
    /// Index of its mapping; 0 for none.
    pub mapping: usize,
    /// The address. Its meaning depends on the type of the frame.
    pub address: u64,
    of: &'p Profiles,
    part: Part,
}

impl<'p> Location<'p> {
    /// Returns its offset in the input, which no other location has.
    pub fn position(&self) -> u32 {
        self.part.start
    }

    /// Returns its functions with their lines, innermost first: each is inlined into the next one.
    pub fn lines(&self) -> impl Iterator<Item = Line> + use<'p> {
        let of = self.of;
        let parts = of.fields(self.part).filter_map(|field| field.part(3));
        parts.take(MAX_LIST).map(move |part| {
            let mut line = Line {
                position: part.start,
                ..Line::default()
            };
            for field in of.fields(part) {
                match (field.number, field.value) {
                    (1, Value::Int(value)) => line.function = value as usize,
                    (2, Value::Int(value)) => line.line = u32::try_from(value).unwrap_or(0),
                    _ => {}
                }
            }
            line
        })
    }

    /// Returns its attributes.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'p>> {
        self.of.attributes(self.part, 4)
    }
}

/// A function at a location.
///
/// Closed: columns are not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Index of the function.
    pub function: usize,
    /// The line from 1; 0 if unknown.
    pub line: u32,
    /// Its offset in the input, which no other line has.
    pub position: u32,
}

/// A function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Function<'p> {
    /// Its name; empty if unknown.
    pub name: Cow<'p, str>,
    /// Its source file; empty if unknown.
    pub file: Cow<'p, str>,
    /// Index of the name.
    pub(crate) name_index: usize,
}

impl Function<'_> {
    /// Returns whether it has a name. In place of unknown names, the eBPF profiler writes
    /// `UNRESOLVED` or `UNREPORTED`, and chronosym `module!?` or the address.
    pub fn has_name(&self) -> bool {
        let name = &*self.name;
        !matches!(name, "" | "UNRESOLVED" | "UNREPORTED")
            && !name.ends_with("!?")
            && !name.starts_with("0x")
    }
}

/// A mapping of a file.
#[non_exhaustive]
pub struct Mapping<'p> {
    /// The first address.
    pub start: u64,
    /// The address after the last one; 0 if unknown.
    pub limit: u64,
    /// File offset of the first address.
    pub file_offset: u64,
    /// The file's path or name; empty if unknown.
    pub path: Cow<'p, str>,
    of: &'p Profiles,
    part: Part,
}

impl<'p> Mapping<'p> {
    /// Returns its attributes.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'p>> {
        self.of.attributes(self.part, 5)
    }
}
