//! Parsers of the files that name code: portable PDBs with the ECMA-335 metadata they lean on,
//! PE images, ReadyToRun code, and Windows PDBs.
//!
//! Nothing here opens a file: every parser takes the bytes (`&[u8]`, usually a mapping) and borrows
//! from them. Opening is cheap and decodes only tables of contents; names, lines and IL maps are
//! decoded when asked for. Every length, offset and count in a file is checked before use; bad
//! input gives an [`Error`] or no answer, never a panic.
//!
//! From an address in precompiled code to its source line:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use chronosym_pdb::portable::PortablePdb;
//! use chronosym_pdb::r2r::{NoAssemblies, R2rImage};
//!
//! let (dll, pdb) = (std::fs::read("App.dll")?, std::fs::read("App.pdb")?);
//! let image = R2rImage::parse(&dll)?;
//! let pdb = PortablePdb::parse(&pdb)?;
//! let codeview = image.image().portable_codeview().ok_or("no PDB id")?;
//! assert_eq!(codeview.portable_id(), Some(pdb.id()), "a PDB of another build");
//!
//! let rva = 0x11de5;
//! let method = image.method_at(rva).ok_or("no code here")?;
//! let name = image.method_name(&method, &NoAssemblies).ok_or("no name")?;
//! let native_offset = method.native_offset(rva).unwrap_or(0);
//! let il = image.il_offset(&method, native_offset, false).and_then(|answer| answer.il_offset);
//! let token = image.definition(&method).ok_or("no token")?.token;
//! if let Some(line) = il.and_then(|il| pdb.line_at(token.row(), il)) {
//!     let file = pdb.document(line.document).ok_or("no document")?.name;
//!     println!("{name} {file}:{}", line.start_line);
//! }
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod blob;
mod bytes;
mod checkpoints;
mod error;
mod inflate;
pub mod metadata;
pub mod pe;
pub mod portable;
pub mod pretty;
pub mod r2r;
pub mod windows;

pub use chronosym_types::{Guid, PdbId, PortablePdbId};
pub use error::{Error, Result};
