//! One payload of every event type and version, from encoders that are independent of the decoders,
//! with the expected text of its fields.

pub mod clr;
pub mod kernel;

use chronosym_events::{EventKey, EventSchema, PointerSize, RawEvent};

/// An event type with its payloads.
pub struct Case {
    /// Who it is; the version is filled in.
    pub key: fn(u32) -> EventKey,
    /// The published name.
    pub name: &'static str,
    /// Every version that has a layout of its own.
    pub versions: std::ops::RangeInclusive<u32>,
    /// The payload of a version and pointer width.
    pub encode: fn(u32, usize) -> Vec<u8>,
    /// The fields of a version; `;V1 …` starts the fields that version 1 appends or changes.
    pub fields: fn(u32) -> String,
    /// Lengths at which the payload may end too: before optional fields, or between elements of an
    /// open list.
    pub may_end: fn(u32, usize) -> Vec<usize>,
}

/// All of them.
pub fn all() -> Vec<Case> {
    clr::cases().into_iter().chain(kernel::cases()).collect()
}

/// The key without its version.
pub fn identity(key: &EventKey) -> String {
    match key {
        EventKey::Manifest { provider, id, .. } => format!("{provider}/{id}"),
        EventKey::Classic { class, opcode, .. } => format!("{class}/{opcode}"),
        EventKey::Named { provider, name } => format!("{provider}/{name}"),
    }
}

/// The width as the crate has it.
pub fn width(bytes: usize) -> PointerSize {
    if bytes == 4 {
        PointerSize::Four
    } else {
        PointerSize::Eight
    }
}

/// An event around a payload.
pub fn raw<'a>(schema: &'a EventSchema, payload: &'a [u8], pointer_bytes: usize) -> RawEvent<'a> {
    RawEvent {
        time_ns: 0,
        process_id: None,
        thread_id: None,
        processor: None,
        pointer_size: width(pointer_bytes),
        schema,
        payload,
    }
}
