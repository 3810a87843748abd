//! Events of the Universal providers, which nettrace V6 recorders on Linux write: processes,
//! mappings, symbols, samples.
//!
//! Payloads are read by the field names in the event's metadata. Text is declared as single UTF-8
//! units but stored as a u16 length and UTF-8; bytes after the last declared field are ignored.
//! Process and thread are those of the record.

#![expect(
    clippy::indexing_slicing,
    reason = "steps hold indexes below NUMBERS and TEXTS"
)]

mod metadata;

pub use metadata::{ElfMetadata, MetadataError, PeMetadata, SymbolMetadata};

use std::fmt;
use std::sync::Arc;

use crate::cursor::Cursor;
use crate::part::Style;
use crate::value::{FieldList, Value};
use crate::{AStr, DecodeError, Field, FieldType, PointerSize, Provider, WStr};

/// An event of a Universal provider.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum UniversalEvent<'a> {
    /// A process that was already running.
    ExistingProcess(UniversalProcess<'a>),
    /// A process starts.
    ProcessCreate(UniversalProcess<'a>),
    /// The record's process ends.
    ProcessExit,
    /// A file, or memory, is mapped into the record's process.
    ProcessMapping(ProcessMapping<'a>),
    /// A symbol inside a mapping.
    ProcessSymbol(ProcessSymbol<'a>),
    /// The identity of a mapped file.
    ProcessMappingMetadata(ProcessMappingMetadata<'a>),
    /// A sample; its stack is the record's.
    Sample(UniversalSample),
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct UniversalProcess<'a> {
    /// Its id in its own namespace.
    pub namespace_id: Option<u64>,
    /// Its name.
    pub name: Text<'a>,
    /// The namespace's name.
    pub namespace_name: Option<Text<'a>>,
}

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProcessMapping<'a> {
    /// The id that symbols refer to.
    pub id: u64,
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The offset in the file, in bytes.
    pub file_offset: u64,
    /// The path of the file.
    pub file_name: Text<'a>,
    /// The id of the file's [`ProcessMappingMetadata`].
    pub metadata_id: Option<u64>,
}

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProcessSymbol<'a> {
    /// Its id.
    pub id: Option<u64>,
    /// The id of the mapping that contains it.
    pub mapping_id: u64,
    /// First address.
    pub start: u64,
    /// Last address, inclusive.
    pub end: u64,
    /// Its name as the recorder writes it.
    pub name: Text<'a>,
}

/// The identity of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProcessMappingMetadata<'a> {
    /// The id that mappings refer to.
    pub id: u64,
    /// The identity of the file and its symbol files, as JSON; see [`SymbolMetadata`].
    pub symbol_metadata: Text<'a>,
    /// The file's version, as JSON.
    pub version_metadata: Option<Text<'a>>,
}

/// Text in eight bits or in UTF-16.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Text<'a> {
    /// Eight-bit text.
    Narrow(AStr<'a>),
    /// UTF-16 text.
    Wide(WStr<'a>),
}

impl<'a> Text<'a> {
    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Narrow(text) => text.is_empty(),
            Self::Wide(text) => text.is_empty(),
        }
    }

    /// Appends the text to `out`.
    pub fn push_to(&self, out: &mut String) {
        match self {
            Self::Narrow(text) => out.push_str(&text.to_text()),
            Self::Wide(text) => text.push_to(out),
        }
    }

    /// Returns the text; borrowed if it is UTF-8.
    pub fn to_text(&self) -> std::borrow::Cow<'a, str> {
        match self {
            Self::Narrow(text) => text.to_text(),
            Self::Wide(text) => text.to_string().into(),
        }
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::Wide(WStr::default())
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Narrow(AStr::new(text.as_bytes()))
    }
}

impl<'a> From<WStr<'a>> for Text<'a> {
    fn from(text: WStr<'a>) -> Self {
        Self::Wide(text)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        match self {
            Self::Narrow(text) => text.to_text() == other,
            Self::Wide(text) => text == other,
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Narrow(text) => text.fmt(f),
            Self::Wide(text) => text.fmt(f),
        }
    }
}

/// The kind of event of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// A CPU sample.
    Cpu,
    /// The thread stopped running.
    CSwitch,
    /// Any other event of the provider; its name is the schema's.
    Other,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UniversalSample {
    /// The kind of event.
    pub kind: SampleKind,
    /// The event's value: its weight.
    pub value: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ExistingProcess,
    ProcessCreate,
    ProcessExit,
    Mapping,
    Symbol,
    Metadata,
    Sample(SampleKind),
}

/// The names of the number and text fields in use; their indexes are the slots of the values.
type FieldNames = (&'static [&'static str], &'static [&'static str]);

impl Kind {
    fn new(provider: &Provider, name: &str) -> Option<Self> {
        Some(match (provider, name) {
            (Provider::UniversalSystem, "ExistingProcess") => Self::ExistingProcess,
            (Provider::UniversalSystem, "ProcessCreate") => Self::ProcessCreate,
            (Provider::UniversalSystem, "ProcessExit") => Self::ProcessExit,
            (Provider::UniversalSystem, "ProcessMapping") => Self::Mapping,
            (Provider::UniversalSystem, "ProcessSymbol") => Self::Symbol,
            (Provider::UniversalSystem, "ProcessMappingMetadata") => Self::Metadata,
            (Provider::UniversalEvents, "cpu") => Self::Sample(SampleKind::Cpu),
            (Provider::UniversalEvents, "cswitch") => Self::Sample(SampleKind::CSwitch),
            (Provider::UniversalEvents, _) => Self::Sample(SampleKind::Other),
            _ => return None,
        })
    }

    fn names(self) -> FieldNames {
        match self {
            Self::ExistingProcess | Self::ProcessCreate => {
                (&["NamespaceId"], &["Name", "NamespaceName"])
            }
            Self::ProcessExit => (&[], &[]),
            Self::Mapping => (
                &[
                    "Id",
                    "StartAddress",
                    "EndAddress",
                    "FileOffset",
                    "MetadataId",
                ],
                &["FileName"],
            ),
            Self::Symbol => (
                &["Id", "MappingId", "StartAddress", "EndAddress"],
                &["Name"],
            ),
            Self::Metadata => (&["Id"], &["SymbolMetadata", "VersionMetadata"]),
            Self::Sample(_) => (&["Value"], &[]),
        }
    }
}

const NUMBERS: usize = 5;
const TEXTS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Slot {
    Number(usize),
    Text(usize),
    Unused,
}

/// How to read the payloads of an event type; made once from the fields that the trace describes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    kind: Kind,
    steps: Arc<[(Slot, FieldType)]>,
}

impl Plan {
    pub(crate) fn new(provider: &Provider, name: &str, fields: &[Field]) -> Option<Self> {
        let kind = Kind::new(provider, name)?;
        let (numbers, texts) = kind.names();
        let slot = |name: &str| {
            // The format's description has Start and End; recorders write StartAddress and
            // EndAddress.
            let matches = |own: &&str| *own == name || own.strip_suffix("Address") == Some(name);
            if let Some(i) = numbers.iter().position(matches) {
                Slot::Number(i)
            } else if let Some(i) = texts.iter().position(matches) {
                Slot::Text(i)
            } else {
                Slot::Unused
            }
        };
        let steps = fields
            .iter()
            .map(|f| (slot(&f.name), f.ty.clone()))
            .collect();
        Some(Self { kind, steps })
    }

    pub(crate) fn decode<'a>(
        &self,
        payload: &'a [u8],
        pointer_size: PointerSize,
    ) -> Result<UniversalEvent<'a>, DecodeError> {
        let mut c = Cursor::plain(payload, pointer_size);
        let mut numbers = [None; NUMBERS];
        let mut texts = [None; TEXTS];
        for (slot, ty) in &*self.steps {
            match slot {
                Slot::Number(i) => numbers[*i] = Some(number(&mut c, ty)?),
                Slot::Text(i) => texts[*i] = Some(text(&mut c, ty)?),
                Slot::Unused => skip(&mut c, ty)?,
            }
        }
        let (number_names, text_names) = self.kind.names();
        let need = |i: usize| numbers[i].ok_or(DecodeError::MissingField(number_names[i]));
        let need_text = |i: usize| texts[i].ok_or(DecodeError::MissingField(text_names[i]));
        let process = || {
            Ok::<_, DecodeError>(UniversalProcess {
                namespace_id: numbers[0],
                name: need_text(0)?,
                namespace_name: texts[1],
            })
        };
        Ok(match self.kind {
            Kind::ExistingProcess => UniversalEvent::ExistingProcess(process()?),
            Kind::ProcessCreate => UniversalEvent::ProcessCreate(process()?),
            Kind::ProcessExit => UniversalEvent::ProcessExit,
            Kind::Mapping => UniversalEvent::ProcessMapping(ProcessMapping {
                id: need(0)?,
                start: need(1)?,
                end: need(2)?,
                file_offset: need(3)?,
                file_name: need_text(0)?,
                metadata_id: numbers[4],
            }),
            Kind::Symbol => UniversalEvent::ProcessSymbol(ProcessSymbol {
                id: numbers[0],
                mapping_id: need(1)?,
                start: need(2)?,
                end: need(3)?,
                name: need_text(0)?,
            }),
            Kind::Metadata => UniversalEvent::ProcessMappingMetadata(ProcessMappingMetadata {
                id: need(0)?,
                symbol_metadata: need_text(0)?,
                version_metadata: texts[1],
            }),
            Kind::Sample(kind) => UniversalEvent::Sample(UniversalSample {
                kind,
                value: numbers[0],
            }),
        })
    }
}

fn number(c: &mut Cursor<'_>, ty: &FieldType) -> Result<u64, DecodeError> {
    let offset = c.position();
    Ok(match ty {
        FieldType::VarUInt => c.var_u64()?,
        FieldType::VarInt => {
            let n = c.var_u64()?;
            (n >> 1) ^ (n & 1).wrapping_neg()
        }
        FieldType::U8 | FieldType::I8 => c.u8()?.into(),
        FieldType::U16 | FieldType::I16 => c.u16()?.into(),
        FieldType::U32 | FieldType::I32 | FieldType::Hex32 => c.u32()?.into(),
        FieldType::U64 | FieldType::I64 | FieldType::Hex64 => c.u64()?,
        FieldType::Pointer => c.pointer()?,
        _ => return Err(DecodeError::BadValue { offset }),
    })
}

fn text<'a>(c: &mut Cursor<'a>, ty: &FieldType) -> Result<Text<'a>, DecodeError> {
    let offset = c.position();
    match ty {
        FieldType::Char8 | FieldType::CountedAnsi => {}
        FieldType::Array(item) if **item == FieldType::Char8 => {}
        FieldType::Utf16 => return Ok(Text::Wide(c.wide()?)),
        FieldType::Ansi => return Ok(Text::Narrow(c.narrow()?)),
        _ => return Err(DecodeError::BadValue { offset }),
    }
    let len = c.u16()?;
    Ok(Text::Narrow(AStr::new(c.take(len.into())?)))
}

/// Skips an unused field: a number, or else text.
fn skip(c: &mut Cursor<'_>, ty: &FieldType) -> Result<(), DecodeError> {
    let mut ahead = *c;
    match number(&mut ahead, ty) {
        Err(DecodeError::BadValue { .. }) => text(c, ty).map(drop),
        result => {
            *c = ahead;
            result.map(drop)
        }
    }
}

impl<'a> UniversalEvent<'a> {
    pub(crate) fn list(&self, _: &'static str, _: Style, out: &mut FieldList<'a>) {
        let mut show = |name: &'static str, value: Option<Value<'a>>| {
            if let Some(value) = value {
                out.push(name, value);
            }
        };
        let text = |t: Text<'a>| match t {
            Text::Narrow(t) => Value::Narrow(t),
            Text::Wide(t) => Value::Wide(t),
        };
        match self {
            Self::ExistingProcess(p) | Self::ProcessCreate(p) => {
                show("NamespaceId", p.namespace_id.map(Value::U64));
                show("Name", Some(text(p.name)));
                show("NamespaceName", p.namespace_name.map(text));
            }
            Self::ProcessExit => {}
            Self::ProcessMapping(m) => {
                show("Id", Some(Value::U64(m.id)));
                show("StartAddress", Some(Value::Hex(m.start)));
                show("EndAddress", Some(Value::Hex(m.end)));
                show("FileOffset", Some(Value::Hex(m.file_offset)));
                show("FileName", Some(text(m.file_name)));
                show("MetadataId", m.metadata_id.map(Value::U64));
            }
            Self::ProcessSymbol(s) => {
                show("Id", s.id.map(Value::U64));
                show("MappingId", Some(Value::U64(s.mapping_id)));
                show("StartAddress", Some(Value::Hex(s.start)));
                show("EndAddress", Some(Value::Hex(s.end)));
                show("Name", Some(text(s.name)));
            }
            Self::ProcessMappingMetadata(m) => {
                show("Id", Some(Value::U64(m.id)));
                show("SymbolMetadata", Some(text(m.symbol_metadata)));
                show("VersionMetadata", m.version_metadata.map(text));
            }
            Self::Sample(s) => show("Value", s.value.map(Value::U64)),
        }
    }
}
