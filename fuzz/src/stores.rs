//! Symbol stores: any bytes as a file that one holds in packed form.

use chronosym_symbols::identity::{PdbId, Wanted};
use chronosym_symbols::path::SymbolPath;
use chronosym_symbols::store::{Request, StoreConfig, Stores, read_identity};
use chronosym_types::Guid;

/// A packed PDB in a store of two levels: a cabinet, as symbol servers have them, or gzip.
pub fn packed(data: &[u8]) {
    const KEY: &str = "010101010101010101010101010101011";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    let key = store.join("foo.pdb").join(KEY);
    std::fs::create_dir_all(&key).expect("a folder");
    std::fs::write(key.join("foo.pd_"), data).expect("room for it");
    let cache = folder.path().join("cache");
    let mut config = StoreConfig::new();
    config.path = SymbolPath::parse(&format!("srv*{}*{}", cache.display(), store.display()));
    let guid = Guid([1; 16]);
    let id = PdbId { guid, age: 1 };
    let outcome =
        Stores::new(config).acquire(&Request::new(Wanted::pdb(id), "foo.pdb"), &read_identity);
    if let Ok(found) = outcome.file {
        assert!(found.path.starts_with(folder.path()));
    }
}
