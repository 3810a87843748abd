use std::path::PathBuf;

use crate::identity::BuildId;

/// Why a symbol file could not be found, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are in no format that is read here.
    #[error("not an ELF or PE file")]
    UnknownFormat,
    /// A known format in a variant that is not read.
    #[error("{what} is not read")]
    Unsupported {
        /// The variant.
        what: &'static str,
    },
    /// A structure of the file contradicts itself or its format.
    #[error("{what} is damaged: {problem}")]
    Damaged {
        /// The structure: a section, a table, a unit.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is of another build than the one asked for.
    #[error("build id {} wanted, the file has {}", wanted, found.as_ref().map_or_else(|| "none".to_owned(), |f| f.to_string()))]
    BuildIdMismatch {
        /// The build asked for.
        wanted: BuildId,
        /// The build that the file says it is of, if it says so.
        found: Option<BuildId>,
    },
    /// The file is not the debug file of an image.
    #[error("not the debug file of this image: {problem}")]
    NotItsDebugFile {
        /// In what it differs.
        problem: String,
    },
    /// Unpacking something would exceed the limit.
    #[error("{what} would unpack to {size} bytes, the limit is {limit}")]
    TooLarge {
        /// What would be unpacked.
        what: String,
        /// The size stated or reached, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: u64,
    },
}

impl Error {
    pub(crate) fn damaged(what: impl Into<String>, problem: impl ToString) -> Self {
        Self::Damaged {
            what: what.into(),
            problem: problem.to_string(),
        }
    }
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
