//! Reads EventPipe traces: `.nettrace` V4 to V6 and `.netperf` V1 to V3, from any [`Read`](std::io::Read).
//!
//! [`Reader`] goes through a trace from front to back and hands out one [`Region`] at a time: [`Record`]s with their
//! payloads still in bytes, and the stacks ([`Addresses`], leaf first) that they refer to. What the events mean is not its business; the
//! [`EventType`] of a record says who wrote it and, where the trace describes it, which [`Field`]s the payload has.
//!
//! ```
//! use chronosym_nettrace::{Error, Reader};
//!
//! # fn read(source: impl std::io::Read) -> Result<u64, Error> {
//! let mut reader = Reader::new(source)?;
//! let mut payload_bytes = 0;
//! while let Some(region) = reader.next_region()? {
//!     payload_bytes += region.records().map(|record| record.payload.len() as u64).sum::<u64>();
//! }
//! if !reader.diagnostics().is_clean() {
//!     eprintln!("{:?}", reader.diagnostics());
//! }
//! # Ok(payload_bytes) }
//! # let trace = b"\x14\0\0\0!FastSerialization.1";
//! # assert_eq!(read(trace.as_slice()).unwrap(), 0);
//! ```
//!
//! # The format in short
//!
//! A trace is a sequence of *blocks*. In V3 and V4 each is wrapped in an object of the FastSerialization container: begin
//! tags, a type name such as `EventBlock`, a size, padding to a multiple of four, the content, an end tag. V6 has a size
//! and a kind instead. (Files that are called V5 say 4 on disk; they only know more about their metadata.)
//!
//! - A *trace* block stands first: wall-clock time, raw clock and its frequency, pointer size, process.
//! - *Metadata* defines event types: an id that is valid in this file, provider, event id, version, perhaps a name and
//!   fields. Events refer to it by that id; [`EventTypeIndex`] stands for it here.
//! - *Event* blocks hold events. Their headers are compressed: each gives what differs from the one before.
//! - *Stack* blocks give each distinct stack an id, which is valid until the next sequence point.
//! - A *sequence point* ends a region: each event before it is older than every event after it. Inside a region the
//!   events of one thread are in order, those of different threads are not. It also says how many events each thread
//!   has written, by which dropped ones are noticed.
//! - V6 adds *threads*, to which events refer by index, and *label lists*: activity ids, overrides, key-value pairs.
//!
//! Netperf V3 has event blocks only, with whole headers and the stack in each event; in V1 and V2 the events follow each
//! other without blocks. They are in time order as they stand.
//!
//! The layouts follow Microsoft's published descriptions of the formats, checked against files from .NET Core 2.1 to
//! .NET 10 and from one-collect's `record-trace`. No file of netperf V1 was at hand, and V6 blocks of removed threads and
//! uncompressed events have only been read from synthetic files.
//!
//! # Damage
//!
//! No length, offset or count of a file is believed. A bad record costs what stands behind it in its block, a bad block
//! costs itself, a file without its end is read as far as it goes. Where a block does not end before another one, its size
//! is wrong, and the next block is looked for: an object by its type name, a V6 block by the two that follow it. Stack ids
//! are forgotten then, since a sequence point, behind which they begin anew, may be among what was lost. Bare events of
//! netperf V1 and V2 have nothing to find them by. [`Diagnostics::gaps`] says where and why, each byte once. An [`Error`]
//! means that there is no trace to read or that the source failed.
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
mod blocks;
mod clock;
mod decoder;
mod diagnostics;
mod error;
mod event_type;
mod fault;
mod field;
mod header;
mod label;
mod netperf;
mod numbered;
mod objects;
mod open;
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
pub use stack::StackRow;
pub use thread::Thread;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
