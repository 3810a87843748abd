/// Why the chunks of a manifest could not be joined or parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The payload of an event with the id of manifests is something else.
    #[error("not a chunk of an EventSource manifest")]
    NotAChunk,
    /// A chunk is missing.
    #[error("chunk {found} of an EventSource manifest where chunk {expected} is expected")]
    MissingChunk {
        /// The number of the expected chunk.
        expected: u16,
        /// The number of the chunk.
        found: u16,
    },
    /// The chunks are longer than any real manifest.
    #[error("EventSource manifest of more than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The chunks are not XML, or not a manifest.
    #[error("invalid EventSource manifest: {0}")]
    Xml(String),
}
