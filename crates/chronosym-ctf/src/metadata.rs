//! The types of a trace's packets and events.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "names are numbered as they come, in at most 16 MiB; ns fit into 128 bits"
)]

use std::sync::Arc;

use chronosym_types::ByteOrder;
use chronosym_types::hash::HashMap;

use crate::types::{Kind, NameId, Scalar, Type};

/// The metadata of a trace.
///
/// LTTng writes it as text in packets, in the Trace Stream Description Language of CTF 1.8; plain
/// text is accepted, too.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) order: ByteOrder,
    pub(crate) packet_header: Option<Arc<Type>>,
    pub(crate) streams: HashMap<u64, StreamType>,
    /// Index of an event type, by the ids of stream and event.
    pub(crate) by_id: HashMap<(u64, u64), usize>,
    pub(crate) registers: u32,
    pub(crate) names: NameTable,
    /// Name of the field with an event's id.
    pub(crate) id_name: Option<NameId>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) clock: Clock,
    pub(crate) event_types: Vec<EventType>,
    pub(crate) bad_definitions: u64,
}

/// Interned names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    all: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NameId>,
}

impl NameTable {
    pub fn intern(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let (id, name): (_, Arc<str>) = (NameId(self.all.len() as u32), name.into());
        self.all.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    pub fn find(&self, name: &str) -> Option<NameId> {
        self.ids.get(name).copied()
    }

    pub fn get(&self, id: NameId) -> &Arc<str> {
        &self.all[id.0 as usize]
    }
}

/// The parts of packets and events that are the same for a whole stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamType {
    pub packet_context: Option<Arc<Type>>,
    pub event_header: Option<Arc<Type>>,
    pub event_context: Option<Arc<Type>>,
}

/// The clock of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clock {
    /// Its name: `monotonic` is `CLOCK_MONOTONIC` of Linux.
    pub name: String,
    /// Identifies the clock of one machine and boot.
    pub uuid: Option<String>,
    /// Ticks a second.
    pub frequency: u64,
    /// ns since 1970-01-01 UTC at tick 0.
    pub wall_ns: i128,
}

impl Clock {
    /// Converts ticks to ns since tick 0.
    pub fn ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// An event type that the metadata declares.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventType {
    /// `PROVIDER:EVENT` in user space, `EVENT` in the kernel.
    pub name: String,
    /// The id of the stream that it belongs to.
    pub stream_id: u64,
    /// Its id in that stream.
    pub id: u64,
    /// Its fields, in order.
    pub fields: Vec<FieldType>,
    pub(crate) context_type: Option<Arc<Type>>,
    pub(crate) fields_type: Option<Arc<Type>>,
}

/// A field that the metadata declares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldType {
    /// Its name, without the leading underscore that the tracer adds.
    pub name: Arc<str>,
    /// Its content.
    pub holds: Holds,
    /// Whether it is the length of a later field.
    pub is_length: bool,
}

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holds {
    /// One number.
    Number(NumberType),
    /// Text.
    Text,
    /// Consecutive numbers.
    List(NumberType),
    /// Structs, variants, and lists of them, whose fields are delivered one after another.
    Others,
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumberType {
    /// Its width, 1 to 64.
    pub bits: u32,
    /// It may be negative.
    pub is_signed: bool,
    /// It is a floating-point number.
    pub is_float: bool,
    /// It is displayed in hex.
    pub is_hex: bool,
}

impl From<&Scalar> for NumberType {
    fn from(scalar: &Scalar) -> Self {
        NumberType {
            bits: scalar.bits,
            is_signed: scalar.kind == Kind::Signed,
            is_float: scalar.kind == Kind::Float,
            is_hex: scalar.is_hex,
        }
    }
}

impl Metadata {
    /// Returns a property of the tracer's environment: `hostname`, `domain`,
    /// `architecture_bit_width`.
    pub fn env(&self, name: &str) -> Option<&str> {
        let property = self.env.iter().find(|(own, _)| own == name);
        property.map(|(_, value)| &**value)
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the declared event types.
    pub fn event_types(&self) -> &[EventType] {
        &self.event_types
    }

    /// Definitions that could not be parsed.
    pub fn bad_definitions(&self) -> u64 {
        self.bad_definitions
    }

    pub(crate) fn name(&self, id: NameId) -> &str {
        self.names.get(id)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            name: String::new(),
            uuid: None,
            frequency: 1_000_000_000,
            wall_ns: 0,
        }
    }
}
