//! Values of an event, as they are handed out.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "places that the decoder found in the packet; values of the width that was read"
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
    /// A number that may be negative.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
    /// Text up to its NUL; what encoding it has is for the tracer to say.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Other numbers in a row.
    List(List<'a>),
}

impl Value<'_> {
    /// The number, if it is one that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => value.try_into().ok(),
            _ => None,
        }
    }
}

/// Numbers in a row.
#[derive(Clone, Copy)]
pub struct List<'a> {
    bits: Bits<'a>,
    scalar: Scalar,
    count: u64,
}

impl<'a> List<'a> {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// They themselves.
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

/// What was read of a field: places in the packet, so that nothing is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub name: NameId,
    pub slot: Slot,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Number(Scalar, u64),
    /// Bytes from one place in the packet to another.
    Text(usize, usize),
    /// Numbers from a bit on.
    List(Scalar, u64, u64),
}

/// The fields of an event, in order. Those of structs stand in their place, so do those of variants and arrays.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub(crate) items: &'a [Item],
    pub(crate) packet: &'a [u8],
    pub(crate) metadata: &'a Metadata,
}

impl<'a> Fields<'a> {
    /// Names, without the underscore that the tracer puts before them, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let all = *self;
        all.items
            .iter()
            .map(move |item| (all.metadata.name(item.name), all.value(item.slot)))
    }

    /// The first field of a name.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.iter()
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    }

    fn value(&self, slot: Slot) -> Value<'a> {
        let (packet, order) = (self.packet, self.metadata.order);
        match slot {
            Slot::Number(scalar, raw) => number(&scalar, raw),
            Slot::Text(from, to) => Value::Text(&packet[from..to]),
            Slot::List(scalar, at, count) => list(packet, order, scalar, at, count),
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

/// Characters and bytes lie as they are.
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
