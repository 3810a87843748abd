//! The border between deciding and doing: what a search asks of disk and network.

use std::future::{Future, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::{self, Disk};
use super::identify::IdentifyError;
use super::url::UrlError;
use crate::cache;
use crate::identity::{FileIdentity, Wanted};

/// Does what a search asks, each thing in its own time. What is for the disk is done at once, blocking, unless it is written anew.
pub trait Driver: Sync {
    /// What folders were seen to hold: one for each run.
    fn disk(&self) -> &Disk;

    /// Reads the identity of a file, of which `wanted` says the kind.
    fn identify(
        &self,
        path: &Path,
        wanted: &Wanted,
    ) -> impl Future<Output = Result<FileIdentity, IdentifyError>> + Send;

    /// Requests a URL with GET and writes the body of a 200 to the new file `to`, `limit` bytes at most; follows no redirect,
    /// repeats nothing, and leaves no file where it fails. The URL may hold secrets: [`redacted`](super::redacted) shows it
    /// without.
    fn download(&self, url: &str, to: &Path, limit: u64) -> impl Future<Output = Fetched> + Send;

    /// Lets time pass.
    fn wait(&self, pause: Duration) -> impl Future<Output = ()> + Send;

    /// The regular files below `folder` whose path is one of `candidates` (components), letter case aside; in the order of the
    /// candidates, exact spelling first. An empty candidate is `folder` itself, if that is a file.
    fn find(
        &self,
        folder: &Path,
        candidates: &[Vec<String>],
    ) -> impl Future<Output = Vec<PathBuf>> + Send {
        ready(self.disk().find(folder, candidates))
    }

    /// Reads a small text file, at most 4 KiB of it.
    fn read_text(&self, path: &Path) -> impl Future<Output = io::Result<String>> + Send {
        ready(disk::read_text(path))
    }

    /// Makes a folder ready to take files. A new cache folder is marked as such, and may be pruned later.
    fn prepare(&self, folder: &Path, cache: bool) -> impl Future<Output = io::Result<()>> + Send {
        ready(match cache {
            true => cache::prepare(folder),
            false => std::fs::create_dir_all(folder),
        })
    }

    /// Unpacks a cabinet or gzip file to a new file, `limit` bytes at most: beyond them it fails with
    /// [`io::ErrorKind::FileTooLarge`]. False if it is neither, and nothing was written.
    fn unpack(
        &self,
        from: &Path,
        to: &Path,
        limit: u64,
    ) -> impl Future<Output = io::Result<bool>> + Send {
        ready(disk::unpack(from, to, limit))
    }

    /// Copies a file to a new file, making its folder as needed.
    fn copy(&self, from: &Path, to: &Path) -> impl Future<Output = io::Result<()>> + Send {
        ready(disk::copy(from, to))
    }

    /// Moves a file to its place on the same file system at once, making folders as needed, over what may stand there.
    fn install(&self, from: &Path, to: &Path) -> impl Future<Output = io::Result<()>> + Send {
        ready(disk::install(from, to))
    }

    /// Removes a file, if it is there.
    fn remove(&self, path: &Path) -> impl Future<Output = ()> + Send {
        drop(std::fs::remove_file(path));
        ready(())
    }

    /// Notes that a cached file was used now, so that it is pruned later than others.
    fn touch(&self, path: &Path) -> impl Future<Output = ()> + Send {
        drop(cache::touch(path));
        ready(())
    }

    /// Whether `what` was noted as missing in a cache folder no longer than `max_age` ago.
    fn recall_missing(
        &self,
        cache: &Path,
        what: &str,
        max_age: Duration,
    ) -> impl Future<Output = bool> + Send {
        ready(cache::recall_missing(cache, what, max_age))
    }

    /// Notes `what` as missing in a cache folder.
    fn note_missing(&self, cache: &Path, what: &str) -> impl Future<Output = ()> + Send {
        drop(cache::note_missing(cache, what));
        ready(())
    }

    /// Removes the longest unused files of a cache folder until it holds at most `limit` bytes.
    fn prune(&self, cache: &Path, limit: u64) -> impl Future<Output = ()> + Send {
        drop(cache::prune(cache, limit));
        ready(())
    }
}

/// What came of asking a server once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fetched {
    /// A 200, its whole body saved.
    Saved,
    /// Any other status.
    Status {
        /// The status code.
        code: u16,
        /// The `Location` header.
        location: Option<String>,
        /// The `Retry-After` header, where it is a number of seconds.
        retry_after: Option<Duration>,
    },
    /// The body is larger than allowed.
    TooLarge,
    /// The server took too long, to connect or to go on.
    TimedOut,
    /// No connection: name not resolved, connection refused, TLS failed.
    Unreachable(String),
    /// The connection broke or the response is not HTTP or incomplete.
    Broken(String),
    /// The server did well, but the body could not be saved.
    NotSaved(String),
}

/// Why a source file was not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFetched {
    /// No server is configured, or fetching is forbidden.
    #[error("nothing is to be fetched")]
    Off,
    /// It is at no address of http or https.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// What the server answered.
    #[error("the server answered {0}")]
    Status(u16),
    /// It is larger than this, in bytes.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The connection failed, or the disk.
    #[error("{0}")]
    Failed(String),
}
