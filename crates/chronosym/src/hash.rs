//! Maps whose keys a trace chooses. With hashes that can be foretold, whoever writes it could make all of them fall together.

pub(crate) use foldhash::fast::RandomState;

/// In no order that two runs share: it is looked into, and not walked.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// As [`HashMap`].
pub(crate) type HashSet<T> = std::collections::HashSet<T, RandomState>;
