//! Writers of synthetic traces, for tests and benches.
#![deny(missing_docs)]

pub mod etl;
