//! Reads CPU profiles of Linux: `perf.data`, jitdump, and the text of `perf script`; on any operating system, of either
//! order of bytes, from any [`Read`](std::io::Read).
//!
//! [`Reader`] hands out the [`Record`]s of a `perf.data` in the order of their times; [`jitdump`] says what a runtime
//! compiled, [`script`] reads what `perf` printed. What stands at an address is not their business.
//!
//! ```no_run
//! use chronosym_perf::{Event, Options, Reader};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut reader = Reader::open(std::fs::File::open("perf.data")?, Options::default())?;
//! while let Some(record) = reader.next_record()? {
//!     let Event::Sample(sample) = record.event else { continue };
//!     println!("{:?} ns, thread {:?}", record.time_ns, record.tid);
//!     for part in sample.callchain.iter().flat_map(|chain| chain.parts()) {
//!         println!("    {:?} {:x?}", part.mode, part.addresses.iter().collect::<Vec<_>>());
//!     }
//! }
//! eprintln!("{:?}", reader.diagnostics());
//! # Ok(()) }
//! ```
//!
//! # The format in short
//!
//! A recording is a sequence of records. In *file form* a header points to them, to the attributes that say what was
//! recorded, and to *feature sections* behind them: machine, clock, build ids. In *pipe form* these are records, too,
//! numbered from 64 up; the kernel's own have lower numbers.
//!
//! The fields of a sample depend on the attribute that it belongs to. Other records end in a trailer that says which
//! thread was running and when.
//!
//! Each processor's records stand in order, in pieces. The recorder marks the end of each *round* over all processors;
//! what follows a mark is not older than what came before the mark before. So the reader holds two rounds at a time, or
//! as much as [`Options::round_limit`] allows. Compressed records are one zstd stream without an end.
//!
//! # Damage
//!
//! No size, offset or count of a file is believed. A record whose content does not fit costs itself. Where no record can be,
//! the next ones are looked for, by types, sizes and times; what lies between is a [`Gap`], as is what a file without its end
//! lacks. [`Diagnostics`] has it all. An [`Error`] means
//! that there is nothing to read or that the source failed.
//!
//! Layouts follow the kernel's headers and perf's own descriptions, checked against what perf 6.1 prints of the same
//! recordings. The other order of bytes, guests, hardware traces, eBPF programs and frames that follow later have only been read from synthetic files.
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

mod attr;
mod bytes;
mod callchain;
mod compressed;
mod decode;
mod diagnostics;
mod error;
mod header;
mod info;
pub mod jitdump;
mod kind;
mod raw;
mod reader;
mod record;
mod round;
mod sample;
pub mod script;

pub use attr::EventAttr;
pub use bytes::Words;
pub use callchain::{Callchain, ChainPart, ChainParts};
pub use chronosym_types::{ByteOrder, Gap, GapCause, Gaps};
pub use diagnostics::Diagnostics;
pub use error::Error;
pub use info::{BuildIdEntry, ClockData, Info, TimeConversion};
pub use kind::{event_type, record_name};
pub use raw::CpuMode;
pub use reader::{Options, Reader};
pub use record::{BuildId, Comm, Event, KernelSymbol, MappedFile, Mmap, Record, Task};
pub use sample::{Registers, Sample};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
