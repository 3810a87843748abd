use std::io;

/// Why a trace cannot be opened or merged, or a part of it cannot be read.
///
/// Damage inside a trace is not an error: readable records are delivered, the rest is counted in
/// [`Diagnostics`](crate::Diagnostics).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source failed. Every record before that has been delivered.
    #[error("cannot read the trace at offset {offset}: {source}")]
    Io {
        /// Byte offset in the source.
        offset: u64,
        /// The source's own error.
        source: io::Error,
    },
    /// The first buffer is not that of an .etl file.
    #[error("not an .etl trace: {0}")]
    NotEtl(&'static str),
    /// A log written before Windows Vista (layout version below 1.4) frames its records
    /// differently.
    #[error(
        "the trace has log layout {major}.{minor}; 1.4 (Windows Vista) is the oldest supported"
    )]
    OldLayout {
        /// Major version of the layout.
        major: u8,
        /// Minor version of the layout.
        minor: u8,
    },
    /// The log file header holds an impossible value.
    #[error("damaged log file header: {0}")]
    BadHeader(&'static str),
    /// Traces that were not recorded together have no common clock.
    #[error("trace {index} belongs to another recording: its {what} differs")]
    NotOneRecording {
        /// Position of the trace in the list given to [`Reader::merge`](crate::Reader::merge).
        index: usize,
        /// The header field that differs.
        what: &'static str,
    },
    /// [`Reader::merge`](crate::Reader::merge) was given nothing.
    #[error("no trace to merge")]
    Empty,
}
