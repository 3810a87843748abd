//! The parts of an error for bindings to other languages: its kind, the input, the offset.

use std::io;

use chronosym_core::SavedError;
use chronosym_types::closed_list;

use super::error::OpenError;
use crate::ReadError;

closed_list! {
    /// The kind of an [`OpenError`], for programs that react to it.
    #[non_exhaustive]
    ErrorKind {
        /// The file does not exist.
        NotFound = "not_found",
        /// The system rejects or fails to read the file.
        Io = "io",
        /// The input is not a trace, or of an unsupported version.
        Format = "format",
        /// The input is a trace or archive that is too damaged to be read.
        Damaged = "damaged",
        /// A limit was reached before anything could be read.
        Limit = "limit",
        /// The inputs do not belong together.
        Inputs = "inputs",
        /// The caller stopped the reading.
        Cancelled = "cancelled",
    }
}

impl OpenError {
    /// Returns the kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            OpenError::Open { source, .. }
            | OpenError::Read { source, .. }
            | OpenError::Spool { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Io,
            },
            OpenError::Directory { .. }
            | OpenError::Empty { .. }
            | OpenError::NotATrace { .. }
            | OpenError::NoTraceInside { .. } => ErrorKind::Format,
            OpenError::Damaged { .. } => ErrorKind::Damaged,
            OpenError::Limit { .. } => ErrorKind::Limit,
            OpenError::NoInput
            | OpenError::SameFile { .. }
            | OpenError::Copies { .. }
            | OpenError::SeveralRecordings { .. }
            | OpenError::DifferentRecordings { .. }
            | OpenError::NoProcess { .. } => ErrorKind::Inputs,
            OpenError::Etl { source, .. } => of_etl(source),
            OpenError::Trace { source, .. } => of_read(source),
            OpenError::Cancelled => ErrorKind::Cancelled,
        }
    }

    /// Returns the name of the input that the error is about: its path, or `x.zip (inside.etl)`.
    pub fn input(&self) -> Option<&str> {
        match self {
            OpenError::Open { name, .. }
            | OpenError::Read { name, .. }
            | OpenError::Spool { name, .. }
            | OpenError::Directory { name }
            | OpenError::Empty { name }
            | OpenError::NotATrace { name, .. }
            | OpenError::NoTraceInside { name, .. }
            | OpenError::Damaged { name, .. }
            | OpenError::Limit { name, .. }
            | OpenError::NoProcess { name, .. }
            | OpenError::Etl { name, .. }
            | OpenError::Trace { name, .. } => Some(name),
            OpenError::SameFile { second, .. }
            | OpenError::Copies { second, .. }
            | OpenError::SeveralRecordings { second, .. }
            | OpenError::DifferentRecordings { second, .. } => Some(second),
            OpenError::NoInput | OpenError::Cancelled => None,
        }
    }

    /// Returns the offset in the input at which reading failed, in bytes, if it is known.
    pub fn offset(&self) -> Option<u64> {
        use chronosym_nettrace::Error as Nettrace;
        match self {
            OpenError::Etl { source, .. } => etl_offset(source),
            OpenError::Trace { source, .. } => match source {
                ReadError::Nettrace(
                    Nettrace::DamagedHeader { offset }
                    | Nettrace::BadHeader { offset, .. }
                    | Nettrace::Io { offset, .. },
                ) => Some(*offset),
                ReadError::Etl(error) => etl_offset(error),
                ReadError::Perf(chronosym_perf::Error::Io { offset, .. })
                | ReadError::Ctf(chronosym_ctf::Error::Io { offset, .. })
                | ReadError::Saved(SavedError::Damaged { offset, .. }) => Some(*offset),
                ReadError::Saved(SavedError::CutShort { length }) => Some(*length),
                _ => None,
            },
            _ => None,
        }
    }
}

fn etl_offset(error: &chronosym_etl::Error) -> Option<u64> {
    match error {
        chronosym_etl::Error::Io { offset, .. } => Some(*offset),
        _ => None,
    }
}

fn of_etl(error: &chronosym_etl::Error) -> ErrorKind {
    use chronosym_etl::Error;
    match error {
        Error::Io { .. } => ErrorKind::Io,
        Error::BadHeader(_) => ErrorKind::Damaged,
        Error::NotOneRecording { .. } | Error::Empty => ErrorKind::Inputs,
        _ => ErrorKind::Format,
    }
}

fn of_read(error: &ReadError) -> ErrorKind {
    use chronosym_nettrace::Error as Nettrace;
    match error {
        ReadError::Nettrace(Nettrace::DamagedHeader { .. } | Nettrace::BadHeader { .. })
        | ReadError::Perf(chronosym_perf::Error::DamagedHeader { .. })
        | ReadError::Saved(SavedError::CutShort { .. } | SavedError::Damaged { .. }) => {
            ErrorKind::Damaged
        }
        ReadError::Nettrace(Nettrace::Io { .. })
        | ReadError::Perf(chronosym_perf::Error::Io { .. })
        | ReadError::Ctf(chronosym_ctf::Error::Io { .. })
        | ReadError::Other(_) => ErrorKind::Io,
        ReadError::Saved(SavedError::TooLarge { .. })
        | ReadError::Ctf(chronosym_ctf::Error::MetadataTooLong { .. })
        | ReadError::Otlp(chronosym_otlp::Error::TooLong { .. }) => ErrorKind::Limit,
        ReadError::Etl(error) => of_etl(error),
        ReadError::AnotherRecording(_) => ErrorKind::Inputs,
        _ => ErrorKind::Format,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{Input, Opener};

    fn error_of(bytes: &'static [u8]) -> OpenError {
        let recording = Opener::new().open([Input::stream("it", bytes)]);
        let timeline =
            recording.and_then(|it| it.timeline(chronosym_core::Options::default()).map(|_| ()));
        timeline.unwrap_err()
    }

    #[test]
    fn errors_have_a_kind_an_input_and_an_offset() {
        let facts = |error: OpenError| {
            let input = error.input().map(str::to_owned);
            (error.kind(), input, error.offset())
        };
        let it = Some("it".to_owned());
        let empty = facts(error_of(b""));
        assert_eq!(empty, (ErrorKind::Format, it.clone(), None));
        let other = facts(error_of(b"not a trace of anything"));
        assert_eq!(other, (ErrorKind::Format, it.clone(), None));
        let gzip = facts(error_of(b"\x1f\x8bxyz"));
        assert_eq!(
            gzip,
            (ErrorKind::Damaged, Some("it (gzip)".to_owned()), None)
        );
        let saved = facts(error_of(b"chronos\0\x01\0\0\0"));
        assert_eq!(saved, (ErrorKind::Damaged, it, Some(12)));
        let missing = facts(Opener::new().open([Input::file("/nowhere")]).err().unwrap());
        let nowhere = Some("/nowhere".to_owned());
        assert_eq!(missing, (ErrorKind::NotFound, nowhere, None));
        let none = facts(Opener::new().open([]).err().unwrap());
        assert_eq!(none, (ErrorKind::Inputs, None, None));
    }
}
