//! A time-versioned interval map: what was at address A at time T.
#![deny(missing_docs)]
