//! Errors of opening a recording.

use std::io;

use super::meter::{Cancelled, is};
use crate::ReadError;
use chronosym_core::LimitReached;

const EXPECTED: &str = "expected a .nettrace, .netperf, .etl, perf.data or LTTng trace, or a zip or gzip file with one";

/// Why a recording cannot be opened. Messages name the input; causes are in
/// [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened.
    #[error("cannot open {name}")]
    Open {
        /// The input.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The input cannot be read.
    #[error("cannot read {name}")]
    Read {
        /// The input.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A temporary file for input that must be read at any position cannot be created or written.
    #[error("cannot copy {name} to a temporary file")]
    Spool {
        /// The input to be copied.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The folder contains no trace.
    #[error("{name} is a directory without a trace: {EXPECTED}")]
    Directory {
        /// The input.
        name: String,
    },
    /// The input is empty.
    #[error("{name} is empty: {EXPECTED}")]
    Empty {
        /// The input.
        name: String,
    },
    /// The input is not a trace.
    #[error("{name} is not a trace: {EXPECTED}, found {found}")]
    NotATrace {
        /// The input.
        name: String,
        /// Description of what it is instead, such as `a perf.data file`, or its first bytes.
        found: String,
    },
    /// No trace in the zip file can be read.
    #[error("{name} is a zip file without a readable trace in it: {EXPECTED}{}", .found.as_ref().map_or(String::new(), |f| format!("; found {f}")))]
    NoTraceInside {
        /// The zip file.
        name: String,
        /// Description of what it contains instead, if that is known.
        found: Option<String>,
    },
    /// An archive or compression layer of which not one byte can be decompressed.
    #[error("{name} is damaged")]
    Damaged {
        /// The input.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// A limit was reached before anything could be read.
    #[error("{name}: {limit}")]
    Limit {
        /// The input that is too large.
        name: String,
        /// The limit.
        limit: LimitReached,
    },
    /// No input was given.
    #[error("nothing to open: {EXPECTED}")]
    NoInput,
    /// The inputs are two names of one file, whose samples would be counted twice.
    #[error("{first} and {second} are the same file")]
    SameFile {
        /// The first input.
        first: String,
        /// The second input.
        second: String,
    },
    /// Two files have the same content.
    #[error("{first} and {second} are copies of the same file")]
    Copies {
        /// The first trace.
        first: String,
        /// The second trace.
        second: String,
    },
    /// Traces that cannot be joined.
    #[error(
        "{first} and {second} cannot be joined: read them one by one; .etl files of one recording can be read together, \
         and one perf.data with nettrace files of processes of its machine"
    )]
    SeveralRecordings {
        /// The first trace.
        first: String,
        /// The second trace.
        second: String,
    },
    /// Recordings of different machines or times.
    #[error(
        "{first} and {second} are not of one recording: their {what} differs; read them one by one"
    )]
    DifferentRecordings {
        /// The first trace.
        first: String,
        /// The second trace.
        second: String,
        /// The property that differs, such as `boot time`.
        what: &'static str,
    },
    /// A recording of a runtime, and a perf.data in which its process id belongs to another
    /// process.
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
        /// The evidence, as a relative clause about the process.
        reason: &'static str,
    },
    /// An .etl file that its reader rejects.
    #[error("{name}")]
    Etl {
        /// The trace.
        name: String,
        /// The cause.
        source: chronosym_etl::Error,
    },
    /// A trace that its reader rejects, or cannot continue to read.
    #[error("{name}")]
    Trace {
        /// The trace.
        name: String,
        /// The cause.
        source: ReadError,
    },
    /// The observer of the reading cancelled it.
    #[error("reading was cancelled")]
    Cancelled,
}

/// Constructors from a subject and a cause.
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

    /// Returns the text of the cause.
    pub(super) fn cause(&self) -> String {
        std::error::Error::source(self).map_or(String::new(), ToString::to_string)
    }
}

/// Converts a failed read of an input; `or` makes the error unless the cause is one of this
/// library's own.
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

/// Converts an error of reading a recording.
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
