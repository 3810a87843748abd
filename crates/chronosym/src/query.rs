//! Resolves addresses and stacks, and counts samples.
//!
//! - [`Timeline::frames`] resolves one address of a process at a time, with evidence, certainty or
//!   a reason;
//! - [`Timeline::profile`] counts the samples that pass a [`Filter`] by resolved stack;
//! - [`Timeline::for_each_sample`] with a [`Resolver`] walks all samples in time order;
//! - [`Resolver::resolve_batch`] resolves many addresses to frame numbers with columns.
//!
//! ```
//! use chronosym::facts::{Action, At, Method};
//! use chronosym::query::Position;
//! use chronosym::{Options, Session};
//!
//! let mut session = Session::new(Options::default());
//! let at = At::new(1_000).process(42).thread(7);
//! session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", "void ()"));
//! let timeline = session.finish();
//! let process = timeline.find_process(42, None).unwrap();
//! let frames = timeline.frames(process, 0x1010, 2_000, Position::Exact, None);
//! assert_eq!(frames[0].name(), Ok("Ns.Type.Run"));
//! let frames = timeline.frames(process, 0x9000, 2_000, Position::Exact, None);
//! assert!(frames[0].name().is_err());
//! ```

#[doc(inline)]
pub use chronosym_core::{
    Activity, ActivityEvidence, ActivityFilter, AddressAt, AddressQuery, Answer, BinaryId,
    BodyIndex, BodyView, CallerProof, Candidate, Certainty, Code, Diagnostic, DiagnosticKind,
    Diagnostics, End, Evidence, EvidenceSet, Filter, Frame, FrameId, FrameTable, Function,
    FunctionId, ImageIndex, ImageView, Inlinee, KeptEvent, Lifetime, LineReason, Marker,
    MarkerKind, ModuleIndex, ModuleView, NameReason, OptimizationTier, Position, ProcessIndex,
    ProcessView, Profile, ProfileEntry, QueryProcess, ResolvedBatch, ResolvedStack, Resolver,
    SampleClass, SampleKind, SampleLog, SourceLine, StackId, StackQuery, StackTable, Start,
    SymbolSource, TableFrame, TextId, ThreadActivity, ThreadIndex, ThreadTime, ThreadView,
    Timeline, UntimedView, Weight, When,
};
