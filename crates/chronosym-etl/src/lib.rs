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

mod ahead;
mod buffer;
mod clock;
mod diagnostics;
mod error;
mod extended;
mod header;
mod merge;
mod options;
mod reader;
mod record;
mod scan;
mod source;
mod xpress;

pub use chronosym_types::{
    AStr, Addresses, Gap, GapCause, GapTotal, Gaps, Guid, PointerSize, TraceLoggingSchema,
};
pub use clock::{Clock, ClockType};
pub use diagnostics::Diagnostics;
pub use error::Error;
pub use extended::{ExtendedItem, ExtendedItems, Stack, StackKey};
pub use header::{LogFileMode, TraceHeader};
pub use options::Options;
pub use reader::Reader;
pub use record::{EventKey, Record, RecordKind};
pub use scan::is_etl;
pub use source::ReadAt;
