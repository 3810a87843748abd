//! Errors of files that the caller names.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use chronosym_symbols::identity::PdbId;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file has no managed code, or does not describe any; another reader may accept it.
    #[error("{}: no managed code", path.display())]
    NotManaged {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The PDB does not belong to the managed image.
    #[error("{} is the PDB of another build than {}", pdb.display(), image.display())]
    OtherBuild {
        /// The PDB.
        pdb: PathBuf,
        /// The image.
        image: PathBuf,
    },
    /// The PDB does not belong to the native image.
    #[error("{} is the PDB of another build: the image asks for {wanted}, the file is {id}", pdb.display())]
    OtherPdb {
        /// The PDB.
        pdb: PathBuf,
        /// The id in the image.
        wanted: PdbId,
        /// The id in the PDB.
        id: PdbId,
    },
}

impl OpenError {
    pub(super) fn not_managed(path: &Path) -> Self {
        Self::NotManaged {
            path: path.to_owned(),
        }
    }

    /// Returns an error with the path of the file, which `error` may omit.
    pub(super) fn unreadable(path: &Path, error: &chronosym_symbols::Error) -> Self {
        match error {
            chronosym_symbols::Error::Io { source, .. } => Self::damaged(path, source),
            other => Self::damaged(path, other),
        }
    }

    pub(super) fn damaged(path: &Path, why: impl Display) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}
