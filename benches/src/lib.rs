//! Benches and comparisons with peers: what they are fed with, and the peers behind one trait.
#![deny(missing_docs)]

pub mod measure;
pub mod peers;
pub mod trace;
pub mod workload;
