#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! Everything of [`chronosym_core`] is also at the root, so `use chronosym::{Session, Timeline}`
//! works.
//!
//! | to | see |
//! |---|---|
//! | open a trace | [`open()`], [`Opener`]; [`source`] has a reader for each format |
//! | feed facts, events and samples | [`feed`]: [`Session`], [`LiveSession`], [`facts`] |
//! | resolve addresses and stacks, and count samples | [`query`]: [`Timeline`], [`Resolver`], [`Profile`] |
//! | keep a timeline in a file | [`save`]: [`Timeline::save`], [`SavedTimeline`], [`DeltaReader`] |
//! | add names and lines from symbol files | [`symbols`] (feature `symbols`) |
//! | report on garbage collection, JIT, exceptions, locks | [`runtime`] (feature `runtime`) |
//! | write flame graphs, pprof, HTML and other outputs | the crate `chronosym-export` |
//!
//! # Examples
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

pub mod feed;
pub mod query;
pub mod save;

pub use chronosym_core;
#[doc(no_inline)]
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
