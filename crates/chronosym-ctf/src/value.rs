//! Values of an event.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "positions that the decoder found in the packet; values of the width that was read"
)]

use chronosym_types::ByteOrder;

use crate::bits::{Bits, signed};
use crate::metadata::Metadata;
use crate::types::{Kind, NameId, Scalar};

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// Text up to its NUL, in the tracer's encoding.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Consecutive numbers other than bytes.
    List(List<'a>),
}

impl Value<'_> {
    /// Returns the number, unless it is negative or not an integer.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => value.try_into().ok(),
            _ => None,
        }
    }
}

/// Consecutive numbers.
#[derive(Clone, Copy)]
pub struct List<'a> {
    bits: Bits<'a>,
    scalar: Scalar,
    count: u64,
}

impl<'a> List<'a> {
    /// Number of values.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over the values.
    pub fn iter(&self) -> impl Iterator<Item = Value<'static>> + use<'a> {
        let (mut bits, scalar) = (self.bits, self.scalar);
        (0..self.count)
            .map_while(move |_| bits.scalar(&scalar).ok().map(|raw| number(&scalar, raw)))
    }
}

impl std::fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for List<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.iter().eq(other.iter())
    }
}

/// A decoded field: positions in the packet, so that nothing is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecodedField {
    pub name: NameId,
    pub location: Location,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Location {
    Number(Scalar, u64),
    /// Start and end of the bytes in the packet.
    Text(usize, usize),
    /// Start bit and count of the numbers.
    List(Scalar, u64, u64),
}

/// The fields of an event, in order. Fields of structs, variants and arrays are flattened.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub(crate) fields: &'a [DecodedField],
    pub(crate) packet: &'a [u8],
    pub(crate) metadata: &'a Metadata,
}

impl<'a> Fields<'a> {
    /// Iterates over names, without the leading underscore that the tracer adds, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let all = *self;
        all.fields
            .iter()
            .map(move |field| (all.metadata.name(field.name), all.value(field.location)))
    }

    /// Returns the first field with a name.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.iter()
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    }

    fn value(&self, location: Location) -> Value<'a> {
        let (packet, order) = (self.packet, self.metadata.order);
        match location {
            Location::Number(scalar, raw) => number(&scalar, raw),
            Location::Text(from, to) => Value::Text(&packet[from..to]),
            Location::List(scalar, at, count) => list(packet, order, scalar, at, count),
        }
    }
}

impl std::fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

fn number(scalar: &Scalar, raw: u64) -> Value<'static> {
    match scalar.kind {
        Kind::Unsigned => Value::Unsigned(raw),
        Kind::Signed => Value::Signed(signed(scalar, raw) as i64),
        Kind::Float if scalar.bits == 32 => Value::Float(f32::from_bits(raw as u32).into()),
        Kind::Float => Value::Float(f64::from_bits(raw)),
    }
}

/// Decodes consecutive numbers; characters and bytes are borrowed.
fn list(packet: &[u8], order: ByteOrder, scalar: Scalar, at: u64, count: u64) -> Value<'_> {
    let is_bytes = scalar.bits == 8 && scalar.align <= 8 && at.is_multiple_of(8);
    if is_bytes && scalar.kind != Kind::Float {
        let from = (at / 8) as usize;
        let bytes = &packet[from..from + count as usize];
        return match scalar.is_text {
            true => Value::Text(bytes.split(|&byte| byte == 0).next().unwrap_or_default()),
            false => Value::Bytes(bytes),
        };
    }
    let bits = Bits {
        bytes: packet,
        at,
        order,
    };
    Value::List(List {
        bits,
        scalar,
        count,
    })
}
