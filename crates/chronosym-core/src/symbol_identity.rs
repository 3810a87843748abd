//! What symbol files are found by, and PDBs that a trace carries.

use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use chronosym_types::PdbId;

/// What the files of a module or an image are found by: equal wherever the same one is spoken of, in any process, timeline or
/// snapshot. It holds as long as this process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SymbolIdentity([u64; 2]);

impl SymbolIdentity {
    /// With keys that no trace can know: its texts cannot be made to collide.
    pub(crate) fn of(value: impl Hash) -> Self {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        SymbolIdentity(KEYS.each_ref().map(|key| key.hash_one(&value)))
    }
}

/// A PDB that a trace carries.
#[derive(Clone, Debug)]
pub struct InMemoryPdb {
    bytes: Arc<[u8]>,
    pub(crate) content: SymbolIdentity,
}

impl InMemoryPdb {
    /// The bytes of a PDB.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let content = SymbolIdentity::of(&bytes);
        InMemoryPdb { bytes, content }
    }

    /// The bytes, shared.
    pub fn shared(&self) -> Arc<[u8]> {
        self.bytes.clone()
    }
}

impl Deref for InMemoryPdb {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A PDB as a trace refers to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdbReference {
    /// The id that the file must have.
    pub id: PdbId,
    /// The path on the build machine.
    pub path: String,
}
