//! The result of a call.

use chronosym::{ErrorKind, OpenError};

/// The result of a call. Every value except `CHRONOSYM_STATUS_OK` is a failure, with details in
/// `chronosym_last_error`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum chronosym_status {
    /// The call succeeded.
    Ok = 0,
    /// An argument is null, misaligned or not allowed.
    InvalidArgument = 1,
    /// A handle is null, freed, of another type, or from the parent of a forked process.
    InvalidHandle = 2,
    /// Another thread is in a call with the same resolver or session.
    Busy = 3,
    /// A callback stopped the call.
    Cancelled = 4,
    /// A file does not exist.
    NotFound = 5,
    /// The system failed to read or write a file, or denied access.
    Io = 6,
    /// The input is not a trace, or of an unsupported version.
    Format = 7,
    /// The input is a damaged trace without a readable part.
    Damaged = 8,
    /// A limit was reached.
    Limit = 9,
    /// The inputs do not belong together.
    Inputs = 10,
    /// The call is not possible with this session: it is finished, or not a live one.
    State = 11,
    /// A defect of chronosym. The object of the call must be freed.
    Internal = 12,
}

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    pub status: chronosym_status,
    pub message: String,
    pub path: Option<String>,
    /// Offset in the file in bytes.
    pub offset: Option<u64>,
}

impl Failure {
    pub fn new(status: chronosym_status, message: impl Into<String>) -> Self {
        Failure {
            status,
            message: message.into(),
            path: None,
            offset: None,
        }
    }

    pub fn argument(message: impl Into<String>) -> Self {
        Failure::new(chronosym_status::InvalidArgument, message)
    }

    /// Adds the context to the failure.
    pub fn in_context(mut self, context: &str) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    pub fn of_file(path: &str, error: &std::io::Error) -> Self {
        let status = match error.kind() {
            std::io::ErrorKind::NotFound => chronosym_status::NotFound,
            _ => chronosym_status::Io,
        };
        Failure {
            path: Some(path.to_owned()),
            ..Failure::new(status, format!("cannot write {path}: {error}"))
        }
    }
}

/// The message of an error and of its causes.
pub fn message(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let error_text = error.to_string();
        // Some errors repeat their cause.
        if !text.ends_with(&error_text) {
            text = format!("{text}: {error_text}");
        }
        cause = error.source();
    }
    text
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let status = match error.kind() {
            ErrorKind::NotFound => chronosym_status::NotFound,
            ErrorKind::Io => chronosym_status::Io,
            ErrorKind::Format => chronosym_status::Format,
            ErrorKind::Damaged => chronosym_status::Damaged,
            ErrorKind::Limit => chronosym_status::Limit,
            ErrorKind::Inputs => chronosym_status::Inputs,
            ErrorKind::Cancelled => chronosym_status::Cancelled,
            _ => chronosym_status::Io,
        };
        Failure {
            status,
            message: message(&error),
            path: error.input().map(str::to_owned),
            offset: error.offset(),
        }
    }
}
