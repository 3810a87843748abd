//! Maps whose keys a file chooses. With hashes that can be foretold, whoever writes it could make all of them fall together.

pub(crate) use foldhash::fast::RandomState;

/// In no order that two runs share: it is looked into, and not walked.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
