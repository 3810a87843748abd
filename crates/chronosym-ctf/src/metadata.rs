//! What a trace says of itself: the types of its packets and events.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "names are numbered as they come, in at most 16 MiB; a packet has its header; ns fit into 128 bits"
)]

use std::sync::Arc;

use chronosym_types::ByteOrder;
use chronosym_types::hash::HashMap;

use crate::error::Error;
use crate::parser;
use crate::reader::Options;
use crate::types::{Kind, NameId, Scalar, Type};

/// The metadata of a trace.
///
/// LTTng writes it as text in packets, in the Trace Stream Description Language of CTF 1.8; the text alone will do, too.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pub(crate) uuid: Option<[u8; 16]>,
    pub(crate) order: ByteOrder,
    pub(crate) packet_header: Option<Arc<Type>>,
    pub(crate) streams: HashMap<u64, StreamType>,
    /// By the ids of stream and event: the place in the list.
    pub(crate) by_id: HashMap<(u64, u64), usize>,
    pub(crate) registers: u32,
    pub(crate) names: Names,
    /// What the id of an event is called, which each of them has.
    pub(crate) id_name: Option<NameId>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) clock: Clock,
    pub(crate) event_types: Vec<EventType>,
    pub(crate) bad_definitions: u64,
}

/// Names, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    all: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NameId>,
}

impl Names {
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
}

/// The parts of packets and events that are the same for a whole stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamType {
    pub packet_context: Option<Arc<Type>>,
    pub event_header: Option<Arc<Type>>,
    pub event_context: Option<Arc<Type>>,
}

/// What counts the time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clock {
    /// What it is called: `monotonic` is Linux' `CLOCK_MONOTONIC`.
    pub name: String,
    /// Tells the clocks of machines and boots apart.
    pub uuid: Option<String>,
    /// Ticks a second.
    pub frequency: u64,
    /// ns since 1970 at its 0.
    pub wall_ns: i128,
}

impl Clock {
    /// A time in ns since its 0.
    pub fn ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.frequency.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// An event that the metadata declares.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventType {
    /// `PROVIDER:EVENT` in user space; one word in the kernel.
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
    /// Its name, without the underscore that the tracer puts before it.
    pub name: Arc<str>,
    /// What it holds.
    pub holds: Holds,
    /// Whether it says how long a later field is.
    pub is_length: bool,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holds {
    /// One number.
    Number(NumberType),
    /// Text.
    Text,
    /// Numbers in a row.
    List(NumberType),
    /// Structs, variants, and lists of them, whose fields are handed out one after the other.
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
    /// It has a fraction.
    pub is_float: bool,
    /// It is shown in hex.
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
    /// Reads metadata. A definition that cannot be read is left out and counted.
    ///
    /// # Errors
    /// [`Error::NotMetadata`], [`Error::MetadataTooLong`], [`Error::UnsupportedVersion`], and [`Error::NothingDescribed`] if
    /// not one stream is declared.
    pub fn parse(bytes: &[u8], options: Options) -> Result<Self, Error> {
        if bytes.len() > options.metadata_limit {
            let limit = options.metadata_limit;
            return Err(Error::MetadataTooLong { limit });
        }
        let text = text_of(bytes)?;
        let (mut metadata, version) = parser::parse(&String::from_utf8_lossy(&text));
        if let Some((major, minor)) = version.filter(|&version| version != (1, 8)) {
            return Err(Error::UnsupportedVersion { major, minor });
        }
        if metadata.streams.is_empty() {
            return Err(Error::NothingDescribed);
        }
        for (at, event) in metadata.event_types.iter_mut().enumerate() {
            event.fields = fields(event.fields_type.as_deref(), &metadata.names);
            metadata.by_id.insert((event.stream_id, event.id), at);
        }
        metadata.id_name = metadata.names.find("id");
        Ok(metadata)
    }

    /// What the tracer says of machine and process, by its name: `hostname`, `domain`, `architecture_bit_width`.
    pub fn env(&self, name: &str) -> Option<&str> {
        let found = self.env.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| &**value)
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The events that may come.
    pub fn event_types(&self) -> &[EventType] {
        &self.event_types
    }

    /// Definitions that could not be read.
    pub fn bad_definitions(&self) -> u64 {
        self.bad_definitions
    }

    pub(crate) fn name(&self, id: NameId) -> &str {
        &self.names.all[id.0 as usize]
    }
}

/// What the fields of a type hold.
fn fields(ty: Option<&Type>, names: &Names) -> Vec<FieldType> {
    let Some(Type::Struct(structure)) = ty else {
        return Vec::new();
    };
    let described = structure.fields.iter().map(|field| FieldType {
        name: names.all[field.name.0 as usize].clone(),
        holds: match &*field.ty {
            Type::Scalar(scalar) | Type::Enum(scalar, _) => Holds::Number(scalar.into()),
            Type::Text => Holds::Text,
            Type::Array(element, _) | Type::Sequence(element, _) => match &**element {
                Type::Scalar(scalar) if scalar.is_text && scalar.bits == 8 => Holds::Text,
                Type::Scalar(scalar) | Type::Enum(scalar, _) => Holds::List(scalar.into()),
                _ => Holds::Others,
            },
            Type::Struct(_) | Type::Variant(_) => Holds::Others,
        },
        is_length: field.register.is_some() && matches!(*field.ty, Type::Scalar(_)),
    });
    described.collect()
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

/// The first bytes of a packet of metadata.
const MAGIC: u32 = 0x75d1_1d57;

/// The text in packets of metadata: u32 magic, 16 bytes UUID, u32 checksum, u32 bits of content, u32 bits of the packet, both
/// with this header of 37 bytes, u8 compression, encryption, checksum scheme, major, minor. Tokens may straddle packets.
fn text_of(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    const HEADER: usize = 37;
    let order = match bytes.first_chunk() {
        Some(magic) if u32::from_le_bytes(*magic) == MAGIC => ByteOrder::Little,
        Some(magic) if u32::from_be_bytes(*magic) == MAGIC => ByteOrder::Big,
        _ if bytes.starts_with(b"/* CTF 1.") => return Ok(bytes.to_vec()),
        _ => {
            let found = match bytes.len() {
                0 => "nothing: an empty file".to_owned(),
                _ => format!("\"{}\"", bytes[..bytes.len().min(8)].escape_ascii()),
            };
            return Err(Error::NotMetadata { found });
        }
    };
    let word =
        |packet: &[u8], at: usize| order.u32(packet[at..at + 4].try_into().unwrap_or_default());
    let (mut text, mut rest) = (Vec::new(), bytes);
    while rest.len() > HEADER && word(rest, 0) == MAGIC {
        let (content, packet) = (word(rest, 24) as usize / 8, word(rest, 28) as usize / 8);
        text.extend_from_slice(
            rest.get(HEADER..content.min(rest.len()))
                .unwrap_or_default(),
        );
        if packet <= HEADER {
            break;
        }
        rest = rest.get(packet..).unwrap_or_default();
    }
    Ok(text)
}

/// `e0fe85b7-b861-46a3-8c39-88de301a4385`, in the order in which it is written.
pub(crate) fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b'-').collect();
    let digits: [u8; 32] = digits.try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
