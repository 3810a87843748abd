//! Reads CPU profiles of Linux: `perf.data`, jitdump, and the output of `perf script`, of either
//! byte order, on any operating system, from any [`Read`](std::io::Read).
//!
//! [`Reader`] delivers the [`Record`]s of a `perf.data` in time order; [`jitdump`] reads a
//! runtime's records of compiled code, [`script`] reads text that `perf` printed. Addresses are not
//! resolved. [`Reader::new`] has an example.
//!
//! # Format
//!
//! A recording is a sequence of records. In *file form* a header points to them, to the attributes
//! that describe the recorded events, and to *feature sections* after the records: machine, clock,
//! build ids. In *pipe form* all of these are records, numbered from 64 up; those of the kernel
//! have lower numbers.
//!
//! The fields of a sample depend on its attribute. Other records end in a trailer with the running
//! thread and the time.
//!
//! Each processor's records are in order, in parts. The recorder marks the end of each *round* over
//! all processors; records after a mark are not older than those before the previous mark. So the
//! reader holds two rounds, or as much as [`Options::round_limit`] allows, and with
//! [`Reader::read_ahead`] another one of moderate size. Compressed records are one zstd stream that
//! is never finished.
//!
//! # Damage
//!
//! Sizes, offsets and counts are checked. A record whose content exceeds its size is skipped. Bytes
//! that are not records are searched for the next ones, by types, sizes and times; the bytes
//! between are a [`Gap`], as are the missing bytes of a truncated file. [`Diagnostics`] counts
//! both. An [`Error`] means that there is nothing to read or that the source failed.
//!
//! Layouts follow the kernel's headers and perf's documentation, and were checked against the
//! output of perf 6.1 for the same recordings. Big-endian files, guests, hardware traces, eBPF
//! programs and deferred call chains have been tested with synthetic files only.
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
mod attr;
mod buffers;
mod bytes;
mod callchain;
mod compressed;
mod decode;
mod diagnostics;
mod error;
mod gather;
mod header;
mod info;
pub mod jitdump;
mod kind;
mod losses;
mod missing;
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
pub use diagnostics::{Diagnostics, LossWindow};
pub use error::Error;
pub use info::{BuildIdEntry, ClockData, Info, TimeConversion};
pub use kind::{event_type, record_name};
pub use raw::CpuMode;
pub use reader::{Options, Reader};
pub use record::{BuildId, Comm, Event, KernelSymbol, Mmap, Record, Task};
pub use sample::{CallStack, Registers, Sample};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
