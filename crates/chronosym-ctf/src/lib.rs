//! Reads what LTTng records: traces in the Common Trace Format 1.8, of user space and of the kernel; on any operating
//! system, of either order of bytes, from any [`Read`](std::io::Read).
//!
//! A trace is a folder: the file `metadata` says what the events look like, the other files are streams, one for each
//! processor and channel. [`Metadata`] reads the first, [`Reader`] merges the events of the streams by their times. What
//! events mean is not their business.
//!
//! ```no_run
//! use std::fs::File;
//!
//! use chronosym_ctf::{Metadata, Options, Reader, Source};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let metadata = Metadata::parse(&std::fs::read("trace/metadata")?, Options::default())?;
//! let streams = vec![File::open("trace/channel0_0")?, File::open("trace/channel0_1")?];
//! let mut reader = Reader::new(Source { traces: vec![metadata], streams }, Options::default())?;
//! while let Some(event) = reader.next_event()? {
//!     println!("{} ns {} {:?} {:?}", event.time_ns, event.event_type.name, event.context, event.fields);
//! }
//! eprintln!("{:?}", reader.diagnostics());
//! # Ok(()) }
//! ```
//!
//! # The format in short
//!
//! A stream is a sequence of *packets*. Each has a header that names its trace by a UUID, and a context with its size, the
//! size of its content, the times at which it begins and ends, its number, and how many events the recorder had no room for
//! until then. Behind them stand events: an id with the low bits of the time, or both in full where they do not fit; the
//! context that the tracer was asked for; the fields. Each type says how wide it is and how it is aligned, in bits from the
//! start of the packet. The metadata describes all of these types in a language of its own.
//!
//! # Bounds
//!
//! One packet of each stream is held, as far as it arrived, no more of it than [`Options::packet_limit`], what was read ahead, and of
//! all together no more than [`Options::open_limit`]. Nothing is allocated for an event once its largest kind was seen. Types with
//! more than 4,096 fields or 32 levels are refused, and so is what declares far more than its text can mean; a packet is read in 64
//! steps a byte.
//!
//! # Damage
//!
//! No size or count is believed. An event that does not fit its packet, or is of an unknown type, costs the rest of that
//! packet; a definition that cannot be read costs itself; [`Diagnostics`] counts it all. An [`Error`] means that there is
//! nothing to read or that a source failed.
//!
//! The layouts follow the specification of CTF 1.8 and were checked against traces of lttng 2.11 on x86-64. Numbers with the
//! high byte first have only been read from synthetic traces.
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
