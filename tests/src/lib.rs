//! Conformance suites over real and synthetic traces.
#![deny(missing_docs)]
