use std::io;

/// Why a trace cannot be read at all, or no further.
///
/// Damage inside a trace is no error: what can be read is delivered, the rest is counted in
/// [`Diagnostics`](crate::Diagnostics).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no metadata: neither its packets nor its text.
    #[error("not CTF metadata: it begins with {found}")]
    NotMetadata {
        /// What stands there instead, for people.
        found: String,
    },
    /// The metadata is longer than [`Options::metadata_limit`](crate::Options::metadata_limit).
    #[error("CTF metadata of more than {limit} bytes")]
    MetadataTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A version of the format that this reader does not know.
    #[error("CTF {major}.{minor} is not supported (known: 1.8)")]
    UnsupportedVersion {
        /// The number before the point.
        major: u64,
        /// The number behind it.
        minor: u64,
    },
    /// The metadata says nothing of packets and events: there is nothing that could be read with it.
    #[error("CTF metadata without a stream that can be read")]
    NothingDescribed,
    /// The source of a stream failed. Every event that was read before has been delivered, those of other streams too.
    #[error("reading stream {stream} failed at offset {offset}")]
    Io {
        /// The stream, in the order in which they were added.
        stream: usize,
        /// Offset in bytes.
        offset: u64,
        /// The source's own error.
        source: io::Error,
    },
}
