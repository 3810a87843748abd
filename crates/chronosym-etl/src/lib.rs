//! A portable reader of Windows ETW traces (.etl).
#![deny(missing_docs)]

mod buffer;
mod bytes;
mod clock;
mod diagnostics;
mod error;
mod extended;
mod guid;
mod header;
mod reader;
mod record;
mod scan;
mod source;
mod tracelogging;
mod xpress;

pub use clock::{Clock, ClockType, filetime_to_unix_ns};
pub use diagnostics::Diagnostics;
pub use error::EtlError;
pub use extended::{Addresses, ExtendedItem, ExtendedItems, Stack, StackKey};
pub use guid::Guid;
pub use header::{LogFileMode, TraceHeader};
pub use reader::EtlReader;
pub use record::{EventKey, PointerSize, Record, RecordKind};
pub use source::ReadAt;
pub use tracelogging::{Count, Field, IN_TYPE_STRUCT, ProviderTraits, Schema};
