//! What code was at address A of process P at time T?
#![deny(missing_docs)]

mod body;
mod chunked;
mod clr;
mod code;
mod entry_points;
mod evidence;
mod expand;
mod filter;
mod frame;
mod il_map;
mod images;
mod index;
mod inline_tree;
mod kernel;
mod live;
mod names;
mod neighbours;
mod process;
mod profile;
mod ranges;
mod resolve;
mod samples;
mod session;
pub mod source;
mod stacks;
mod strings;
#[cfg(feature = "symbols")]
pub mod symbols;
mod timeline;
mod universal;
mod untimed;
mod views;

pub use body::{BodyIndex, ModuleIndex, PdbId};
pub use chronosym_timeline::{Begin, End, Life};
pub use evidence::{Certainty, Evidence, EvidenceSet, LineReason, NameReason};
pub use expand::{CodeStart, ImageRef, ModuleRef, NativeFrame, PrecompiledCode, SymbolSource};
pub use filter::Filter;
pub use frame::{Frame, Position, SourceLine};
pub use il_map::{IlOffset, IlSource};
pub use images::{ImageIndex, file_name, simple_name};
pub use live::{LiveReader, LiveSession};
pub use process::{ProcessIndex, ThreadIndex};
pub use profile::{FrameId, Profile, ProfileEntry, ResolvedStack, Resolver};
pub use samples::{ClassIndex, SampleClass, SampleKind, SampleLog};
pub use session::{
    EventSelector, EventTypeId, EventTypeInfo, Loss, Options, SampleSelection, Session,
    SessionDiagnostics, TraceFacts,
};
pub use stacks::{StackId, StackTable};
pub use timeline::Timeline;
pub use views::{
    BodyView, ImageView, ModuleView, ProcessView, ThreadView, UntimedView, event_label,
};
