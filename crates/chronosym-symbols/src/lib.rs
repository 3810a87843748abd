//! From an image or module identity to names, source lines and inline frames.
#![deny(missing_docs)]
