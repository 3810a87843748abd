//! Saves timelines in files, reads them, and follows live sessions from another process.
//!
//! - [`Timeline::save`](crate::Timeline::save) and [`Timeline::open`](crate::Timeline::open) write
//!   and read a whole timeline;
//! - [`SavedTimeline`] resolves single addresses from a few blocks of the file;
//! - [`merge`] joins timelines of one machine;
//! - [`DeltaReader`] follows a [`LiveSession`](crate::LiveSession) that appends deltas.
//!
//! ```
//! use chronosym::facts::{Action, At, Method};
//! use chronosym::save::SaveOptions;
//! use chronosym::{Options, Session, Timeline};
//!
//! let mut session = Session::new(Options::default());
//! let at = At::new(1_000).process(42).thread(7);
//! session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", "void ()"));
//! let bytes = session.finish().save(Vec::new(), &SaveOptions::new()).unwrap();
//! assert!(Timeline::open(&bytes).unwrap().find_process(42, None).is_some());
//! ```

#[doc(inline)]
pub use chronosym_core::{DeltaReader, MergeError, SaveOptions, SavedError, SavedTimeline, merge};
