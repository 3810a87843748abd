//! From trace files to a [`crate::Session`].

#[cfg(feature = "nettrace")]
pub mod nettrace;
