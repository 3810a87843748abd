//! What code was at address A of process P at time T.
#![deny(missing_docs)]
