//! Why a saved timeline cannot be read.

/// Why a saved timeline cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// The bytes do not start like a saved timeline.
    #[error("not a saved timeline")]
    NotSaved,
    /// A later version of this library wrote it.
    #[error(
        "saved by a later version of chronosym: version {found} of the format, {known} is the latest known one"
    )]
    NewerVersion {
        /// The version of the file.
        found: u32,
        /// The latest supported version.
        known: u32,
    },
    /// The file ends before its directory.
    #[error("the saved timeline is cut short: it ends at byte {length} without a directory")]
    CutShort {
        /// Length of the file, in bytes.
        length: u64,
    },
    /// The bytes of a part do not match its checksum, or are not valid content.
    #[error("the saved timeline is damaged: the {part} at byte {offset}")]
    Damaged {
        /// The part.
        part: &'static str,
        /// Bytes from the start of the file.
        offset: u64,
    },
    /// It would expand to more than its size permits.
    #[error(
        "the saved timeline is rejected: its {length} bytes expand to {expanded}, more than 200 times as much"
    )]
    TooLarge {
        /// Length of the file, in bytes.
        length: u64,
        /// Length of what it contains, in bytes.
        expanded: u64,
    },
}
