//! Why a recording is refused.

use std::io;

use super::meter::{Cancelled, is};
use crate::ReadError;
use chronosym_core::LimitReached;

const EXPECTED: &str = "expected a .nettrace, .netperf, .etl, perf.data or LTTng trace, or a zip or gzip file with one";

/// Why nothing can be opened. Messages name the input; causes are in
/// [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system does not open the file.
    #[error("cannot open {name}")]
    Open {
        /// The input.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The input cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The input.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// A temporary file is needed for what has to be read at any position, and cannot be made or
    /// written.
    #[error("cannot keep {name} in a temporary file")]
    Spool {
        /// What was to be kept.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// A folder in which there is no trace.
    #[error("{name} is a directory without a trace: {EXPECTED}")]
    Directory {
        /// The input.
        name: String,
    },
    /// No byte in it.
    #[error("{name} is empty: {EXPECTED}")]
    Empty {
        /// The input.
        name: String,
    },
    /// Something else than a trace.
    #[error("{name} is not a trace: {EXPECTED}, found {found}")]
    NotATrace {
        /// The input.
        name: String,
        /// What it is instead, for people: `a perf.data file`, or its first bytes.
        found: String,
    },
    /// A zip file in which no trace can be read.
    #[error("{name} is a zip file without a readable trace in it: {EXPECTED}{}", .found.as_ref().map_or(String::new(), |f| format!("; found {f}")))]
    NoTraceInside {
        /// The zip file.
        name: String,
        /// What is in it instead, where that has a name.
        found: Option<String>,
    },
    /// A wrapper of which not one byte can be unpacked.
    #[error("{name} is damaged")]
    Damaged {
        /// The wrapper.
        name: String,
        /// What is wrong.
        source: io::Error,
    },
    /// A limit was reached before anything could be read.
    #[error("{name}: {limit}")]
    Limit {
        /// What is too large.
        name: String,
        /// The limit.
        limit: LimitReached,
    },
    /// Nothing was named.
    #[error("nothing to open: {EXPECTED}")]
    NoInput,
    /// One file under two names: its samples would count twice.
    #[error("{first} and {second} are the same file")]
    SameFile {
        /// The input that came first.
        first: String,
        /// The other.
        second: String,
    },
    /// Two files of the same bytes.
    #[error("{first} and {second} are copies of the same file")]
    Copies {
        /// The trace that came first.
        first: String,
        /// The other.
        second: String,
    },
    /// Traces that cannot be read together.
    #[error(
        "{first} and {second} cannot be joined: read them one by one; .etl files of one recording can be read together, \
         and one perf.data with nettrace files of processes of its machine"
    )]
    SeveralRecordings {
        /// The trace that came first.
        first: String,
        /// The other.
        second: String,
    },
    /// Recordings of different machines or times.
    #[error(
        "{first} and {second} are not of one recording: their {what} differs; read them one by one"
    )]
    DifferentRecordings {
        /// The trace that came first.
        first: String,
        /// The other.
        second: String,
        /// What tells them apart: `boot time` or the like.
        what: &'static str,
    },
    /// A recording of a runtime and a perf.data whose process with the same id is another one.
    #[error(
        "{name} does not belong to process {process} of {perf}, which {reason}; name its process there with \
         --map-pid {process}=PID, or read the two one by one"
    )]
    NoProcess {
        /// The recording.
        name: String,
        /// The perf.data.
        perf: String,
        /// The process id in both.
        process: u32,
        /// What shows it, as the end of a sentence about the process.
        reason: &'static str,
    },
    /// An .etl file that its reader refuses.
    #[error("{name}")]
    Etl {
        /// The trace.
        name: String,
        /// Why.
        source: chronosym_etl::Error,
    },
    /// A trace that its reader refuses, or cannot go on reading.
    #[error("{name}")]
    Trace {
        /// The trace.
        name: String,
        /// Why.
        source: ReadError,
    },
    /// Whoever watched the reading broke it off.
    #[error("reading was cancelled")]
    Cancelled,
}

/// Kinds of errors by what they are of and by their cause.
impl OpenError {
    pub(super) fn read(name: String, source: io::Error) -> Self {
        OpenError::Read { name, source }
    }

    pub(super) fn damaged(name: String, source: io::Error) -> Self {
        OpenError::Damaged { name, source }
    }

    pub(super) fn spool(name: String, source: io::Error) -> Self {
        OpenError::Spool { name, source }
    }

    /// What its cause says.
    pub(super) fn cause(&self) -> String {
        std::error::Error::source(self).map_or(String::new(), ToString::to_string)
    }
}

/// What a failed read of an input is; `or` makes what it is if nothing of this project's own.
pub(super) fn failed(
    name: &str,
    error: io::Error,
    or: impl FnOnce(String, io::Error) -> OpenError,
) -> OpenError {
    let name = name.to_owned();
    if is::<Cancelled>(&error).is_some() {
        OpenError::Cancelled
    } else if let Some(&limit) = is::<LimitReached>(&error) {
        OpenError::Limit { name, limit }
    } else {
        or(name, error)
    }
}

/// What reading a recording failed with.
pub(super) fn in_trace(name: &str, source: impl Into<ReadError>) -> OpenError {
    OpenError::Trace {
        name: name.to_owned(),
        source: source.into(),
    }
}

pub(super) fn in_perf(name: &str, error: impl Into<ReadError>) -> OpenError {
    match error.into() {
        ReadError::Perf(chronosym_perf::Error::Io { offset, source }) => {
            failed(name, source, |name, source| {
                in_trace(&name, chronosym_perf::Error::Io { offset, source })
            })
        }
        error => in_trace(name, error),
    }
}

pub(super) fn unreadable(name: &str, error: io::Error) -> OpenError {
    failed(name, error, OpenError::read)
}
