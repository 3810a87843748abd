//! From the bits of a packet to values, as their types say.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "registers are numbered by the parser; places are those of what was just read"
)]

use crate::bits::{Bits, OutOfRoom, signed};
use crate::metadata::Metadata;
use crate::types::{NameId, Register, Scalar, Type};
use crate::value::{Item, Slot};

/// Values of an event beyond which it is damage: lists of structs could have as many as they have bits.
const MOST_ITEMS: usize = 1 << 16;

/// Steps that the events of a packet may take: so many for each of its bytes, and what the smallest one may. A field that has
/// no bits is a step as well.
const STEPS_OF_A_BYTE: u64 = 64;
const FREE_STEPS: u64 = 1 << 16;

/// Why an event or a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not end in the packet's content.
    OutOfRoom,
    /// It is of a type that is not declared, or holds a value that none of its types is for.
    Unknown,
}

impl From<OutOfRoom> for Fault {
    fn from(_: OutOfRoom) -> Self {
        Fault::OutOfRoom
    }
}

/// What was read last, with its memory to be used again.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub items: Vec<Item>,
    /// Of all streams those of the one that is read.
    pub registers: Vec<i128>,
    steps: u64,
}

impl Decoded {
    pub fn clear(&mut self, metadata: &Metadata) {
        self.items.clear();
        // Each is written before it is read.
        self.registers.resize(metadata.registers as usize, 0);
    }

    /// Begins a packet of so many bytes.
    pub fn begin(&mut self, bytes: usize) {
        self.steps = STEPS_OF_A_BYTE
            .saturating_mul(bytes as u64)
            .saturating_add(FREE_STEPS);
    }

    fn step(&mut self, count: u64) -> Result<(), Fault> {
        self.steps = self.steps.checked_sub(count).ok_or(Fault::OutOfRoom)?;
        Ok(())
    }

    /// Reads a value that is called `name`, and all in it.
    pub fn read(&mut self, bits: &mut Bits<'_>, ty: &Type, name: NameId) -> Result<(), Fault> {
        self.step(1)?;
        match ty {
            Type::Scalar(scalar) | Type::Enum(scalar, _) => {
                let value = bits.scalar(scalar)?;
                self.push(name, Slot::Number(*scalar, value))?;
            }
            Type::Text => {
                let text = bits.text()?;
                let end = (bits.at / 8) as usize - 1;
                self.push(name, Slot::Text(end - text.len(), end))?;
            }
            Type::Struct(structure) => {
                bits.align(ty.align())?;
                for field in &structure.fields {
                    self.read(bits, &field.ty, field.name)?;
                    if let Some(register) = field.register {
                        self.keep(register);
                    }
                }
            }
            Type::Variant(variant) => {
                let tag = self.register(variant.tag);
                let fits = |(first, last, _): &(i128, i128, _)| (*first..=*last).contains(&tag);
                let found = variant.options.iter().position(fits);
                self.step(found.unwrap_or(variant.options.len()) as u64)?;
                let option = found.and_then(|found| variant.options.get(found));
                let (_, _, option) = option.ok_or(Fault::Unknown)?;
                self.read(bits, option, name)?;
            }
            Type::Array(element, length) => self.list(bits, element, *length, name)?,
            Type::Sequence(element, length) => {
                let length = u64::try_from(self.register(*length)).map_err(|_| Fault::Unknown)?;
                self.list(bits, element, length, name)?;
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        bits: &mut Bits<'_>,
        element: &Type,
        length: u64,
        name: NameId,
    ) -> Result<(), Fault> {
        bits.align(element.align())?;
        if let Type::Scalar(scalar) | Type::Enum(scalar, _) = element {
            let at = bits.at;
            bits.scalars(scalar, length)?;
            return self.push(name, Slot::List(*scalar, at, length));
        }
        (0..length).try_for_each(|_| self.read(bits, element, name))
    }

    fn push(&mut self, name: NameId, slot: Slot) -> Result<(), Fault> {
        if self.items.len() >= MOST_ITEMS {
            return Err(Fault::OutOfRoom);
        }
        self.items.push(Item { name, slot });
        Ok(())
    }

    /// Keeps the number that was read last for the fields that depend on it.
    fn keep(&mut self, register: Register) {
        if let Some(Slot::Number(scalar, value)) = self.items.last().map(|item| item.slot) {
            self.registers[register.0 as usize] = signed(&scalar, value);
        }
    }

    fn register(&self, register: Register) -> i128 {
        self.registers[register.0 as usize]
    }

    /// The number of a name among what was read from an item on; the last one if there are several.
    pub fn number(&self, from: usize, name: Option<NameId>) -> Option<u64> {
        self.items[from..]
            .iter()
            .rev()
            .find_map(|item| match item.slot {
                Slot::Number(_, value) if Some(item.name) == name => Some(value),
                _ => None,
            })
    }

    /// The number that counts with the clock.
    pub fn clock(&self) -> Option<(Scalar, u64)> {
        self.items.iter().rev().find_map(|item| match item.slot {
            Slot::Number(scalar, value) if scalar.is_clock => Some((scalar, value)),
            _ => None,
        })
    }
}
