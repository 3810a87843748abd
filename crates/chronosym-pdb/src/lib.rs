//! Parsers of the files that name code: portable PDBs with the ECMA-335 metadata they lean on,
//! PE images, ReadyToRun code, and Windows PDBs.
//!
//! Nothing here opens a file: every parser takes the bytes (`&[u8]`, usually a mapping) and borrows
//! from them. Opening is cheap and decodes only tables of contents; names, lines and IL maps are
//! decoded when asked for. Every length, offset and count in a file is checked before use; bad
//! input gives an [`Error`] or no answer, never a panic.
#![deny(missing_docs)]

mod bytes;
mod error;
mod id;
pub mod metadata;
pub mod pe;
pub mod portable;
pub mod pretty;
pub mod r2r;
pub mod windows;

pub use error::{Error, Result};
pub use id::{Guid, PdbId, PortablePdbId};
