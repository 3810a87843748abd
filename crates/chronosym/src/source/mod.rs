//! From trace files to a [`crate::Session`].

#[cfg(feature = "nettrace")]
mod batch;
#[cfg(feature = "open")]
pub mod ctf;
#[cfg(any(feature = "nettrace", feature = "etl"))]
mod identity;
#[cfg(feature = "open")]
pub mod jitdump;
#[cfg(feature = "nettrace")]
pub mod nettrace;
#[cfg(feature = "open")]
pub mod perf;
#[cfg(feature = "open")]
pub mod script;

#[cfg(any(feature = "nettrace", feature = "etl"))]
mod observe;
#[cfg(any(feature = "nettrace", feature = "etl"))]
pub use observe::{Observer, Seen};

#[cfg(feature = "open")]
mod threads;

#[cfg(feature = "etl")]
pub mod etl;
#[cfg(feature = "etl")]
mod etw_stacks;
#[cfg(feature = "etl")]
mod etw_types;

#[cfg(any(feature = "nettrace", feature = "etl"))]
pub(crate) use identity::Identity;
#[cfg(any(feature = "nettrace", feature = "etl"))]
pub use identity::{AnotherRecording, ReadError};
