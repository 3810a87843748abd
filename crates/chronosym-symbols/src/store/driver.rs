//! The interface between a search and the disk and network.

use std::future::{Future, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::{self, Disk, Listing};
use super::identify::IdentifyError;
use super::url::UrlError;
use crate::cache;
use crate::identity::{FileIdentity, Wanted};

/// Accesses disk and network for a search. The provided methods access the disk, blocking.
pub trait Driver: Sync {
    /// Returns the folder listings, shared by all searches.
    fn disk(&self) -> &Disk;

    /// Reads the identity of a file of the kind of `wanted`.
    fn identify(
        &self,
        path: &Path,
        wanted: &Wanted,
    ) -> impl Future<Output = Result<FileIdentity, IdentifyError>> + Send;

    /// Requests a URL with GET and writes the body of a 200 to the new file `to`, at most `limit`
    /// bytes. Does not follow redirects or retry, and leaves no file on failure. The URL may
    /// contain secrets, which [`redacted`](super::redacted) removes.
    fn download(&self, url: &str, to: &Path, limit: u64) -> impl Future<Output = Fetched> + Send;

    /// Waits.
    fn wait(&self, pause: Duration) -> impl Future<Output = ()> + Send;

    /// Returns the names in a folder.
    fn list(&self, folder: &Path) -> impl Future<Output = Listing> + Send {
        ready(self.disk().list(folder))
    }

    /// Returns the regular files below `folder` whose path is one of `candidates` (components),
    /// letter case aside; in the order of the candidates, exact spelling first. An empty candidate
    /// is `folder` itself, if that is a file.
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

    /// Makes a folder ready to take files, and fails if it cannot take any. A new cache folder is
    /// marked as such, and may be pruned later.
    fn prepare(&self, folder: &Path, cache: bool) -> impl Future<Output = io::Result<()>> + Send {
        let prepared = match cache {
            true => cache::prepare(folder),
            false => std::fs::create_dir_all(folder),
        };
        ready(prepared.and_then(|()| disk::can_write(folder)))
    }

    /// Decompresses a cabinet or gzip file to a new file of up to `limit` bytes. Returns false, and
    /// writes nothing, if it is neither.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::FileTooLarge`] beyond the limit, and those of the file system.
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

    /// Moves a file atomically to its location on the same file system, creating folders as needed,
    /// and replaces an existing file.
    fn install(&self, from: &Path, to: &Path) -> impl Future<Output = io::Result<()>> + Send {
        ready(disk::install(from, to))
    }

    /// Removes a file, if it is there.
    fn remove(&self, path: &Path) -> impl Future<Output = ()> + Send {
        drop(std::fs::remove_file(path));
        ready(())
    }

    /// Marks a cached file as used now, so that it is pruned later than others.
    fn touch(&self, path: &Path) -> impl Future<Output = ()> + Send {
        drop(cache::touch(path));
        ready(())
    }

    /// Returns whether `what` was recorded as missing in a cache folder at most `max_age` ago.
    fn recall_missing(
        &self,
        cache: &Path,
        what: &str,
        max_age: Duration,
    ) -> impl Future<Output = bool> + Send {
        ready(cache::recall_missing(cache, what, max_age))
    }

    /// Records `what` as missing in a cache folder.
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

/// The result of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fetched {
    /// Status 200; the whole body was saved.
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
    /// The server took too long to connect or to send.
    TimedOut,
    /// No connection: name not resolved, connection refused, TLS failed.
    Unreachable(String),
    /// The connection broke or the response is not HTTP or incomplete.
    Broken(String),
    /// The body could not be saved.
    NotSaved(String),
}

/// Why a source file was not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFetched {
    /// No server is configured, or fetching is disabled.
    #[error("downloads are disabled")]
    Off,
    /// The URL is not http or https.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The status of the response.
    #[error("the server returned {0}")]
    Status(u16),
    /// The file is larger than this, in bytes.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The connection failed, or the disk.
    #[error("{0}")]
    Failed(String),
}
