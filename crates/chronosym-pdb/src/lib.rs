//! Parsers of symbol files: portable PDBs and the ECMA-335 metadata they build on, PE images,
//! ReadyToRun code, and Windows PDBs.
//!
//! No function opens a file. Every parser takes bytes (`&[u8]`, usually a mapping) and borrows from
//! them. Opening a file decodes its headers and directories only; names, lines and IL maps are
//! decoded on first use. Every length, offset and count is checked; malformed input gives an
//! [`Error`] or `None`, never a panic.
//!
//! From an RVA in precompiled code to its source line:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use chronosym_pdb::portable::PortablePdb;
//! use chronosym_pdb::r2r::{NoAssemblies, R2rImage};
//!
//! let dll = std::fs::read("../../testdata/clr10/r2r/linux-x64/Workload.dll")?;
//! let pdb = std::fs::read("../../testdata/clr10/workload/Workload.pdb")?;
//! let image = R2rImage::parse(&dll)?;
//! let pdb = PortablePdb::parse(&pdb)?;
//! let codeview = image.image().portable_codeview().ok_or("no PDB id")?;
//! assert_eq!(codeview.portable_id(), Some(pdb.id()), "a PDB of another build");
//!
//! let rva = image.entry_points().next().ok_or("no code")? + 5;
//! let method = image.method_at(rva).ok_or("no code here")?;
//! let name = image.method_name(&method, &NoAssemblies).ok_or("no name")?;
//! let native_offset = method.native_offset(rva).unwrap_or(0);
//! let il = image.il_offset(&method, native_offset, false).and_then(|position| position.il_offset);
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
pub mod csharp;
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
