//! The border between deciding and doing: what an acquisition asks for, and what it is told.

use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::url::redacted;
use super::{IdentifyError, Outcome};
use crate::identity::{FileIdentity, Wanted};

/// Something to do. [`Disk::perform`](super::Disk::perform) does all but [`Download`](Self::Download) and
/// [`Wait`](Self::Wait).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// List the regular files below `folder` whose path is one of `candidates` (components), letter case aside; in the
    /// order of the candidates, exact spelling first. Answer: [`Answer::Files`].
    Find {
        /// The folder.
        folder: PathBuf,
        /// Paths below it, as components. An empty one is `folder` itself, if that is a file.
        candidates: Vec<Vec<String>>,
    },
    /// Read the identity of a file. Answer: [`Answer::Identity`].
    Identify {
        /// The file.
        path: PathBuf,
        /// Which kind is expected.
        wanted: Wanted,
    },
    /// Read a small text file, at most 4 KiB of it. Answer: [`Answer::Text`].
    ReadText {
        /// The file.
        path: PathBuf,
    },
    /// Make a folder ready to take files. Answer: [`Answer::Done`] or [`Answer::Failed`].
    Prepare {
        /// The folder.
        folder: PathBuf,
        /// Whether it is the cache folder: a new one is marked as such, and may be pruned later.
        cache: bool,
    },
    /// Request a URL with GET and write the body of a 200 to a new file; follow no redirect, repeat nothing. Answer:
    /// [`Answer::Fetched`].
    Download {
        /// The URL. May hold secrets: do not show it.
        url: String,
        /// The file to write. Whatever happens, it need not be removed.
        to: PathBuf,
        /// Most bytes to take.
        limit: u64,
    },
    /// Unpack a cabinet or gzip file to a new file. Answer: [`Answer::Done`], [`Answer::Failed`],
    /// [`Answer::TooLarge`], or [`Answer::Known`]`(false)` if it is neither, and nothing was written.
    Unpack {
        /// The file to read.
        from: PathBuf,
        /// The file to write.
        to: PathBuf,
        /// Most bytes to write.
        limit: u64,
    },
    /// Copy a file to a new file, making its folder as needed. Answer: [`Answer::Done`] or [`Answer::Failed`].
    Copy {
        /// The file to read.
        from: PathBuf,
        /// The file to write.
        to: PathBuf,
    },
    /// Move a file to its place at once, making folders as needed, over what may stand there. Answer:
    /// [`Answer::Done`] or [`Answer::Failed`].
    Install {
        /// The file, on the same file system.
        from: PathBuf,
        /// Its place.
        to: PathBuf,
    },
    /// Remove a file, if it is there. Answer: anything.
    Remove {
        /// The file.
        path: PathBuf,
    },
    /// Note that a cached file was used now, so that it is pruned later than others. Answer: anything.
    Touch {
        /// The file.
        path: PathBuf,
    },
    /// Look up whether something was noted as missing in a cache folder. Answer: [`Answer::Known`].
    RecallMissing {
        /// The cache folder.
        cache: PathBuf,
        /// What.
        what: String,
        /// How long such a note counts.
        max_age: Duration,
    },
    /// Note something as missing in a cache folder. Answer: anything.
    NoteMissing {
        /// The cache folder.
        cache: PathBuf,
        /// What.
        what: String,
    },
    /// Remove the longest unused files of a cache folder until it holds at most so much. Answer: anything.
    Prune {
        /// The cache folder.
        cache: PathBuf,
        /// Bytes.
        limit: u64,
    },
    /// Let this much time pass. Answer: anything.
    Wait(Duration),
}

impl Step {
    /// The URL of a [`Download`](Self::Download), fit to be shown: without user name, password and query.
    pub fn shown_url(&self) -> Option<String> {
        match self {
            Self::Download { url, .. } => Some(redacted(url)),
            _ => None,
        }
    }
}

/// What came of a [`Step`]. An answer that does not belong to the step counts as a failure of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// It is done.
    Done,
    /// It did not work, and why.
    Failed(String),
    /// More bytes than allowed.
    TooLarge,
    /// Files that exist.
    Files(Vec<PathBuf>),
    /// An identity, or why there is none.
    Identity(Result<FileIdentity, IdentifyError>),
    /// A text; `None` if there is no such file or it cannot be read.
    Text(Option<String>),
    /// Whether something is known.
    Known(bool),
    /// What a server said.
    Fetched(Fetched),
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

/// What an acquisition needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Do this, and answer.
    Need(Step),
    /// It is over.
    Done(Outcome),
}

/// Hands a step out of the search and an answer into it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel(Arc<Mutex<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    step: Option<Step>,
    answer: Option<Answer>,
}

impl Channel {
    /// Suspends the search until its driver has answered.
    pub(crate) async fn ask(&self, step: Step) -> Answer {
        self.slot().step = Some(step);
        poll_fn(|_| match self.slot().answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    pub(crate) fn take_step(&self) -> Option<Step> {
        self.slot().step.take()
    }

    pub(crate) fn put_answer(&self, answer: Answer) {
        self.slot().answer = Some(answer);
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
