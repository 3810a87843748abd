//! From trace files to a [`crate::Session`].

#[cfg(feature = "nettrace")]
mod batch;
#[cfg(feature = "ctf")]
pub mod ctf;
#[cfg(any(
    feature = "ctf",
    feature = "nettrace",
    feature = "etl",
    feature = "perf"
))]
mod identity;
#[cfg(feature = "perf")]
pub mod jitdump;
#[cfg(feature = "nettrace")]
pub mod nettrace;
#[cfg(feature = "perf")]
pub mod perf;
#[cfg(feature = "perf")]
pub mod script;

#[cfg(any(feature = "nettrace", feature = "etl"))]
mod observe;
#[cfg(any(feature = "nettrace", feature = "etl"))]
pub use observe::{Observer, Seen};

#[cfg(any(feature = "ctf", feature = "perf"))]
mod threads;

#[cfg(feature = "etl")]
pub mod etl;
#[cfg(feature = "etl")]
mod etw_stacks;
#[cfg(feature = "etl")]
mod etw_types;

#[cfg(any(
    feature = "ctf",
    feature = "nettrace",
    feature = "etl",
    feature = "perf"
))]
pub(crate) use identity::Identity;
#[cfg(any(
    feature = "ctf",
    feature = "nettrace",
    feature = "etl",
    feature = "perf"
))]
pub use identity::{AnotherRecording, ReadError};
