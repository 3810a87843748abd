//! Identities of symbol files, and PDBs embedded in a trace.

use std::hash::{BuildHasher, Hash, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use chronosym_types::PdbId;

/// Identity of the symbol files of a module or image: equal in all processes, timelines and
/// snapshots of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SymbolIdentity([u64; 2]);

impl SymbolIdentity {
    /// Hashed with random keys: a trace cannot construct collisions.
    pub(crate) fn of(value: impl Hash) -> Self {
        static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        SymbolIdentity(KEYS.each_ref().map(|key| key.hash_one(&value)))
    }
}

/// A PDB embedded in a trace.
#[derive(Clone, Debug)]
pub struct InMemoryPdb {
    bytes: Arc<[u8]>,
    pub(crate) content: SymbolIdentity,
}

impl InMemoryPdb {
    /// Creates a PDB from its bytes.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let content = SymbolIdentity::of(&bytes);
        InMemoryPdb { bytes, content }
    }

    /// Returns the bytes, shared.
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

/// A reference to a PDB.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdbReference {
    /// The id that the file must have.
    pub id: PdbId,
    /// The path on the build machine.
    pub path: String,
}
