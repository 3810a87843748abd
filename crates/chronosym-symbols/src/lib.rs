//! From an image or module identity to names, source lines and inline frames.
#![deny(missing_docs)]

pub mod cache;
#[cfg(feature = "http")]
pub mod http;
pub mod identity;
pub mod lru;
pub mod path;
pub mod store;
