/// Why a file could not be read.
///
/// Offsets are byte offsets into the structure that `what` names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not of this format at all.
    #[error("not a {what}")]
    NotA {
        /// The format that was expected.
        what: &'static str,
    },
    /// The structure ends before something it promises.
    #[error("{what} is cut short: {size} bytes wanted at offset {offset:#x}")]
    Truncated {
        /// The structure being read.
        what: &'static str,
        /// Where the missing bytes should have been.
        offset: u64,
        /// How many bytes were wanted there.
        size: u64,
    },
    /// A value that the format forbids.
    #[error("{what} is damaged at offset {offset:#x}: {problem}")]
    Damaged {
        /// The structure being read.
        what: &'static str,
        /// Where the bad value lies.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A version or variant this crate does not read.
    #[error("{what} version {version} is not supported")]
    Unsupported {
        /// The structure being read.
        what: &'static str,
        /// The version as the file states it.
        version: u32,
    },
    /// Unpacking would exceed the caller's limit.
    #[error("{what} wants {size} bytes, the limit is {limit}")]
    TooLarge {
        /// What would be unpacked.
        what: &'static str,
        /// The size the file states, or that was reached.
        size: u64,
        /// The limit given by the caller.
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
