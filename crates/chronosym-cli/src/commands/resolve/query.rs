//! What is resolved.

/// An address of a process at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The number of the key.
    pub key: u32,
    /// ns since 1970-01-01 UTC.
    pub time: i64,
    pub address: u64,
}
