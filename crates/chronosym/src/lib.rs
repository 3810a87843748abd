//! What code was at address A of process P at time T?
//!
//! A [`Session`] takes events (of a file through [`source`], or whatever a profiler has) and remembers what they say of
//! processes, code and samples. [`Session::finish`] freezes it into a [`Timeline`], which is immutable and can be asked
//! from any thread:
//!
//! - [`Timeline::frames`] names one address of a process at a time, with evidence, certainty or a reason;
//! - [`Timeline::profile`] counts the samples that pass a [`Filter`] by resolved stack;
//! - [`Timeline::for_each_sample`] with a [`Resolver`] walks every sample in the order of time;
//! - [`Timeline::body`] and [`Timeline::bodies_of_batch`] answer with body numbers and allocate nothing a query.
//!
//! A [`LiveSession`] answers while events still arrive. Names and lines beyond what the trace says come from a
//! [`SymbolSource`]; the feature `symbols` has one.
//!
//! No part of the engine does I/O but the readers in [`source`], from the stream that they are given, and the feature
//! `symbols`.
#![deny(missing_docs)]
// Some of what the engine can do only its readers ask for.
#![cfg_attr(not(all(feature = "nettrace", feature = "etl")), allow(dead_code))]

mod body;
mod chunked;
mod clr;
mod code;
mod entry_points;
mod evidence;
mod expand;
mod few;
mod filter;
mod frame;
mod il_map;
mod images;
mod index;
mod inline_tree;
mod kernel;
mod live;
mod lookup;
mod methods;
mod names;
mod neighbours;
mod prepare;
mod process;
mod profile;
mod ranges;
mod resolve;
mod samples;
mod session;
pub mod source;
mod stacks;
mod strings;
mod symbol_source;
#[cfg(feature = "stores")]
pub mod symbols;
mod timeline;
mod universal;
mod untimed;
mod views;

pub use body::{BodyIndex, ModuleIndex, PdbId};
pub use chronosym_events::{EventKey, EventSchema, PointerSize, Provider, RawEvent};
pub use chronosym_timeline::{Begin, End, Life, Query};
pub use evidence::{Certainty, Evidence, EvidenceSet, LineReason, NameReason};
pub use filter::Filter;
pub use frame::{Frame, Position, SourceLine};
pub use il_map::{IlOffset, IlSource};
pub use images::{ImageIndex, PerfMapId, file_name, simple_name};
pub use live::{LiveReader, LiveSession};
pub use process::{ProcessIndex, ThreadIndex};
pub use profile::{FrameId, Profile, ProfileEntry, ResolvedStack, Resolver};
pub use samples::{ClassIndex, SampleClass, SampleKind, SampleLog};
pub use session::{
    EventSelector, EventTypeId, EventTypeInfo, Loss, Options, SampleSelection, Session,
    SessionDiagnostics, TraceFacts,
};
pub use stacks::{StackId, StackTable};
pub use symbol_source::{
    CodeStart, ImageIdentity, ImageRef, MappedPiece, ModuleIdentity, ModuleRef, NativeFrame,
    PartRef, PrecompiledCode, SymbolSource,
};
pub use timeline::Timeline;
pub use views::{
    BodyView, ImageView, ModuleView, ProcessView, ThreadView, UntimedView, event_label,
};

/// The README's example has to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;

/// So has that of the library's guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryExamples;
