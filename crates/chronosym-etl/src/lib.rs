//! A portable reader of Windows ETW traces (.etl).
//!
//! # The format, in brief
//!
//! An .etl file is a sequence of *buffers*: 72 bytes of header, then records. Each CPU of the recorded machine fills
//! buffers of its own, and a full one is appended to the file, so records are in time order within the buffers of one CPU
//! and nowhere else. The header says how many bytes the buffer takes in the file, how many of them are valid, which CPU
//! filled it, whether events were lost around it, and whether what follows is compressed: one XPRESS LZ77 stream.
//!
//! *Records* begin at multiples of 8 bytes. Their first four bytes tell the kind of header: the kernel has three short
//! ones, which name an event by a group and an opcode (the groups stand for the class GUIDs of classic events); classic
//! user-mode events carry the class GUID itself; manifest, TraceLogging and EventSource events carry provider GUID, id and
//! version, and may have *extended items* before their payload: call stacks, activities, schemas. The kind also tells the
//! pointer size of the payload, which differs between processes of one trace.
//!
//! The first record is the log file header: what was recorded, when, and by which clock. Times count ticks of that clock;
//! [`Clock`] turns them into nanoseconds since the start and into UTC.
//!
//! [`EtlReader`] walks over the buffer headers first, then opens buffers as their records are due: memory holds about one
//! decompressed buffer for each CPU, whatever the size of the file.
//!
//! # Damage
//!
//! Sessions end in power cuts, disks fill up, files are cut off in transit. Only a file without a readable log file header
//! is refused. All else is read as far as it goes, and [`Diagnostics`] says what is missing and where; nothing panics, and
//! no length in a file is trusted. Where no buffer follows another, the next one is looked for from inside the one before,
//! whose size may be the damage: a header is known by one more, or the end of the file, behind its buffer.
//!
//! # Example
//! ```
//! use chronosym_etl::{EtlReader, EventKey};
//! # use chronosym_support::etl::{At, EtlWriter, Options};
//! # let mut w = EtlWriter::new(Vec::new(), Options::default())?;
//! # w.sample(At::ms(1), 0x40_0000, 7)?;
//! # let file: Vec<u8> = w.finish()?;
//! let mut reader = EtlReader::open(file.as_slice())?; // or a std::fs::File
//! let mut samples = 0;
//! while let Some(record) = reader.next_record() {
//!     if let EventKey::Classic { class, opcode: 46, .. } = record.key {
//!         assert_eq!(class.to_string(), "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc"); // PerfInfo/SampledProfile
//!         samples += 1;
//!     }
//! }
//! assert_eq!(samples, 1);
//! assert!(!reader.diagnostics().is_damaged());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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

mod buffer;
mod clock;
mod diagnostics;
mod error;
mod extended;
mod header;
mod provider_traits;
mod reader;
mod record;
mod scan;
mod source;
mod xpress;

pub use chronosym_types::{
    Addresses, Gap, GapCause, GapTotal, Gaps, Guid, PointerSize, TraceLoggingSchema,
};
pub use clock::{Clock, ClockType, filetime_to_unix_ns};
pub use diagnostics::Diagnostics;
pub use error::EtlError;
pub use extended::{ExtendedItem, ExtendedItems, Stack, StackKey};
pub use header::{LogFileMode, TraceHeader};
pub use provider_traits::ProviderTraits;
pub use reader::EtlReader;
pub use record::{EventKey, Record, RecordKind};
pub use source::ReadAt;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
