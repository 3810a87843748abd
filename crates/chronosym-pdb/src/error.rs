/// Why a file could not be read.
///
/// Offsets are in bytes from the start of the structure that `what` names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are of another format.
    #[error("not a {what}")]
    NotA {
        /// The expected format.
        what: &'static str,
    },
    /// The structure ends before the value.
    #[error("{what} is cut short: {size} bytes wanted at offset {offset:#x}")]
    Truncated {
        /// The structure being read.
        what: &'static str,
        /// Offset of the value.
        offset: u64,
        /// Size of the value in bytes.
        size: u64,
    },
    /// A value that the format forbids.
    #[error("{what} is damaged at offset {offset:#x}: {problem}")]
    Damaged {
        /// The structure being read.
        what: &'static str,
        /// Offset of the value.
        offset: u64,
        /// The problem with the value.
        problem: &'static str,
    },
    /// A version or variant that this crate does not read.
    #[error("{what} version {version} is not supported")]
    Unsupported {
        /// The structure being read.
        what: &'static str,
        /// The version in the file.
        version: u32,
    },
    /// Decompression would exceed the caller's limit.
    #[error("{what} wants {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The data to decompress.
        what: &'static str,
        /// The size that the file states, or that was reached, in bytes.
        size: u64,
        /// The caller's limit in bytes.
        limit: u64,
    },
}

impl Error {
    pub(crate) fn truncated(what: &'static str, offset: u64, size: u64) -> Self {
        Self::Truncated { what, offset, size }
    }

    pub(crate) fn damaged(what: &'static str, offset: u64, problem: &'static str) -> Self {
        Self::Damaged {
            what,
            offset,
            problem,
        }
    }
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
