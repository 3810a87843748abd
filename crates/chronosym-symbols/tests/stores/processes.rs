//! Several processes and threads on one cache folder.

use std::fs;
use std::process::Command;

use chronosym_symbols::identity::Wanted;
use chronosym_symbols::path::SymbolPath;
use chronosym_symbols::store::{Request, StoreConfig, Stores};

use super::server::{Reply, Server};
use super::{GUID, Setup, files, found, identify, pdb_id, windows};

const FILES: usize = 12;
const THREADS: usize = 3;
const PROCESSES: usize = 3;
const CACHE: &str = "CHRONOSYM_TEST_CACHE";
const SERVER: &str = "CHRONOSYM_TEST_SERVER";

/// Fetches every file, in an order of its own, and reads each one whole.
fn fetch_all(config: &StoreConfig, start: usize) {
    let stores = Stores::new(config.clone());
    for i in 0..FILES {
        let name = format!("f{}.pdb", (i + start) % FILES);
        let outcome = stores.acquire(&Request::new(Wanted::pdb(pdb_id(1)), name), &identify);
        assert_eq!(fs::read(found(&outcome)).unwrap(), windows(1));
    }
}

fn config(cache: &str, server: &str) -> StoreConfig {
    let mut config = StoreConfig::new();
    config.cache = Some(cache.into());
    // So small that every process prunes while the others fetch.
    config.cache_limit = 1;
    config.path = SymbolPath::parse(server);
    config
}

/// Run by the next test, in processes of its own; alone it does nothing.
#[test]
fn one_process() {
    let (Ok(cache), Ok(server)) = (std::env::var(CACHE), std::env::var(SERVER)) else {
        return;
    };
    let config = config(&cache, &server);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let config = &config;
            scope.spawn(move || fetch_all(config, thread * 4));
        }
    });
}

#[test]
fn several_processes_share_a_cache() {
    let server = Server::new(|path| {
        if path.ends_with(&format!("/{GUID}1/{}", path.rsplit('/').next().unwrap())) {
            Reply::Ok(windows(1))
        } else {
            Reply::Status(404)
        }
    });
    let setup = Setup::new("");
    let cache = setup.path("cache");
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "processes::one_process", "--nocapture"])
                .env(CACHE, &cache)
                .env(SERVER, server.url("s"))
                .spawn()
                .unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    setup.assert_tidy();
    let kept = files(&cache);
    let symbols = kept
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "pdb"));
    assert_eq!(symbols.count(), FILES, "{kept:?}");
    assert!(server.paths().len() >= FILES);
}
