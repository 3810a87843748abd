use std::io;

/// Why reading failed.
///
/// Damage inside a trace is not an error: readable events are delivered, the rest is counted in
/// [`Diagnostics`](crate::Diagnostics).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not metadata, neither in packets nor as text.
    #[error("not CTF metadata: it begins with {found}")]
    NotMetadata {
        /// Its first bytes, for messages.
        found: String,
    },
    /// The metadata is longer than [`Options::metadata_limit`](crate::Options::metadata_limit).
    #[error("CTF metadata of more than {limit} bytes")]
    MetadataTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// An unsupported version of the format.
    #[error("CTF {major}.{minor} is not supported (known: 1.8)")]
    UnsupportedVersion {
        /// Major version.
        major: u64,
        /// Minor version.
        minor: u64,
    },
    /// The metadata declares no stream.
    #[error("CTF metadata without a stream that can be read")]
    NothingDescribed,
    /// The source of a stream failed. Every event before, of all streams, has been delivered.
    #[error("reading stream {stream} failed at offset {offset}")]
    Io {
        /// Index of the stream in [`Source::streams`](crate::Source::streams).
        stream: usize,
        /// Offset in bytes.
        offset: u64,
        /// The source's own error.
        source: io::Error,
    },
}
