//! Writers of synthetic traces, for tests and benches.
#![deny(missing_docs)]

mod bytes;
pub mod ctf;
pub mod ecma;
pub mod etl;
pub mod growth;
mod metadata;
pub mod msf;
pub mod netperf;
pub mod nettrace;
pub mod payload;
pub mod perf;
pub mod random;
pub mod schedule;
pub mod synthetic;
pub mod trace;
