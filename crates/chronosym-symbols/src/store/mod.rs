//! Where symbol files come from: folders, symbol stores, servers, and the cache on disk.
//!
//! A [`Request`] has an identity and names. [`Stores`] searches for it, blocking or with a
//! [`Driver`] of the caller: the search itself decides and keeps state, and the driver accesses
//! disk and network.
//!
//! Locations are searched in this order, and the first file whose own identity is the wanted one
//! ends the search:
//! 1. the folders given by the user ([`StoreConfig::folders`]), flat and keyed;
//! 2. the folders that came with the trace ([`StoreConfig::trace_folders`]), flat and keyed;
//! 3. the paths that the trace names, only with [`StoreConfig::trust_trace_paths`];
//! 4. the elements of the symbol path, from left to right;
//! 5. for ELF files, the caches of `perf` and of debuginfod clients, then debuginfod servers.
//!
//! Nothing is fetched unless a server is configured, and nothing at all with
//! [`StoreConfig::offline`]. Names in a trace are untrusted: a name is reduced to one harmless path
//! component, so that no path outside the folders of the configuration is accessed, no share is
//! opened because a trace names it, and no private file is read. Every location searched is
//! recorded with its result.

mod config;
mod disk;
mod driver;
#[cfg(feature = "http")]
mod http;
#[cfg(not(feature = "http"))]
#[path = "no_http.rs"]
mod http;
mod identify;
mod install;
mod key;
mod layout;
mod local;
mod memory;
mod name;
mod outcome;
mod remote;
mod request;
mod search;
mod search_order;
pub(crate) mod url;

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub use config::{FetchLimits, StoreConfig};
pub use disk::{Disk, Listing};
pub use driver::{Driver, Fetched, NotFetched};
pub use identify::{Identify, IdentifyError, has_identity, identity_of, read_identity};
pub use key::server_paths;
pub use local::local_path;
pub use name::FileName;
pub use outcome::{Attempt, AttemptResult, LocatedFile, NoFile, Outcome, SearchLocation};
pub use request::{Reach, Request};
pub use url::{ServerUrl, UrlError, redacted};

use crate::identity::{FileIdentity, Wanted};
use memory::RunMemory;
use search::Search;

/// Symbol stores. `Sync`; keeps connections, the state of servers, and folder listings.
///
/// ```
/// use chronosym_symbols::identity::{FileIdentity, Guid, PdbId, Wanted};
/// use chronosym_symbols::store::{IdentifyError, Request, StoreConfig, Stores};
///
/// // Reads the identity of a file that was found; one with another identity is not used.
/// let identify = |path: &std::path::Path, _: &Wanted| -> Result<FileIdentity, IdentifyError> {
///     Err(IdentifyError::Damaged(format!("{}", path.display())))
/// };
/// let stores = Stores::new(StoreConfig::default()); // no folder, store or server
/// let id = PdbId { guid: Guid([7; 16]), age: 1 };
/// let outcome = stores.acquire(&Request::new(Wanted::pdb(id), "app.pdb"), &identify);
/// println!("{}", outcome.file.unwrap_err()); // where it was searched, and why it was not found
/// ```
#[derive(Debug)]
pub struct Stores {
    config: RwLock<Arc<StoreConfig>>,
    memory: RunMemory,
    disk: Disk,
    client: OnceLock<http::Client>,
}

impl Stores {
    /// Stores with this configuration. Accesses nothing until the first search.
    pub fn new(config: StoreConfig) -> Self {
        Self {
            config: RwLock::new(Arc::new(config)),
            memory: RunMemory::default(),
            disk: Disk::default(),
            client: OnceLock::new(),
        }
    }

    /// Returns the current configuration.
    pub fn config(&self) -> Arc<StoreConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a folder that came with a trace ([`StoreConfig::trace_folders`]) for later searches.
    /// Returns whether it was new.
    pub fn add_trace_folder(&self, folder: PathBuf) -> bool {
        let mut config = self.config.write().unwrap_or_else(PoisonError::into_inner);
        let new = !config.trace_folders.contains(&folder);
        if new {
            Arc::make_mut(&mut config).trace_folders.push(folder);
        }
        new
    }

    /// Searches for a file. Blocks until it is found or every location was searched.
    pub fn acquire(&self, request: &Request, identify: &Identify<'_>) -> Outcome {
        let stores = self;
        let driver = Blocking { stores, identify };
        let mut search = pin!(self.search(request, &driver));
        let mut context = Context::from_waker(Waker::noop());
        loop {
            // This driver blocks, so the search is never pending.
            if let Poll::Ready(outcome) = search.as_mut().poll(&mut context) {
                return outcome;
            }
        }
    }

    /// As [`acquire`](Self::acquire), with disk and network accessed by `driver`. All searches
    /// share the state of servers.
    pub async fn search(&self, request: &Request, driver: &impl Driver) -> Outcome {
        let config = self.config();
        Search::new(&config, &self.memory, driver, request)
            .run()
            .await
    }

    /// Fetches a source file from the URL that a symbol file gives (Source Link): at most `limit`
    /// bytes. Follows no redirects, repeats nothing, and caches nothing.
    ///
    /// # Errors
    /// Why the file was not fetched. Sends no request unless [`StoreConfig::may_fetch`].
    pub fn fetch_source(&self, url: &str, limit: u64) -> Result<Vec<u8>, NotFetched> {
        if !self.config().may_fetch() {
            return Err(NotFetched::Off);
        }
        ServerUrl::parse(url)?;
        self.client().fetch(url, limit)
    }

    fn client(&self) -> &http::Client {
        let client = || http::Client::new(&self.config().fetch);
        self.client.get_or_init(client)
    }
}

/// A driver that blocks.
struct Blocking<'a> {
    stores: &'a Stores,
    identify: &'a Identify<'a>,
}

impl Driver for Blocking<'_> {
    fn disk(&self) -> &Disk {
        &self.stores.disk
    }

    async fn identify(&self, path: &Path, wanted: &Wanted) -> Result<FileIdentity, IdentifyError> {
        (self.identify)(path, wanted)
    }

    async fn download(&self, url: &str, to: &Path, limit: u64) -> Fetched {
        self.stores.client().download(url, to, limit)
    }

    async fn wait(&self, pause: Duration) {
        std::thread::sleep(pause);
    }
}
