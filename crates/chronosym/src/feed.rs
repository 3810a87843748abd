//! Feeds what was recorded or observed: facts, undecoded events and samples.
//!
//! A [`Session`] takes a complete recording, a [`LiveSession`] one that is still in progress. Both
//! take typed [`facts`], and events whose types are registered as [`EventSchema`].
//!
//! ```
//! use chronosym::feed::facts::{Action, At, Method, Sample};
//! use chronosym::feed::{Options, Session, Weight};
//!
//! let mut session = Session::new(Options::default());
//! let at = At::new(1_000).process(42).thread(7); // ns since the recording began
//! session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", "void ()"));
//! session.sample(at, &[0x1010], Sample::cpu().weighing(Weight::Ns(1_000_000)));
//! let timeline = session.finish();
//! assert_eq!(timeline.samples().len(), 1);
//! ```

#[doc(inline)]
pub use chronosym_core::{
    Action, AnotherRecording, Budget, DecodeError, EventKey, EventSchema, EventSelector,
    EventTypeId, Guid, Host, LimitReached, Limits, LiveReader, LiveSample, LiveSession, Loss,
    Options, Payload, PointerSize, Provider, RawEvent, RecordingId, Role, SampleSelection, Session,
    TraceFacts, Weight, facts, unwind,
};
