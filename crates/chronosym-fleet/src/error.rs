//! The error of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// Why tables could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A table cannot be encoded.
    #[error("cannot encode {}: {reason}", .path.display())]
    Encode {
        /// The file of the table.
        path: PathBuf,
        /// The encoder's message.
        reason: String,
    },
    /// A table cannot be read.
    #[error("cannot read {}: {reason}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Error {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Error::Write { path, source }
    }

    pub(crate) fn read<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |error| Error::Read {
            path,
            reason: error.to_string(),
        }
    }

    pub(crate) fn encode<E: std::fmt::Display>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |error| Error::Encode {
            path,
            reason: error.to_string(),
        }
    }
}
