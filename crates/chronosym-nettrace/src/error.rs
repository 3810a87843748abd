use std::io;

/// Why reading failed.
///
/// Damage inside a trace is not an error: readable events are delivered, the rest is counted in
/// [`Diagnostics`](crate::Diagnostics).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream does not start like a nettrace or netperf file.
    #[error(
        "not a .nettrace or .netperf trace: expected \"Nettrace\" or \"!FastSerialization.1\" at its start, found {found}"
    )]
    NotATrace {
        /// Its first bytes, for messages, or `an empty file`.
        found: String,
    },
    /// An unsupported version of the format.
    #[error("{format} version {version} is not supported (known: {known})")]
    UnsupportedVersion {
        /// `nettrace` or `netperf`.
        format: &'static str,
        /// The version found.
        version: u32,
        /// The versions that can be read.
        known: &'static str,
    },
    /// The trace header is malformed.
    #[error("the trace header is damaged near offset {offset}")]
    DamagedHeader {
        /// Stream offset in bytes.
        offset: u64,
    },
    /// The trace header holds an impossible value.
    #[error("the trace header at offset {offset} has {what} {value}")]
    BadHeader {
        /// Stream offset of the header's payload, in bytes.
        offset: u64,
        /// The field that is wrong.
        what: &'static str,
        /// The value.
        value: i64,
    },
    /// The source failed. Every event read before it has been delivered.
    #[error("reading the trace failed at offset {offset}")]
    Io {
        /// Stream offset in bytes.
        offset: u64,
        /// The source's own error.
        source: io::Error,
    },
}
