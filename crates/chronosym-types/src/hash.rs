//! Maps whose keys a file chooses: numbers, addresses, offsets, texts. With hashes that can be foretold, whoever writes it could
//! make all of them fall together. A faster hash without a seed (`rustc_hash`) is for keys that no file chooses: ids that we give
//! out ourselves, one after the other.

/// Hashes with a seed of the process.
pub use foldhash::fast::RandomState;

/// In no order that two runs share: it is looked into, or sorted, and not walked.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// As [`HashMap`].
pub type HashSet<T> = std::collections::HashSet<T, RandomState>;
