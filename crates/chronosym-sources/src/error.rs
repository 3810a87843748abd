//! Why a trace could not be read.

use chronosym_core::{AnotherRecording, SavedError};

/// Why a trace could not be read into a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no nettrace or netperf trace, or its source failed.
    #[error(transparent)]
    Nettrace(#[from] chronosym_nettrace::Error),
    /// It is no .etl, or its source failed.
    #[error(transparent)]
    Etl(#[from] chronosym_etl::Error),
    /// It is no perf.data or jitdump, or its source failed.
    #[error(transparent)]
    Perf(#[from] chronosym_perf::Error),
    /// A stream of a trace of LTTng failed.
    #[error(transparent)]
    Ctf(#[from] chronosym_ctf::Error),
    /// It is no saved timeline, or a damaged one.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// It is a saved timeline, which has no events.
    #[error("a saved timeline has no events; read those of the trace that it was saved from")]
    NoEvents,
    /// A stream of another format failed.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// The session was read from something else. Read each recording into a session of its own;
    /// .etl files of one recording are merged before they are read.
    #[error("the session was read from another recording: {0}")]
    AnotherRecording(#[from] AnotherRecording),
}
