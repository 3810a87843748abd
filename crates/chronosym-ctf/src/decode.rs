//! Decodes the bits of a packet by their types.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "registers are numbered by the parser; places are those of what was just read"
)]

use crate::bits::{Bits, OutOfBounds, signed};
use crate::metadata::Metadata;
use crate::types::{NameId, Register, Scalar, Type};
use crate::value::{DecodedField, Location};

/// Maximum number of values of an event; a list of structs could have as many as it has bits.
const MAX_FIELDS: usize = 1 << 16;

/// Steps that decoding a packet may take for each of its bytes, and in any case. A field without
/// bits is a step as well.
const STEPS_PER_BYTE: u64 = 64;
const FREE_STEPS: u64 = 1 << 16;

/// Why an event or a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It exceeds the packet's content.
    OutOfBounds,
    /// Its type is not declared, or no option of a variant matches its tag.
    Unknown,
}

impl From<OutOfBounds> for Fault {
    fn from(_: OutOfBounds) -> Self {
        Fault::OutOfBounds
    }
}

/// The values decoded last. Their memory is reused.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub fields: Vec<DecodedField>,
    /// Values that later fields depend on, of the stream being read.
    pub registers: Vec<i128>,
    steps: u64,
}

impl Decoded {
    pub fn clear(&mut self, metadata: &Metadata) {
        self.fields.clear();
        // Each is written before it is read.
        self.registers.resize(metadata.registers as usize, 0);
    }

    /// Starts a packet of this many bytes.
    pub fn start_packet(&mut self, bytes: usize) {
        self.steps = STEPS_PER_BYTE
            .saturating_mul(bytes as u64)
            .saturating_add(FREE_STEPS);
    }

    fn step(&mut self, count: u64) -> Result<(), Fault> {
        self.steps = self.steps.checked_sub(count).ok_or(Fault::OutOfBounds)?;
        Ok(())
    }

    /// Decodes a value called `name`, with all nested values.
    pub fn read(&mut self, bits: &mut Bits<'_>, ty: &Type, name: NameId) -> Result<(), Fault> {
        self.step(1)?;
        match ty {
            Type::Scalar(scalar) | Type::Enum(scalar, _) => {
                let value = bits.scalar(scalar)?;
                self.push(name, Location::Number(*scalar, value))?;
            }
            Type::Text => {
                let text = bits.text()?;
                let end = (bits.at / 8) as usize - 1;
                self.push(name, Location::Text(end - text.len(), end))?;
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
                let matching = variant.options.iter().position(fits);
                self.step(matching.unwrap_or(variant.options.len()) as u64)?;
                let option = matching.and_then(|matching| variant.options.get(matching));
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
            return self.push(name, Location::List(*scalar, at, length));
        }
        (0..length).try_for_each(|_| self.read(bits, element, name))
    }

    fn push(&mut self, name: NameId, location: Location) -> Result<(), Fault> {
        if self.fields.len() >= MAX_FIELDS {
            return Err(Fault::OutOfBounds);
        }
        self.fields.push(DecodedField { name, location });
        Ok(())
    }

    /// Keeps the last number for the fields that depend on it.
    fn keep(&mut self, register: Register) {
        if let Some(Location::Number(scalar, value)) =
            self.fields.last().map(|field| field.location)
        {
            self.registers[register.0 as usize] = signed(&scalar, value);
        }
    }

    fn register(&self, register: Register) -> i128 {
        self.registers[register.0 as usize]
    }

    /// Returns the last number called `name` among the fields from an index on.
    pub fn number(&self, from: usize, name: Option<NameId>) -> Option<u64> {
        self.fields[from..]
            .iter()
            .rev()
            .find_map(|field| match field.location {
                Location::Number(_, value) if Some(field.name) == name => Some(value),
                _ => None,
            })
    }

    /// Returns the last timestamp.
    pub fn clock(&self) -> Option<(Scalar, u64)> {
        self.fields
            .iter()
            .rev()
            .find_map(|field| match field.location {
                Location::Number(scalar, value) if scalar.is_clock => Some((scalar, value)),
                _ => None,
            })
    }
}
