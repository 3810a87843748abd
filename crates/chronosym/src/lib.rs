//! What code was at address A of process P at time T?
//!
//! [`open`](fn@open) opens a trace. A [`Session`] takes events (of a file through [`source`], or a profiler's own) and typed
//! [`facts`], and keeps what they say of processes, code and samples. [`Session::finish`] freezes it into a [`Timeline`],
//! which is immutable and can be asked
//! from any thread:
//!
//! - [`Timeline::frames`] names one address of a process at a time, with evidence, certainty or a reason; without a time
//!   [`Timeline::resolve`] answers with all that ever stood there;
//! - [`Timeline::profile`] counts the samples that pass a [`Filter`] by resolved stack;
//! - [`Timeline::for_each_sample`] with a [`Resolver`] walks every sample in the order of time; it resolves stacks that are
//!   not samples of the timeline as well;
//! - [`Timeline::body`] and [`Timeline::bodies_of_batch`] answer with body numbers and allocate nothing a query.
//!
//! A [`LiveSession`] answers while events still arrive. Names and lines beyond what the trace says come from a
//! [`SymbolSource`]; the feature `symbols` has one.
//!
//! No part of the engine does I/O but the readers in [`source`], from the stream that they are given, and the feature
//! `symbols`.
#![deny(missing_docs)]
// Some of what the engine can do only its readers ask for.
#![cfg_attr(not(feature = "open"), allow(dead_code))]

mod allocation;
mod answers;
mod body;
mod by_offset;
mod chunked;
mod clr;
mod clr_state;
mod code;
mod event_types;
mod evidence;
pub mod facts;
mod filter;
mod frame;
mod frames;
mod functions;
mod il_map;
mod images;
mod index;
mod index_type;
mod inline_tree;
mod kernel;
mod layers;
mod life;
mod limits;
mod live;
mod lookup;
mod machine;
mod markers;
mod names;
#[cfg(feature = "open")]
pub mod open;
mod prepare;
mod process;
mod profile;
mod ranges;
mod recording;
mod refs;
mod resolve;
mod resolver;
mod role;
mod samples;
mod selection;
mod session;
mod shape;
pub mod source;
mod source_line;
mod space;
mod stacks;
mod strings;
mod symbol_source;
#[cfg(feature = "stores")]
pub mod symbols;
mod timeline;
mod universal;
mod untimed;
mod untimed_index;
#[cfg(feature = "open")]
pub mod unwind;
mod views;
mod waiting;
mod weights;

pub use body::{BodyIndex, ModuleIndex, PdbId};
pub use chronosym_events::{
    Action, DecodeError, EventKey, EventSchema, Guid, OptimizationTier, PointerSize, Provider,
    RawEvent,
};
pub use chronosym_timeline::{End, Lifetime, Start};
// The crates whose types stand in this one's interface, for all of what belongs to them.
#[cfg(feature = "open")]
pub use chronosym_ctf;
#[cfg(feature = "etl")]
pub use chronosym_etl;
pub use chronosym_events;
#[cfg(feature = "nettrace")]
pub use chronosym_nettrace;
#[cfg(feature = "open")]
pub use chronosym_perf;
pub use event_types::{EventTypeId, EventTypeInfo};
pub use evidence::{CallerProof, Certainty, Evidence, EvidenceSet, LineReason, NameReason};
pub use facts::Addressing;
pub use filter::Filter;
pub use frame::{Code, Frame, Position};
pub use frames::{Answer, Candidate, When};
pub use functions::{Binary, BinaryId, Function, FunctionId};
pub use il_map::{IlOffset, IlSource};
pub use images::{ImageIndex, PerfMapId, file_name, simple_name};
pub use limits::{LimitReached, Limits};
pub use live::{LiveReader, LiveSession};
pub use markers::{Marker, MarkerKind};
#[cfg(feature = "open")]
pub use open::{Input, OpenError, Opener, Recording, Report, open};
pub use process::{ProcessIndex, ThreadIndex};
pub use profile::{Profile, ProfileEntry};
pub use recording::{ClockMatch, JoinedRecording, Loss, SessionDiagnostics, TraceFacts};
pub use resolve::AddressAt;
pub use resolver::{FrameId, ResolvedStack, Resolver};
pub use samples::{ClassIndex, SampleClass, SampleKind, SampleLog, Weight};
pub use selection::{EventSelector, Options, SampleSelection};
pub use session::{Payload, Session};
pub use shape::{FRAMEWORK, Shape, ShapeError, Shaper, is_framework_module};
pub use source_line::SourceLine;
pub use stacks::{StackId, StackTable};
pub use symbol_source::{
    CodeStart, ImageRef, InMemoryPdb, MappedPiece, ModuleRef, NativeFrame, PartRef,
    PrecompiledCode, SymbolIdentity, SymbolSource,
};
pub use timeline::Timeline;
pub use views::{
    BodyView, ImageView, ModuleView, ProcessView, ThreadView, UntimedView, event_label,
};
pub use waiting::{Activity, WallFlag};
#[cfg(feature = "symbols")]
pub use {chronosym_pdb, chronosym_symbols};

/// The README's example has to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeExamples;

/// So has that of the library's guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryExamples;
