//! Where to look, and what is allowed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::url::ServerUrl;
use crate::cache;
use crate::path::{SymbolPath, parse_debuginfod_urls};

/// Where to look, and what is allowed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// Folders given by the user: searched first, by file name and in the keyed layouts. A file
    /// will do as well.
    pub folders: Vec<PathBuf>,
    /// Folders of symbol files that came with the trace: beside it, or unpacked out of its
    /// archive. Searched by file name and in the keyed layouts; pointers to files elsewhere
    /// are not followed.
    pub trace_folders: Vec<PathBuf>,
    /// The symbol path (`_NT_SYMBOL_PATH`).
    pub path: SymbolPath,
    /// Debuginfod servers (`DEBUGINFOD_URLS`).
    pub debuginfod: Vec<ServerUrl>,
    /// The cache folder: the default downstream store, and the location of what debuginfod gave.
    /// `None`: what would have to be stored there is not fetched.
    pub cache: Option<PathBuf>,
    /// The most that the cache folder should hold, in bytes; older files go first. 0: no limit.
    /// Folders that a symbol path names are never pruned.
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
    /// Redirects followed for one request: to any host, and from http to https, but never from
    /// https to http.
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

    /// What the environment says: `_NT_SYMBOL_PATH`, `DEBUGINFOD_URLS`, and the platform's cache
    /// folder.
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

#[cfg(test)]
mod tests {
    use super::*;

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
