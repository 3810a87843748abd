//! What code was at address A of process P at time T?
//!
//! This crate re-exports four others; its features select them:
//!
//! - [`chronosym_core`], always: a [`Session`] takes events and typed [`facts`];
//!   [`Session::finish`] freezes it into a [`Timeline`], which resolves (process, address, time) to
//!   frames, from any thread. A [`LiveSession`] resolves while events still arrive. It does no I/O.
//! - [`source`] (feature `sources`, on by default): [`open`](fn@open) and [`Opener`] open traces of
//!   every format; the modules of [`source`] read one format each.
//! - [`symbols`] (feature `symbols`): names and lines beyond what the trace states, from PDBs,
//!   ReadyToRun images, ELF and DWARF. `http` fetches symbol files from servers.
//! - [`runtime`] (feature `runtime`): reports from the events that .NET runtimes log about
//!   themselves: collections, compilations, exceptions, allocations, locks, the thread pool.
//!
//! A trace is queried through its timeline:
//!
//! - [`Timeline::frames`] resolves one address of a process at a time, with evidence, certainty or
//!   a reason;
//! - [`Timeline::profile`] counts the samples that pass a [`Filter`] by resolved stack;
//! - [`Timeline::for_each_sample`] with a [`Resolver`] walks all samples in time order;
//! - [`Resolver::resolve_batch`] resolves many addresses to frame numbers with columns.
//!
//! ```
//! use chronosym::{Filter, Options};
//!
//! # fn main() -> Result<(), chronosym::OpenError> {
//! let recording = chronosym::open("../../testdata/clr10/traces/memory.nettrace.zip")?;
//! let (timeline, diagnostics) = recording.timeline(Options::default())?;
//! assert_eq!(diagnostics.lost_events(), 0);
//!
//! let profile = timeline.profile(&Filter::default(), None);
//! let heaviest = profile.entries.iter().max_by_key(|entry| entry.samples).unwrap();
//! let leaf = profile.resolver.leaf(heaviest.stack);
//! println!("{} samples in {}", heaviest.samples, profile.resolver.frame(leaf).label());
//! # Ok(()) }
//! ```
#![deny(missing_docs)]

pub use chronosym_core;
pub use chronosym_core::*;
#[cfg(feature = "runtime")]
pub use chronosym_runtime as runtime;
#[cfg(feature = "sources")]
pub use chronosym_sources::{
    self as source, ReadError,
    open::{self, ErrorKind, Input, OpenError, Opener, Recording, open},
};
#[cfg(feature = "symbols")]
pub use chronosym_symbolizer as symbols;

/// The README's example has to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;

/// So has that of the library's guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryExamples;
