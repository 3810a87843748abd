//! Reads what LTTng records: traces in the Common Trace Format 1.8, of user space and of the
//! kernel, of either byte order, on any operating system, from any [`Read`](std::io::Read).
//!
//! A trace is a folder: the file `metadata` declares the event types, the other files are streams,
//! one for each processor and channel. [`Metadata`] parses the first, [`Reader`] merges the events
//! of the streams in time order: [`Reader::new`] has an example.
//!
//! # Format
//!
//! A stream is a sequence of *packets*. The header of a packet names its trace by UUID; its context
//! has the size of the packet and of its content, start and end times, a sequence number, and the
//! number of events discarded so far. Events follow: an id with the low bits of the time, or both
//! in full; the context that the tracer adds; the fields. Every type states its width and alignment
//! in bits, counted from the start of the packet. The metadata declares all types in a language of
//! its own.
//!
//! # Limits
//!
//! One packet of each stream is held, at most [`Options::packet_limit`] bytes of it, and at most
//! [`Options::open_limit`] bytes of all streams. Once the largest event type has been decoded,
//! events allocate nothing. Types with more than 4,096 fields or 32 levels of nesting are errors,
//! and so are texts that declare far more than their size warrants; decoding a packet takes at most
//! 64 steps per byte.
//!
//! # Damage
//!
//! Sizes and counts are checked. An event that exceeds its packet or has an unknown type ends that
//! packet; a definition that cannot be parsed is skipped; [`Diagnostics`] counts both. An [`Error`]
//! means that there is nothing to read or that a source failed.
//!
//! The layouts follow the specification of CTF 1.8 and were checked against traces of lttng 2.11 on
//! x86-64. Big-endian traces have been tested with synthetic traces only.
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

mod bits;
mod decode;
mod describe;
mod diagnostics;
mod error;
mod lexer;
mod metadata;
mod options;
mod parser;
mod reader;
mod stream;
mod types;
mod value;

pub use diagnostics::{Diagnostics, Loss};
pub use error::Error;
pub use metadata::{Clock, EventType, FieldType, Holds, Metadata, NumberType};
pub use options::Options;
pub use reader::{Event, Reader, Source};
pub use value::{Fields, List, Value};
