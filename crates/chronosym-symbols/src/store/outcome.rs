//! The result of a search, and its reasons.

use std::fmt;
use std::path::PathBuf;

use crate::identity::{FileIdentity, Wanted};

/// The result of a [`Request`](super::Request).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The file, or why there is none.
    pub file: Result<LocatedFile, NoFile>,
    /// Every location searched, in order; the last one had the file.
    pub attempts: Vec<Attempt>,
}

/// A file whose identity is the wanted one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocatedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its identity.
    pub id: FileIdentity,
}

/// Why there is no file: the most specific reason, in the order mismatch, damage, offline, trust,
/// none.
///
/// The names are those of the reasons of frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoFile {
    /// No location had a file of that name or key, or the trace gives no identity to check one
    /// against.
    #[error("no symbol file")]
    NoSymbolFile,
    /// There was a file, but of another build.
    #[error("{location} is {found}, expected {wanted}")]
    SymbolFileMismatch {
        /// The requested identity.
        wanted: Wanted,
        /// The identity of the file.
        found: FileIdentity,
        /// Its location.
        location: SearchLocation,
    },
    /// There was a file, but it is damaged.
    #[error("{location} is damaged: {why}")]
    SymbolFileDamaged {
        /// Its location.
        location: SearchLocation,
        /// What is damaged.
        why: String,
    },
    /// The trace states a path that was not searched, because such paths are not trusted.
    #[error("not searched at {path}: paths in the trace are not trusted")]
    PathNotTrusted {
        /// The path.
        path: String,
    },
    /// A server would have been queried.
    #[error("not downloaded: offline")]
    Offline,
}

impl NoFile {
    /// Returns the reason's name in the closed list.
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

/// A location searched, and the result.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The location.
    pub location: SearchLocation,
    /// The result.
    pub result: AttemptResult,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.result)
    }
}

/// A location where a symbol file may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchLocation {
    /// A folder, in all the layouts that it may have.
    Folder(PathBuf),
    /// A folder that came with the trace.
    TraceFolder(PathBuf),
    /// One file.
    File(PathBuf),
    /// A server or one URL, without secrets.
    Url(String),
    /// A path of the trace.
    TracePath(String),
    /// The request itself.
    Request,
}

impl fmt::Display for SearchLocation {
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

/// The result of searching a location.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptResult {
    /// The wanted file.
    Found,
    /// No file with the name or key.
    NotFound,
    /// The server reported it missing recently and was not queried again.
    KnownMissing,
    /// A file of another build.
    Mismatch(FileIdentity),
    /// A file that is damaged.
    Damaged(String),
    /// Not opened: the trace's paths are not trusted.
    NotTrusted,
    /// Not queried: offline.
    Offline,
    /// Not queried: the server failed before in this run, for this reason.
    ServerDown(String),
    /// The server took too long.
    TimedOut,
    /// Larger than allowed, in bytes.
    TooLarge(u64),
    /// Rejected, and why: a hostile name, a redirect or pointer that is not followed.
    Refused(String),
    /// Failed, and why.
    Failed(String),
}

impl AttemptResult {
    /// Returns why a server gave no answer; `None` if it gave one, or was not queried.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Self::ServerDown(why) | Self::Failed(why) => Some(why),
            Self::TimedOut => Some("timed out"),
            _ => None,
        }
    }
}

impl fmt::Display for AttemptResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found => f.write_str("found"),
            Self::NotFound => f.write_str("not found"),
            Self::KnownMissing => f.write_str("not found by the last query"),
            Self::Mismatch(id) => write!(f, "mismatch: {id}"),
            Self::Damaged(why) => write!(f, "damaged: {why}"),
            Self::NotTrusted => f.write_str("not opened: paths in the trace are not trusted"),
            Self::Offline => f.write_str("not contacted: offline"),
            Self::ServerDown(why) => write!(f, "not contacted again: {why}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::TooLarge(limit) => write!(f, "larger than {limit} bytes"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}
