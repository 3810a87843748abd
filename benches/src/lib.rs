//! Input of benches and comparisons with peers, and the peers behind one trait.
#![deny(missing_docs)]

pub mod measure;
pub mod peers;
pub mod trace;
pub mod workload;
