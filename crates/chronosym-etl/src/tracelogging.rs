//! TraceLogging: events whose extended items describe their fields (layout: `TraceLoggingProvider.h`).

use std::borrow::Cow;

use crate::bytes::{guid_at, u16_at};
use crate::{Guid, PointerSize};

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
    bytes: &'a [u8],
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
        Some(Self {
            bytes: data,
            tags,
            name,
            fields,
        })
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

    /// Shows `show` the bytes of every value in `payload` with its field and how many structs it is in: each element of
    /// an array by itself, text without its length or NUL, a struct (before its members) without bytes.
    ///
    /// Returns whether the payload held all of the fields. `pointer_size` is the record's.
    pub fn values(
        &self,
        payload: &'a [u8],
        pointer_size: PointerSize,
        mut show: impl FnMut(usize, &Field<'a>, &'a [u8]),
    ) -> bool {
        let mut walk = Walk {
            rest: payload,
            pointer_size,
            left: MAX_VALUES,
            show: &mut show,
        };
        let mut fields = self.fields;
        while !fields.is_empty() {
            let Some(()) = walk.field(&mut fields, 0) else {
                return false;
            };
        }
        true
    }

    /// Bytes of the event's name and of its fields: what tells this schema from others of its provider.
    pub fn identity(&self) -> (&'a [u8], &'a [u8]) {
        (self.name, self.fields)
    }

    /// The extended item's data as it is, for other decoders.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Field<'a> {
    /// Name of the field.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }
}

/// Structs in structs, at most.
const MAX_DEPTH: usize = 16;
/// Values of one event, at most: arrays of structs without members take no bytes.
const MAX_VALUES: usize = 1 << 16;

/// A walk over a payload, led by a schema.
struct Walk<'a, 's> {
    rest: &'a [u8],
    pointer_size: PointerSize,
    left: usize,
    show: &'s mut dyn FnMut(usize, &Field<'a>, &'a [u8]),
}

impl<'a> Walk<'a, '_> {
    /// Takes one field off `fields` (a struct with its members) and its values off the payload.
    fn field(&mut self, fields: &mut &'a [u8], depth: usize) -> Option<()> {
        let field = take_field(fields)?;
        let members = *fields;
        if field.in_type == IN_TYPE_STRUCT {
            skip_members(fields, field.out_type, depth + 1)?;
        }
        let count = match field.count {
            Count::One => 1,
            Count::Fixed(count) => count,
            Count::Counted => u16::from_le_bytes(take_array(&mut self.rest)?),
            Count::Custom(_) => {
                let size = u16::from_le_bytes(take_array(&mut self.rest)?);
                let value = self.take(size.into())?;
                (self.show)(depth, &field, value);
                return Some(());
            }
        };
        for _ in 0..count {
            self.left = self.left.checked_sub(1)?;
            if field.in_type == IN_TYPE_STRUCT {
                (self.show)(depth, &field, &[]);
                let mut members = members;
                for _ in 0..field.out_type {
                    self.field(&mut members, depth + 1)?;
                }
            } else {
                let value = self.value(field.in_type)?;
                (self.show)(depth, &field, value);
            }
        }
        Some(())
    }

    fn value(&mut self, in_type: u8) -> Option<&'a [u8]> {
        let size = match in_type {
            0 => 0,
            1 => {
                let (units, _) = self.rest.as_chunks::<2>();
                let value = self.take(2 * units.iter().position(|unit| *unit == [0; 2])?)?;
                self.take(2)?;
                return Some(value);
            }
            2 => {
                let value = self.take(self.rest.iter().position(|byte| *byte == 0)?)?;
                self.take(1)?;
                return Some(value);
            }
            3 | 4 => 1,
            5 | 6 => 2,
            7 | 8 | 11 | 13 | 20 => 4,
            9 | 10 | 12 | 17 | 21 => 8,
            15 | 18 => 16,
            14 | 22 | 23 | 25 => usize::from(u16::from_le_bytes(take_array(&mut self.rest)?)),
            16 => self.pointer_size.bytes(),
            // A SID holds 8 bytes and as many u32 as its second byte says.
            19 => 8 + 4 * usize::from(*self.rest.get(1)?),
            _ => return None,
        };
        self.take(size)
    }

    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (value, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(value)
    }
}

fn skip_members(fields: &mut &[u8], count: u8, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    for _ in 0..count {
        let member = take_field(fields)?;
        if member.in_type == IN_TYPE_STRUCT {
            skip_members(fields, member.out_type, depth + 1)?;
        }
    }
    Some(())
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (value, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*value)
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
