//! Events of the Universal providers, which nettrace V6 recorders on Linux write: processes,
//! mappings, symbols, samples.
//!
//! Payloads are read by the field names in the event's metadata. Text is declared as single UTF-8
//! units but stored as a u16 length and UTF-8; bytes after the last declared field are ignored.
//! Process and thread are those of the record.

#![expect(clippy::indexing_slicing, reason = "steps hold indexes of slots")]

mod metadata;
mod text;

pub use metadata::{ElfMetadata, MetadataError, PeMetadata, SymbolMetadata};
pub use text::Text;

use std::sync::Arc;

use crate::cursor::Cursor;
use crate::part::{Part, Style, payload};
use crate::value::{FieldList, Value};
use crate::{AStr, DecodeError, Field, FieldType, PointerSize, Provider};

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

/// Declares payloads whose fields are read by name. A field is `name: Type = "PublishedName"`; `as
/// hex` shows the number in hex.
macro_rules! payloads {
    ($(
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$fmeta:meta])* $field:ident: $ty:ty = $label:literal $(as $style:ident)?,)+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name<'a> {
            $($(#[$fmeta])* pub $field: $ty,)+
        }

        impl<'a> $name<'a> {
            const FIELDS: Fields = &[$(($label, <$ty as FieldValue<'a>>::IS_TEXT)),+];

            fn new(slots: Slots<'a>) -> Result<Self, DecodeError> {
                let mut slots = slots.into_iter();
                $(
                    let slot = slots.next().unwrap_or(Slot::Empty);
                    let $field = FieldValue::of(slot).ok_or(DecodeError::MissingField($label))?;
                )+
                Ok(Self { $($field),+ })
            }

            fn list(&self, out: &mut FieldList<'a>) {
                $(self.$field.list($label, payload!(@style $($style)?), out);)+
            }
        }
    )+};
}

payloads! {
    /// A process.
    UniversalProcess {
        /// Its id in its own namespace.
        namespace_id: Option<u64> = "NamespaceId",
        /// Its name.
        name: Text<'a> = "Name",
        /// The namespace's name.
        namespace_name: Option<Text<'a>> = "NamespaceName",
    }

    /// A mapping.
    ProcessMapping {
        /// The id that symbols refer to.
        id: u64 = "Id",
        /// First address.
        start: u64 = "StartAddress" as hex,
        /// The address after the last one.
        end: u64 = "EndAddress" as hex,
        /// The offset in the file, in bytes.
        file_offset: u64 = "FileOffset" as hex,
        /// The path of the file.
        file_name: Text<'a> = "FileName",
        /// The id of the file's [`ProcessMappingMetadata`].
        metadata_id: Option<u64> = "MetadataId",
    }

    /// A symbol.
    ProcessSymbol {
        /// Its id.
        id: Option<u64> = "Id",
        /// The id of the mapping that contains it.
        mapping_id: u64 = "MappingId",
        /// First address.
        start: u64 = "StartAddress" as hex,
        /// Last address, inclusive.
        end: u64 = "EndAddress" as hex,
        /// Its name as the recorder writes it.
        name: Text<'a> = "Name",
    }

    /// The identity of a mapped file.
    ProcessMappingMetadata {
        /// The id that mappings refer to.
        id: u64 = "Id",
        /// The identity of the file and its symbol files, as JSON; see [`SymbolMetadata`].
        symbol_metadata: Text<'a> = "SymbolMetadata",
        /// The file's version, as JSON.
        version_metadata: Option<Text<'a>> = "VersionMetadata",
    }
}

/// The kind of event of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
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

/// The fields of a payload: names, and whether they are text. Their indexes are those of the slots.
type Fields = &'static [(&'static str, bool)];

/// The values of a payload's fields. No payload has more.
type Slots<'a> = [Slot<'a>; 6];

/// The value of a field.
#[derive(Clone, Copy)]
enum Slot<'a> {
    Empty,
    Number(u64),
    Text(Text<'a>),
}

/// A type of fields.
trait FieldValue<'a>: Sized {
    const IS_TEXT: bool;
    /// Returns the value in a slot; `None` if it is required and missing.
    fn of(slot: Slot<'a>) -> Option<Self>;
    fn list(self, name: &'static str, style: Style, out: &mut FieldList<'a>);
}

impl<'a> FieldValue<'a> for u64 {
    const IS_TEXT: bool = false;

    fn of(slot: Slot<'a>) -> Option<Self> {
        match slot {
            Slot::Number(n) => Some(n),
            _ => None,
        }
    }

    fn list(self, name: &'static str, style: Style, out: &mut FieldList<'a>) {
        Part::list(&self, name, style, out);
    }
}

impl<'a> FieldValue<'a> for Text<'a> {
    const IS_TEXT: bool = true;

    fn of(slot: Slot<'a>) -> Option<Self> {
        match slot {
            Slot::Text(text) => Some(text),
            _ => None,
        }
    }

    fn list(self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        let value = match self {
            Text::Narrow(text) => Value::Narrow(text),
            Text::Wide(text) => Value::Wide(text),
        };
        out.push(name, value);
    }
}

impl<'a, T: FieldValue<'a>> FieldValue<'a> for Option<T> {
    const IS_TEXT: bool = T::IS_TEXT;

    fn of(slot: Slot<'a>) -> Option<Self> {
        Some(T::of(slot))
    }

    fn list(self, name: &'static str, style: Style, out: &mut FieldList<'a>) {
        if let Some(value) = self {
            value.list(name, style, out);
        }
    }
}

type Decode = for<'a> fn(Slots<'a>) -> Result<UniversalEvent<'a>, DecodeError>;

/// Returns the fields of an event type, and how they become an event.
fn event_type(provider: &Provider, name: &str) -> Option<(Fields, Decode)> {
    use UniversalEvent as Event;
    macro_rules! event {
        ($event:ident, $payload:ident) => {
            ($payload::FIELDS, |s| $payload::new(s).map(Event::$event))
        };
    }
    macro_rules! sample {
        ($kind:ident) => {
            (&[("Value", false)], |[slot, ..]| {
                let (kind, value) = (SampleKind::$kind, u64::of(slot));
                Ok(Event::Sample(UniversalSample { kind, value }))
            })
        };
    }
    Some(match (provider, name) {
        (Provider::UniversalSystem, "ExistingProcess") => event!(ExistingProcess, UniversalProcess),
        (Provider::UniversalSystem, "ProcessCreate") => event!(ProcessCreate, UniversalProcess),
        (Provider::UniversalSystem, "ProcessExit") => (&[], |_| Ok(Event::ProcessExit)),
        (Provider::UniversalSystem, "ProcessMapping") => event!(ProcessMapping, ProcessMapping),
        (Provider::UniversalSystem, "ProcessSymbol") => event!(ProcessSymbol, ProcessSymbol),
        (Provider::UniversalSystem, "ProcessMappingMetadata") => {
            event!(ProcessMappingMetadata, ProcessMappingMetadata)
        }
        (Provider::UniversalEvents, "cpu") => sample!(Cpu),
        (Provider::UniversalEvents, "cswitch") => sample!(CSwitch),
        (Provider::UniversalEvents, _) => sample!(Other),
        _ => return None,
    })
}

/// How to read the payloads of an event type; made once from the fields that the trace describes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    decode: Decode,
    steps: Arc<[Step]>,
}

/// A described field, and the index and kind of its slot if it is in use.
type Step = (FieldType, Option<(usize, bool)>);

impl Plan {
    pub(crate) fn new(provider: &Provider, name: &str, described: &[Field]) -> Option<Self> {
        let (fields, decode) = event_type(provider, name)?;
        // The format's description has Start and End; recorders write StartAddress and EndAddress.
        let slot = |name: &str| {
            let is_it = |own: &str| own == name || own.strip_suffix("Address") == Some(name);
            let index = fields.iter().position(|(own, _)| is_it(own))?;
            Some((index, fields[index].1))
        };
        let steps = described.iter().map(|f| (f.ty.clone(), slot(&f.name)));
        let steps = steps.collect();
        Some(Self { decode, steps })
    }

    pub(crate) fn decode<'a>(
        &self,
        payload: &'a [u8],
        pointer_size: PointerSize,
    ) -> Result<UniversalEvent<'a>, DecodeError> {
        let mut c = Cursor::plain(payload, pointer_size);
        let mut slots = [Slot::Empty; 6];
        for (ty, slot) in &*self.steps {
            match *slot {
                Some((index, true)) => slots[index] = Slot::Text(text(&mut c, ty)?),
                Some((index, false)) => slots[index] = Slot::Number(number(&mut c, ty)?),
                None => skip(&mut c, ty)?,
            }
        }
        (self.decode)(slots)
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
        match self {
            Self::ExistingProcess(event) | Self::ProcessCreate(event) => event.list(out),
            Self::ProcessExit => {}
            Self::ProcessMapping(event) => event.list(out),
            Self::ProcessSymbol(event) => event.list(out),
            Self::ProcessMappingMetadata(event) => event.list(out),
            Self::Sample(event) => event.value.list("Value", Style::Plain, out),
        }
    }
}
