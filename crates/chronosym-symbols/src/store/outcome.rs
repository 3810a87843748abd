//! What came of a search, and why.

use std::fmt;
use std::path::PathBuf;

use crate::identity::{FileIdentity, Wanted};

/// The answer to a [`Request`](super::Request).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The file, or why there is none.
    pub file: Result<LocatedFile, NoFile>,
    /// Every place looked at, in order, the one that had the file last.
    pub attempts: Vec<Attempt>,
}

/// A file whose identity is the wanted one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocatedFile {
    /// Where it is now.
    pub path: PathBuf,
    /// What it says of itself.
    pub id: FileIdentity,
}

/// Why there is no file: the most telling of what was met with, in the order mismatch, damage, trust, offline, none.
///
/// The names are those of the reasons that frames carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoFile {
    /// No place had a file of that name or key, or the trace gives no identity to check one against.
    #[error("no symbol file")]
    NoSymbolFile,
    /// There was a file, but of another build.
    #[error("{place} is {found}, wanted is {wanted}")]
    SymbolFileMismatch {
        /// What was asked for.
        wanted: Wanted,
        /// What was found.
        found: FileIdentity,
        /// Where.
        place: Place,
    },
    /// There was a file, but it is damaged.
    #[error("{place} is damaged: {why}")]
    SymbolFileDamaged {
        /// Where.
        place: Place,
        /// In what way.
        why: String,
    },
    /// A file stands where the trace says, but the trace's paths are not trusted.
    #[error("{path} exists, but paths out of the trace are not trusted")]
    PathNotTrusted {
        /// The path.
        path: String,
    },
    /// A server would have been asked.
    #[error("not fetched: offline")]
    Offline,
}

impl NoFile {
    /// The reason's name in the closed list.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoSymbolFile => "NoSymbolFile",
            Self::SymbolFileMismatch { .. } => "SymbolFileMismatch",
            Self::SymbolFileDamaged { .. } => "SymbolFileDamaged",
            Self::PathNotTrusted { .. } => "PathNotTrusted",
            Self::Offline => "Offline",
        }
    }
}

/// A place looked at, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The place.
    pub place: Place,
    /// What came of it.
    pub trial: Trial,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.trial)
    }
}

/// A place where a symbol file may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A folder, in all the layouts that it may have.
    Folder(PathBuf),
    /// A folder that came with the trace.
    TraceFolder(PathBuf),
    /// One file.
    File(PathBuf),
    /// A server or one URL, without secrets.
    Url(String),
    /// A path that the trace names.
    TracePath(String),
    /// No place at all: the request itself.
    Request,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) | Self::File(path) => write!(f, "{}", path.display()),
            Self::TraceFolder(path) => write!(f, "{} (came with the trace)", path.display()),
            Self::Url(url) => f.write_str(url),
            Self::TracePath(path) => write!(f, "{path} (path of the trace)"),
            Self::Request => f.write_str("the request"),
        }
    }
}

/// What came of looking at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trial {
    /// The wanted file.
    Found,
    /// Nothing of that name or key.
    NotFound,
    /// The server said so not long ago: it was not asked again.
    KnownMissing,
    /// A file of another build.
    Mismatch(FileIdentity),
    /// A file that is damaged.
    Damaged(String),
    /// Not opened: the trace's paths are not trusted.
    NotTrusted,
    /// Not asked: offline.
    Offline,
    /// Not asked: the server failed before in this run, in this way.
    ServerDown(String),
    /// The server took too long.
    TimedOut,
    /// Larger than allowed, in bytes.
    TooLarge(u64),
    /// Not done, and why: a hostile name, a redirect or pointer that is not followed.
    Refused(String),
    /// It did not work, and why.
    Failed(String),
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found => f.write_str("found"),
            Self::NotFound => f.write_str("not found"),
            Self::KnownMissing => f.write_str("not found when last asked"),
            Self::Mismatch(id) => write!(f, "mismatch: {id}"),
            Self::Damaged(why) => write!(f, "damaged: {why}"),
            Self::NotTrusted => f.write_str("exists, not trusted"),
            Self::Offline => f.write_str("not asked: offline"),
            Self::ServerDown(why) => write!(f, "not asked again: {why}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::TooLarge(limit) => write!(f, "larger than {limit} bytes"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}
