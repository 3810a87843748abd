/// Why the pieces of a manifest make no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// An event of this id that holds something else.
    #[error("not a piece of an EventSource manifest")]
    NotAPiece,
    /// A piece is missing.
    #[error("piece {found} of an EventSource manifest follows where piece {expected} is due")]
    MissingPiece {
        /// The piece that is due.
        expected: u16,
        /// The piece that came.
        found: u16,
    },
    /// The pieces are longer than any real manifest.
    #[error("EventSource manifest of more than {limit} bytes")]
    TooLong {
        /// The greatest length that is accepted.
        limit: usize,
    },
    /// The pieces are no XML, or no manifest.
    #[error("EventSource manifest that cannot be read: {0}")]
    Xml(String),
}
