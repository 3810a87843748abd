use std::path::PathBuf;

use crate::identity::BuildId;

/// Why a symbol file could not be read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An I/O error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is in another format.
    #[error("not an ELF, PE, Mach-O or Breakpad file")]
    UnknownFormat,
    /// A universal file has several images, or none for the processor or build that is chosen.
    #[error("universal file of {processors}: choose one of them with FILE:PROCESSOR")]
    Universal {
        /// The processors of its images.
        processors: String,
    },
    /// A format or variant that is recognised but not read.
    #[error("{what} is not read")]
    Unsupported {
        /// The variant.
        what: &'static str,
    },
    /// A structure of the file is malformed.
    #[error("{what} is damaged: {problem}")]
    Damaged {
        /// The structure: a section, a table, a unit.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is of another build.
    #[error("build id {} expected, the file has {}", wanted, found.as_ref().map_or_else(|| "none".to_owned(), |f| f.to_string()))]
    BuildIdMismatch {
        /// The build ID of the request.
        wanted: BuildId,
        /// The build ID of the file, if it has one.
        found: Option<BuildId>,
    },
    /// The file is not the debug file of an image.
    #[error("not the debug file of this image: {problem}")]
    NotItsDebugFile {
        /// The difference.
        problem: String,
    },
    /// Decompression would exceed the limit.
    #[error("{what} would expand to {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The data to decompress.
        what: String,
        /// The recorded or reached size, in bytes.
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
