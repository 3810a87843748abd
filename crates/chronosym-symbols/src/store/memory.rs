//! The state of servers in a run.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tempfile::TempDir;

/// Consecutive failures after which a server gets no more requests.
const FAILURES_IN_A_ROW: u32 = 3;

/// The cache is pruned after the first file that a run adds, and then after every so many more.
const PRUNE_EVERY: u32 = 16;

/// Which servers are down, which files they lack, and how they are laid out. Shared by all searches
/// of a run.
#[derive(Debug, Default)]
pub(super) struct RunMemory {
    state: Mutex<State>,
    temporary: OnceLock<Option<TempDir>>,
}

#[derive(Debug, Default)]
struct State {
    servers: HashMap<String, Server>,
    missing: HashSet<String>,
    added: u32,
}

#[derive(Debug, Default)]
struct Server {
    down: Option<String>,
    failures: u32,
    two_tier: Option<bool>,
}

impl RunMemory {
    /// Returns a folder that is removed with this memory, for files that cannot be kept.
    pub(super) fn temporary_folder(&self) -> Option<&Path> {
        let folder = self.temporary.get_or_init(|| tempfile::tempdir().ok());
        folder.as_ref().map(TempDir::path)
    }

    /// Returns why the server gets no more requests; `None` if it does.
    pub(super) fn down(&self, server: &str) -> Option<String> {
        self.lock().servers.get(server)?.down.clone()
    }

    /// Records a response of the server.
    pub(super) fn answered(&self, server: &str) {
        if let Some(state) = self.lock().servers.get_mut(server) {
            state.failures = 0;
        }
    }

    /// Records a failure of the server. If `at_once`, or after several failures in a row, it gets
    /// no more requests.
    pub(super) fn failed(&self, server: &str, why: &str, at_once: bool) {
        let mut state = self.lock();
        let server = state.servers.entry(server.to_owned()).or_default();
        server.failures = server.failures.saturating_add(1);
        if at_once || server.failures >= FAILURES_IN_A_ROW {
            server.down = Some(why.to_owned());
        }
    }

    pub(super) fn two_tier(&self, server: &str) -> Option<bool> {
        self.lock().servers.get(server)?.two_tier
    }

    pub(super) fn set_two_tier(&self, server: &str, two_tier: bool) {
        let mut state = self.lock();
        let server = state.servers.entry(server.to_owned()).or_default();
        server.two_tier = Some(two_tier);
    }

    pub(super) fn is_missing(&self, what: &str) -> bool {
        self.lock().missing.contains(what)
    }

    pub(super) fn note_missing(&self, what: String) {
        self.lock().missing.insert(what);
    }

    /// Counts a file added to the cache. Returns whether the cache should be pruned now.
    pub(super) fn prune_due(&self) -> bool {
        let mut state = self.lock();
        state.added = state.added.wrapping_add(1);
        state.added % PRUNE_EVERY == 1
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
