//! The configuration of a search: locations, permissions and limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::url::ServerUrl;
use crate::cache;
use crate::converted::{CacheUse, SymbolCache};
use crate::path::{SymbolPath, parse_debuginfod_urls};

/// The locations of a search, its permissions and its limits.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// Folders given by the user: searched first, by file name and in the keyed layouts. An element
    /// may also be a file.
    pub folders: Vec<PathBuf>,
    /// Folders of symbol files that came with the trace: next to it, or in its archive. Searched by
    /// file name and in the keyed layouts; pointers to files elsewhere are not followed.
    pub trace_folders: Vec<PathBuf>,
    /// The symbol path (`_NT_SYMBOL_PATH`).
    pub path: SymbolPath,
    /// Debuginfod servers (`DEBUGINFOD_URLS`).
    pub debuginfod: Vec<ServerUrl>,
    /// Caches of other tools, searched for ELF files by build ID before debuginfod servers are
    /// queried: that of `perf` and that of debuginfod clients.
    pub other_caches: Vec<PathBuf>,
    /// The cache folder: the default downstream store, and the store of files from debuginfod. With
    /// `None`, files that would be stored there are not fetched.
    pub cache: Option<PathBuf>,
    /// Whether converted symbols are kept in the cache folder.
    pub symbol_cache: CacheUse,
    /// The size limit of the cache folder in bytes; the least recently used files are removed
    /// first. 0 means no limit. Folders that a symbol path names are never pruned.
    pub cache_limit: u64,
    /// Whether servers are never queried.
    pub offline: bool,
    /// Whether to open files at the paths that the trace names, for traces of this machine.
    pub trust_trace_paths: bool,
    /// Bounds of fetching.
    pub fetch: FetchLimits,
}

/// Bounds of fetching.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchLimits {
    /// For connecting, including TLS.
    pub connect_timeout: Duration,
    /// The longest pause within a response.
    pub idle_timeout: Duration,
    /// For one request.
    pub total_timeout: Duration,
    /// The minimum average speed of a body in bytes per second; slower downloads are abandoned.
    pub least_speed: u64,
    /// The time after which the speed of a body is checked.
    pub speed_after: Duration,
    /// The maximum size of a file in bytes, compressed or not.
    pub max_bytes: u64,
    /// The number of redirects followed for one request: to any host, and from http to https, but
    /// never from https to http.
    pub max_redirects: u32,
    /// The number of retries after a 5xx, a 429 or a broken connection.
    pub retries: u32,
    /// The pause before the first retry; doubles each time.
    pub back_off: Duration,
    /// The time for which a "not found" is cached on disk.
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
    /// Creates a configuration without folders, servers and cache.
    pub fn new() -> Self {
        Self {
            cache_limit: cache::DEFAULT_LIMIT,
            ..Self::default()
        }
    }

    /// Returns the configuration of the environment: `_NT_SYMBOL_PATH`, `DEBUGINFOD_URLS`, and the
    /// platform's cache folder.
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
        config.other_caches = cache::of_other_tools(&var);
        config
    }

    /// Returns the cache of converted symbols, if there is a cache folder and it is to be used.
    pub fn symbol_cache(&self) -> Option<SymbolCache> {
        SymbolCache::new(self.cache.as_deref()?, self.cache_limit, self.symbol_cache)
    }

    /// Returns true if servers may be queried.
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
        let caches = ["/home/me/.debug", "/home/me/.cache/debuginfod_client"];
        assert_eq!(config.other_caches, caches.map(PathBuf::from));
        let config =
            StoreConfig::from_vars(|name| (name == "DEBUGINFOD_CACHE_PATH").then(|| "/d".into()));
        assert_eq!(config.other_caches, [PathBuf::from("/d")]);
        let none = StoreConfig::from_vars(|_| None);
        assert!(!none.may_fetch());
        assert!(none.cache.is_none() && none.other_caches.is_empty());
    }
}
