use std::io;

/// Why a trace could not be read at all, or no further.
///
/// Damage inside a trace is no error: what can be read is delivered, the rest is counted in
/// [`Diagnostics`](crate::Diagnostics).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream does not begin like a nettrace or netperf file.
    #[error(
        "not a .nettrace or .netperf trace: expected \"Nettrace\" or \"!FastSerialization.1\" at its start, found {found}"
    )]
    NotATrace {
        /// What stands there instead, for people: `an empty file` or the first bytes.
        found: String,
    },
    /// A version of the format that this reader does not know.
    #[error("{format} version {version} is not supported (known: {known})")]
    UnsupportedVersion {
        /// `nettrace` or `netperf`.
        format: &'static str,
        /// The version found.
        version: u32,
        /// The versions that can be read.
        known: &'static str,
    },
    /// The trace header is not laid out like one.
    #[error("the trace header is damaged near offset {offset}")]
    DamagedHeader {
        /// Stream offset in bytes.
        offset: u64,
    },
    /// The trace header holds values that no time or address could be read with.
    #[error("the trace header at offset {offset} has {what} {value}")]
    BadHeader {
        /// Stream offset of the header's payload, in bytes.
        offset: u64,
        /// The field that is wrong.
        what: &'static str,
        /// What it holds.
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
