//! The engine of chronosym: typed facts and raw events in, (process, address, time) to frames out.
//!
//! A [`Session`] takes events and typed [`facts`], and maintains the state of processes, code and
//! samples. [`Session::finish`] freezes it into a [`Timeline`], which is immutable and can be
//! queried from any thread:
//!
//! - [`Timeline::frames`] resolves one address of a process at a time, with evidence, certainty or
//!   a reason; without a time [`Timeline::resolve`] returns everything that was ever at the
//!   address;
//! - [`Timeline::profile`] counts the samples that pass a [`Filter`] by resolved stack;
//! - [`Timeline::for_each_sample`] with a [`Resolver`] walks all samples in time order; the
//!   resolver also resolves stacks that are not samples of the timeline;
//! - [`Timeline::body`] and [`Timeline::bodies_of_batch`] return body numbers and allocate nothing
//!   per query.
//!
//! A [`LiveSession`] resolves while events still arrive. Names and lines that are not in the trace
//! come from a [`SymbolSource`]. The engine does no I/O.
#![deny(missing_docs)]

mod activity;
mod activity_ids;
mod answers;
mod batch;
mod body;
mod budget;
mod changes;
mod clr;
mod clr_state;
mod code;
mod counters;
mod diagnostic;
mod event_types;
mod evidence;
pub mod facts;
mod filter;
mod forget;
mod frame;
mod frame_table;
mod frames;
mod freeze;
mod functions;
mod ids;
mod il_map;
mod images;
mod index;
mod ingest;
mod inline_tree;
mod inlinee;
mod kept;
mod kernel;
mod known;
mod layers;
mod lifetime;
mod limits;
mod live;
mod lookup;
mod machine;
mod marker_kind;
mod markers;
mod meaning;
mod memory;
mod names;
mod on_cpu;
mod pending_samples;
mod prepare;
mod process;
mod profile;
mod profile_entry;
mod ranges;
mod recent_texts;
mod recording;
mod recording_id;
mod refs;
mod resolve;
mod resolver;
mod room;
mod sample_bytes;
mod sample_counter;
mod samples;
mod saved;
mod selection;
mod session;
mod source_line;
mod space;
mod spans;
mod stack_cache;
mod stacks;
mod state;
mod stays;
mod strings;
mod suspensions;
mod symbol_identity;
mod symbol_source;
mod symbol_text;
mod task_activities;
mod terms;
mod thread_time;
mod ticks;
mod timeline;
mod universal;
mod untimed;
mod untimed_index;
pub mod unwind;
mod views;
mod waiting;
mod weights;
mod window;

pub use activity::{Activity, ActivityEvidence, ThreadActivity, WallFlag};
pub use activity_ids::{ActivityId, EventActivity};
pub use batch::{AddressQuery, BatchQuery, QueryProcess, ResolvedBatch, StackQuery};
pub use budget::{Budget, Share};
pub use chronosym_events;
pub use chronosym_events::{
    Action, DecodeError, EventKey, EventSchema, Guid, OptimizationTier, PointerSize, Provider,
    RawEvent,
};
pub use chronosym_timeline::{End, Lifetime, Start};
pub use chronosym_types::{FileNumber, MappedFile, PdbId};
pub use diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, FileGap};
pub use event_types::EventTypeInfo;
pub use evidence::{CallerProof, Certainty, Evidence, EvidenceSet, LineReason, NameReason};
pub use filter::{ActivityFilter, Filter};
pub use frame::{Code, Frame};
pub use frame_table::{FrameTable, TableFrame, TextId};
pub use frames::{Answer, Candidate, When};
pub use functions::{Binary, Function};
pub use ids::{
    ActivityIdIndex, BinaryId, BodyIndex, EventTypeId, FrameId, FunctionId, ImageIndex,
    ModuleIndex, ProcessIndex, ResolvedStack, StackId, ThreadIndex,
};
pub use il_map::{IlOffset, IlSource};
pub use images::{FileMapping, PerfMapId, file_name, is_anonymous, simple_name};
pub use inlinee::Inlinee;
pub use kept::KeptEvent;
pub use limits::{FREE_OF_RATIO, LimitReached, Limits};
pub use live::{LiveReader, LiveSession};
pub use marker_kind::MarkerKind;
pub use markers::Marker;
pub use meaning::Role;
pub use pending_samples::LiveSample;
pub use profile::{Profile, WeighedSample};
pub use profile_entry::ProfileEntry;
pub use recording::{ClockMatch, Host, JoinedRecording, Loss, LossScope, ProcessMatch, TraceFacts};
pub use recording_id::{AnotherRecording, RecordingId};
pub use resolve::AddressAt;
pub use resolver::Resolver;
pub use samples::{ClassIndex, SampleClass, SampleLog};
pub use saved::{DeltaReader, MergeError, SaveOptions, SavedError, SavedTimeline, merge};
pub use selection::{EventSelector, Options, SampleSelection};
pub use session::{Payload, Session};
pub use source_line::SourceLine;
pub use stacks::{StackTable, Walked};
pub use suspensions::{PairedSuspension, SuspensionPairs};
pub use symbol_identity::{InMemoryPdb, PdbReference, SymbolIdentity};
pub use symbol_source::{
    CodeStart, ImageRef, ModuleRef, NativeFrame, PartRef, PrecompiledCode, SnapshotKey,
    SymbolSource,
};
pub use terms::{Addressing, Position, SampleKind, Weight};
pub use thread_time::{OffCpu, Returned, ThreadSwitch, ThreadTime};
pub use timeline::Timeline;
pub use views::{
    BodyView, ImageView, ModuleView, ProcessView, ThreadView, UntimedView, event_label,
};
