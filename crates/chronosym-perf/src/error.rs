use std::io;

/// Why reading failed.
///
/// Damage inside a file is not an error: readable records are delivered, the rest is counted in the
/// reader's diagnostics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source does not start like the format.
    #[error("not {expected}: it begins with {found}")]
    WrongFormat {
        /// The expected format.
        expected: &'static str,
        /// Its first bytes, for messages, or `an empty file`.
        found: String,
    },
    /// The output of `simpleperf report-sample`, which is not a recording.
    #[error(
        "a report of simpleperf (report-sample --protobuf), not a recording: give the perf.data that it was made of"
    )]
    SimpleperfReport,
    /// An unsupported version of the format.
    #[error("{format} version {version} is not supported (known: {known})")]
    UnsupportedVersion {
        /// The format.
        format: &'static str,
        /// The version found.
        version: u32,
        /// The versions that can be read.
        known: &'static str,
    },
    /// The header of the file is cut short or has an impossible value.
    #[error("the header of {format} is damaged: {what}")]
    DamagedHeader {
        /// The format.
        format: &'static str,
        /// The problem.
        what: &'static str,
    },
    /// The attributes follow the samples, as `perf inject` may write them: such a file can only be
    /// read from a seekable source.
    #[error(
        "the events of this perf.data are described after its samples: it cannot be read from a stream"
    )]
    AttrsAfterData,
    /// The source failed. Every record read before it has been delivered.
    #[error("reading failed at offset {offset}")]
    Io {
        /// Offset in bytes.
        offset: u64,
        /// The source's own error.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn wrong_format(expected: &'static str, begins: &[u8]) -> Self {
        let found = match begins.len() {
            0 => "nothing: an empty file".to_owned(),
            _ => format!("\"{}\"", begins.get(..8).unwrap_or(begins).escape_ascii()),
        };
        Self::WrongFormat { expected, found }
    }
}
