//! Maps for keys that a file controls: numbers, addresses, offsets, text. Their hashes are seeded,
//! so that a file cannot construct collisions. Dense ids of our own use the faster `rustc_hash`,
//! which has no seed.

/// A hasher with a seed for each process.
pub use foldhash::fast::RandomState;

/// Its order differs between runs: look up or sort, do not iterate for output.
pub type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// A set with the same hasher as [`HashMap`].
pub type HashSet<T> = std::collections::HashSet<T, RandomState>;
