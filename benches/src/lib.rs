//! Benches and comparisons with peers.
#![deny(missing_docs)]
