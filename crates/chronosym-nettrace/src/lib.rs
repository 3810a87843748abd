#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod blob;
mod blob_table;
mod blocks;
mod clock;
mod decoder;
mod diagnostics;
mod error;
mod event_type;
mod fault;
mod field;
mod framing;
mod header;
mod label;
mod netperf;
mod objects;
mod open;
mod plain;
mod reader;
mod region;
mod sequence;
mod stack;
mod thread;
mod walk;

pub use chronosym_types::time::SystemTime;
pub use chronosym_types::{
    Addresses, Field, FieldType, Gap, GapCause, GapTotal, Gaps, Guid, PointerSize,
};
pub use diagnostics::{Diagnostics, LossWindow, ThreadLoss};
pub use error::Error;
pub use event_type::{EventType, EventTypeIndex};
pub use header::{Format, TraceHeader};
pub use label::{Label, Labels};
pub use reader::{Options, Reader};
pub use region::{Count, Record, Records, Region};
pub use stack::StackIndex;
pub use thread::Thread;
