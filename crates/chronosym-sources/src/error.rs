//! Errors of reading a trace.

use chronosym_core::{AnotherRecording, SavedError};

/// Why a trace could not be read into a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not a nettrace or netperf trace, or its source failed.
    #[error(transparent)]
    Nettrace(#[from] chronosym_nettrace::Error),
    /// It is not an .etl, or its source failed.
    #[error(transparent)]
    Etl(#[from] chronosym_etl::Error),
    /// It is not a perf.data or jitdump, or its source failed.
    #[error(transparent)]
    Perf(#[from] chronosym_perf::Error),
    /// A stream of an LTTng trace failed.
    #[error(transparent)]
    Ctf(#[from] chronosym_ctf::Error),
    /// It is not a file of OTLP profiles.
    #[error(transparent)]
    Otlp(#[from] chronosym_otlp::Error),
    /// It is not a saved timeline, or a damaged one.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// It is a saved timeline, which has no events.
    #[error("a saved timeline has no events; read those of the trace that it was saved from")]
    NoEvents,
    /// A stream of another format failed.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// The session has already read another recording. Read each recording into a session of its
    /// own; .etl files of one recording are merged before they are read.
    #[error("the session was read from another recording: {0}")]
    AnotherRecording(#[from] AnotherRecording),
}
