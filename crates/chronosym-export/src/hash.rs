//! Maps whose keys are texts of a trace. With hashes that can be foretold, whoever writes it could make all of them fall together.

pub(crate) use foldhash::fast::RandomState;

/// In no order that two runs share: it is looked into, or sorted.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
