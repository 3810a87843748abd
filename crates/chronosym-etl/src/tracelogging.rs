//! TraceLogging: events whose extended items describe their fields (layout: `TraceLoggingProvider.h`).

use std::borrow::Cow;

use crate::Guid;
use crate::bytes::{guid_at, u16_at};

/// Name of a provider and what else it declared of itself.
#[derive(Clone, Copy, Debug)]
pub struct ProviderTraits<'a> {
    name: &'a [u8],
    traits: &'a [u8],
}

impl<'a> ProviderTraits<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        let (name, traits) = split_nul(sized(data)?)?;
        Some(Self { name, traits })
    }

    /// Name of the provider.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }

    /// Provider group, if it belongs to one.
    pub fn group(&self) -> Option<Guid> {
        const GROUP: u8 = 1;
        self.traits()
            .find(|(kind, _)| *kind == GROUP)
            .and_then(|(_, data)| guid_at(data, 0))
    }

    /// Type and data of every trait.
    pub fn traits(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = self.traits;
        std::iter::from_fn(move || {
            let size = usize::from(u16_at(rest, 0)?);
            let item = (*rest.get(2)?, rest.get(3..size)?);
            rest = &rest[size..];
            Some(item)
        })
    }
}

/// Name and fields of one TraceLogging event.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    tags: u32,
    name: &'a [u8],
    fields: &'a [u8],
}

/// How often a field's type is repeated in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Count<'a> {
    /// Once.
    One,
    /// As often as this.
    Fixed(u16),
    /// As often as the u16 before the values says.
    Counted,
    /// The provider's own format, with these bytes to describe it; a u16 byte length precedes the value.
    Custom(&'a [u8]),
}

/// One field of a TraceLogging event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    name: &'a [u8],
    /// Type in the payload (`TlgIn*`, 0 to 31): 1 UTF-16 and 2 8-bit NUL-terminated text, 3 to 10 the integers i8, u8,
    /// i16 … u64, 11 f32, 12 f64, 13 bool32, 14 binary, 15 GUID, 17 FILETIME, 18 SYSTEMTIME, 19 SID, 20 and 21 hexadecimal
    /// u32 and u64, 22 UTF-16 and 23 8-bit text after a u16 of bytes, 24 struct, 25 binary after a u16 of bytes.
    pub in_type: u8,
    /// How to show it (`TlgOut*`); of a struct, the number of the fields after it that are its own.
    pub out_type: u8,
    /// How often the type is repeated.
    pub count: Count<'a>,
    /// Tag bits of the provider.
    pub tags: u32,
}

/// [`Field::in_type`] of a struct.
pub const IN_TYPE_STRUCT: u8 = 24;

impl<'a> Schema<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        let mut rest = sized(data)?;
        let tags = take_tags(&mut rest)?;
        let (name, fields) = split_nul(rest)?;
        Some(Self { tags, name, fields })
    }

    /// Name of the event.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }

    /// Tag bits of the event.
    pub fn tags(&self) -> u32 {
        self.tags
    }

    /// The fields in payload order; a damaged one ends them. Those of a struct follow it.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + Clone + use<'a> {
        let mut rest = self.fields;
        std::iter::from_fn(move || {
            let field = take_field(&mut rest);
            if field.is_none() {
                rest = &[];
            }
            field
        })
    }

    /// Bytes that tell this schema from others of its provider: event name and fields.
    pub fn identity(&self) -> (&'a [u8], &'a [u8]) {
        (self.name, self.fields)
    }
}

impl<'a> Field<'a> {
    /// Name of the field.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<Field<'a>> {
    const CHAIN: u8 = 0x80;
    let (name, after) = split_nul(rest)?;
    *rest = after;
    let kind = take(rest)?;
    let (mut out_type, mut tags) = (0, 0);
    if kind & CHAIN != 0 {
        out_type = take(rest)?;
        if out_type & CHAIN != 0 {
            tags = take_tags(rest)?;
        }
    }
    let count = match kind & 0x60 {
        0 => Count::One,
        0x40 => Count::Counted,
        with_size => {
            let size = u16_at(rest, 0)?;
            *rest = &rest[2..];
            if with_size == 0x20 {
                Count::Fixed(size)
            } else {
                let (info, after) = rest.split_at_checked(size.into())?;
                *rest = after;
                Count::Custom(info)
            }
        }
    };
    Some(Field {
        name,
        in_type: kind & 0x1f,
        out_type: out_type & 0x7f,
        count,
        tags,
    })
}

/// A blob that begins with its own size; shorter data than that is taken as it is.
fn sized(data: &[u8]) -> Option<&[u8]> {
    let size = usize::from(u16_at(data, 0)?);
    data.get(2..size.min(data.len()))
}

fn split_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|b| *b == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

/// Up to four bytes of seven bits, the highest first; the top bit says that another one follows.
fn take_tags(rest: &mut &[u8]) -> Option<u32> {
    let mut tags = 0;
    for shift in [21, 14, 7, 0] {
        let byte = take(rest)?;
        tags |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(tags)
}
