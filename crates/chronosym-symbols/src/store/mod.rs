//! Where symbol files come from: folders, symbol stores, servers, and the cache on disk.
//!
//! What is asked for is a [`Request`]: an identity and a name. [`Stores`] answers it, blocking. Underneath stands
//! [`Acquisition`], which decides and remembers but touches neither disk nor network: it says what to do next as a
//! [`Step`] and takes the [`Answer`], so that a profiler can drive it in its own way.
//!
//! Places are searched in this order, and the first file whose own identity is the wanted one ends the search:
//! 1. the folders given by the user ([`StoreConfig::folders`]), flat and keyed;
//! 2. the folders that came with the trace ([`StoreConfig::trace_folders`]), flat and keyed;
//! 3. the paths that the trace names, only with [`StoreConfig::trust_trace_paths`];
//! 4. the elements of the symbol path, from left to right;
//! 5. debuginfod servers, for ELF files.
//!
//! Nothing is fetched unless a server is configured, and nothing at all with [`StoreConfig::offline`]. Whatever a trace
//! says is untrusted: a name is reduced to one harmless path component, so that nothing outside the folders of the
//! configuration is ever looked at, no share is ever opened on a trace's word, and no private file is read. Every place
//! that was looked at is recorded with what came of it.

mod acquisition;
pub(crate) mod disk;
mod identify;
mod key;
mod layout;
mod local;
mod memory;
mod name;
mod outcome;
mod remote;
mod step;
mod store_in;
pub(crate) mod url;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub use acquisition::Acquisition;
pub use disk::Disk;
pub use identify::{identity_of, read_identity};
pub use key::server_paths;
pub use memory::RunMemory;
pub use name::FileName;
pub use outcome::{Attempt, LocatedFile, NoFile, Origin, Outcome, Place, Trial};
pub use step::{Answer, Fetched, Progress, Step};
pub use url::{ServerUrl, UrlError};

use crate::cache;
use crate::identity::{FileIdentity, Wanted};
use crate::path::{SymbolPath, parse_debuginfod_urls};

/// Where to look, and what is allowed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// Folders given by the user: searched first, by file name and in the keyed layouts. A file will do as well.
    pub folders: Vec<PathBuf>,
    /// Folders of symbol files that came with the trace: beside it, or unpacked out of its archive. Searched by file name and
    /// in the keyed layouts; pointers to files elsewhere are not followed.
    pub trace_folders: Vec<PathBuf>,
    /// The symbol path (`_NT_SYMBOL_PATH`).
    pub path: SymbolPath,
    /// Debuginfod servers (`DEBUGINFOD_URLS`).
    pub debuginfod: Vec<ServerUrl>,
    /// The cache folder: the default downstream store, and the place of what debuginfod gave. `None`: what would have
    /// to be stored there is not fetched.
    pub cache: Option<PathBuf>,
    /// The most that the cache folder should hold, in bytes; older files go first. 0: no limit. Folders that a symbol
    /// path names are never pruned.
    pub cache_limit: u64,
    /// Never asks a server.
    pub offline: bool,
    /// Opens files at the paths that the trace names: the trace was made on this machine.
    pub trust_trace_paths: bool,
    /// Bounds of fetching.
    pub fetch: FetchLimits,
}

/// Bounds of fetching.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// To connect, TLS included.
    pub connect_timeout: Duration,
    /// Longest silence of a server that is connected.
    pub idle_timeout: Duration,
    /// For one request as a whole.
    pub total_timeout: Duration,
    /// Bytes a second that a body has to come in at, on the whole; slower ones are given up.
    pub least_speed: u64,
    /// How long after its begin the speed of a body counts.
    pub speed_after: Duration,
    /// Largest file taken, in bytes, packed or unpacked.
    pub max_bytes: u64,
    /// Redirects followed for one request: to any host, and from http to https, but never from https to http.
    pub max_redirects: u32,
    /// How often a request is repeated after a 5xx, a 429 or a broken connection.
    pub retries: u32,
    /// Pause before the first repetition; doubles each time.
    pub back_off: Duration,
    /// How long a server's "not found" is believed, on disk.
    pub missing_age: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(900),
            least_speed: 4 << 10,
            speed_after: Duration::from_secs(10),
            max_bytes: 4 << 30,
            max_redirects: 5,
            retries: 2,
            back_off: Duration::from_millis(250),
            missing_age: Duration::from_secs(24 * 3600),
        }
    }
}

impl StoreConfig {
    /// No folder, no server, no cache: finds nothing.
    pub fn new() -> Self {
        Self {
            cache_limit: cache::DEFAULT_LIMIT,
            ..Self::default()
        }
    }

    /// What the environment says: `_NT_SYMBOL_PATH`, `DEBUGINFOD_URLS`, and the platform's cache folder.
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var_os(name))
    }

    /// As [`from_env`](Self::from_env), with the variables looked up by `var`.
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name| var(name).map(|value| value.to_string_lossy().into_owned());
        let mut config = Self::new();
        if let Some(path) = text("_NT_SYMBOL_PATH") {
            config.path = SymbolPath::parse(&path);
        }
        if let Some(urls) = text("DEBUGINFOD_URLS") {
            let (servers, problems) = parse_debuginfod_urls(&urls);
            config.debuginfod = servers;
            config.path.problems.extend(problems);
        }
        config.cache = cache::default_folder(&var);
        config
    }

    /// True if something might be fetched.
    pub fn may_fetch(&self) -> bool {
        !self.offline && (self.path.has_server() || !self.debuginfod.is_empty())
    }
}

/// One question to the stores.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// What the file must be.
    pub wanted: Wanted,
    /// What it may be called, the likeliest first; full paths will do. Untrusted.
    pub names: Vec<String>,
    /// Paths at which the trace says that it stood. Untrusted; opened only with [`StoreConfig::trust_trace_paths`].
    pub trace_paths: Vec<String>,
    /// Which places to search.
    pub reach: Reach,
}

/// Which places are searched: what is embedded in a module comes between the two halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Everything.
    #[default]
    All,
    /// The user's folders and, where trusted, the trace's paths.
    Folders,
    /// The symbol path and debuginfod.
    Stores,
}

impl Request {
    /// A file called `name`, everywhere.
    pub fn new(wanted: Wanted, name: impl Into<String>) -> Self {
        Self {
            wanted,
            names: vec![name.into()],
            trace_paths: Vec::new(),
            reach: Reach::All,
        }
    }

    /// It may also be called `name` (the name in a `.gnu_debuglink`, say).
    #[must_use]
    pub fn or_named(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// The trace says that it stood at `path`.
    #[must_use]
    pub fn at_trace_path(mut self, path: impl Into<String>) -> Self {
        self.trace_paths.push(path.into());
        self
    }

    /// Searches only a part of the places.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}

/// Why a file has no identity to go by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentifyError {
    /// It is no file of that kind, or a damaged one.
    Damaged(String),
    /// It could not be read at all.
    Unreadable(String),
    /// It is none that the caller can use, whatever its identity: the search goes on.
    Unfit(String),
}

impl From<std::io::Error> for IdentifyError {
    fn from(error: std::io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Reads the identity of the file at a path; the [`Wanted`] tells which kind of file is expected there.
///
/// It should read enough to notice a truncated file: what it accepts is used, and kept in the cache.
pub trait Identify: Sync {
    /// Reads the identity.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    fn identify(&self, path: &Path, wanted: &Wanted) -> Result<FileIdentity, IdentifyError>;
}

impl<F> Identify for F
where
    F: Fn(&Path, &Wanted) -> Result<FileIdentity, IdentifyError> + Sync,
{
    fn identify(&self, path: &Path, wanted: &Wanted) -> Result<FileIdentity, IdentifyError> {
        self(path, wanted)
    }
}

/// Symbol stores, asked blockingly. `Sync`; keeps its connections, what it learnt of servers, and folder listings.
///
/// ```no_run
/// use chronosym_symbols::identity::{FileIdentity, Guid, PdbId, Wanted};
/// use chronosym_symbols::store::{IdentifyError, Request, StoreConfig, Stores};
///
/// let read_id = |path: &std::path::Path, _: &Wanted| -> Result<FileIdentity, IdentifyError> {
///     let file = std::fs::read(path)?;
///     # let parse = |_: &[u8]| -> Result<FileIdentity, IdentifyError> { Err(IdentifyError::Damaged(String::new())) };
///     parse(&file)
/// };
/// let stores = Stores::new(StoreConfig::from_env());
/// let id = PdbId { guid: Guid([7; 16]), age: 1 };
/// let outcome = stores.acquire(&Request::new(Wanted::pdb(id), "foo.pdb"), &read_id);
/// match outcome.file {
///     Ok(file) => println!("{}", file.path.display()),
///     Err(why) => println!("{why}"),
/// }
/// ```
#[derive(Debug)]
pub struct Stores {
    config: RwLock<Arc<StoreConfig>>,
    memory: Arc<RunMemory>,
    disk: Disk,
    #[cfg(feature = "http")]
    client: std::sync::OnceLock<crate::http::Client>,
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

impl Stores {
    /// Stores as configured. Nothing is touched until something is asked for.
    pub fn new(config: StoreConfig) -> Self {
        Self {
            config: RwLock::new(Arc::new(config)),
            memory: Arc::default(),
            disk: Disk::default(),
            #[cfg(feature = "http")]
            client: std::sync::OnceLock::new(),
        }
    }

    /// The configuration, as it is now.
    pub fn config(&self) -> Arc<StoreConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a folder that came with a trace ([`StoreConfig::trace_folders`]): searches that begin from now on look there.
    /// Gives whether it was new.
    pub fn add_trace_folder(&self, folder: PathBuf) -> bool {
        let mut config = self.config.write().unwrap_or_else(PoisonError::into_inner);
        let new = !config.trace_folders.contains(&folder);
        if new {
            Arc::make_mut(&mut config).trace_folders.push(folder);
        }
        new
    }

    /// Searches for a file. Blocks until it is found or every place has been looked at.
    pub fn acquire(&self, request: &Request, identify: &dyn Identify) -> Outcome {
        self.acquire_watched(request, identify, &mut |_| ())
    }

    /// As [`acquire`](Self::acquire), and shows every step before it is done, to report progress.
    pub fn acquire_watched(
        &self,
        request: &Request,
        identify: &dyn Identify,
        watch: &mut dyn FnMut(&Step),
    ) -> Outcome {
        let mut acquisition = self.begin(request.clone());
        loop {
            match acquisition.step() {
                Progress::Done(outcome) => return outcome,
                Progress::Need(step) => {
                    watch(&step);
                    acquisition.answer(self.perform(&step, identify));
                }
            }
        }
    }

    /// Begins a search for the caller to drive. Shares what this run learnt of servers with every other one.
    pub fn begin(&self, request: Request) -> Acquisition {
        Acquisition::new(self.config(), Arc::clone(&self.memory), request)
    }

    /// Does one step, blocking.
    pub fn perform(&self, step: &Step, identify: &dyn Identify) -> Answer {
        match step {
            Step::Wait(pause) => {
                std::thread::sleep(*pause);
                Answer::Done
            }
            Step::Download { url, to, limit } => Answer::Fetched(self.download(url, to, *limit)),
            local => self.disk.perform(local, identify),
        }
    }

    /// Fetches the text of a source file from where a symbol file says that it is (Source Link): at most `most` bytes. No
    /// redirect is followed, nothing is repeated, and nothing is kept.
    ///
    /// # Errors
    /// Why there is none; nothing is asked of anybody unless [`StoreConfig::may_fetch`].
    pub fn fetch_source(&self, url: &str, most: u64) -> Result<Vec<u8>, NotFetched> {
        if !self.config().may_fetch() {
            return Err(NotFetched::Off);
        }
        ServerUrl::parse(url)?;
        self.fetch(url, most)
    }

    #[cfg(not(feature = "http"))]
    fn fetch(&self, _url: &str, _most: u64) -> Result<Vec<u8>, NotFetched> {
        Err(NotFetched::Off)
    }

    #[cfg(feature = "http")]
    fn fetch(&self, url: &str, most: u64) -> Result<Vec<u8>, NotFetched> {
        let folder = tempfile::tempdir().map_err(|error| NotFetched::Failed(error.to_string()))?;
        let to = folder.path().join("source");
        match self.download(url, &to, most) {
            Fetched::Saved => {
                std::fs::read(&to).map_err(|error| NotFetched::Failed(error.to_string()))
            }
            Fetched::Status { code, .. } => Err(NotFetched::Status(code)),
            Fetched::TooLarge => Err(NotFetched::TooLarge(most)),
            Fetched::TimedOut => Err(NotFetched::Failed("the server took too long".into())),
            Fetched::Unreachable(why) | Fetched::Broken(why) | Fetched::NotSaved(why) => {
                Err(NotFetched::Failed(why))
            }
        }
    }

    #[cfg(feature = "http")]
    fn download(&self, url: &str, to: &Path, limit: u64) -> Fetched {
        let client = self
            .client
            .get_or_init(|| crate::http::Client::new(&self.config().fetch));
        client.download(url, to, limit)
    }

    #[cfg(not(feature = "http"))]
    fn download(&self, _url: &str, _to: &Path, _limit: u64) -> Fetched {
        Fetched::Unreachable("built without the feature `http`".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn may_be_shared_and_moved_between_threads() {
        fn shared<T: Send + Sync>() {}
        fn moved<T: Send>() {}
        shared::<Stores>();
        shared::<RunMemory>();
        shared::<Disk>();
        moved::<Acquisition>();
    }

    #[test]
    fn configured_by_the_environment() {
        let config = StoreConfig::from_vars(|name| match name {
            "_NT_SYMBOL_PATH" => Some("srv*/d*https://h/s;nonsense*".into()),
            "DEBUGINFOD_URLS" => Some("https://d ftp://x".into()),
            "HOME" | "LOCALAPPDATA" => Some("/home/me".into()),
            _ => None,
        });
        assert!(config.path.has_server() && config.may_fetch());
        assert_eq!(config.debuginfod.len(), 1);
        assert_eq!(config.path.problems.len(), 2);
        let none = StoreConfig::from_vars(|_| None);
        assert!(!none.may_fetch());
        assert_eq!(none.cache, None);
    }
}
