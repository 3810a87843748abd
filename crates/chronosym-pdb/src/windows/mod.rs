//! Windows PDBs (MSF files): native symbols, lines and inlinees, and PDBs of managed code.
//!
//! [`WindowsPdb`] borrows the bytes of the file, usually a mapping, and reads on demand. Opening
//! reads the directory and two stream headers; a lookup takes a binary search over the section
//! contributions and reads the module that they name. It uses the indexes in the file (the publics'
//! address map, the index offsets of the type streams). Decoded modules are cached and shared by
//! all threads (`&WindowsPdb` is `Sync`).
//!
//! # Lookup
//!
//! * A **procedure record** that covers the address has name, lines and inlined frames. Of several
//!   procedures folded into one body (ICF) the first record of the module that has lines counts,
//!   with the line table of that function. Functions without source (such as implicit constructors)
//!   have no table; the order of tables, which is that of records, says which table is whose.
//! * Without a procedure, a **public symbol** covers the code up to the next public, the end of the
//!   section contribution or the next procedure, whichever is first: [`FunctionKind::Public`].
//!   Lines come from the module if it has them.
//! * **Separated code** (S_SEPCODE) has the name of its procedure, and the inline sites of its own
//!   record, or else those that the procedure's record states for it.
//! * **Padding** belongs to no function: [`WindowsPdb::find`] returns `None`, and
//!   [`WindowsPdb::public_symbol`] the nearest public before it, with [`PublicSymbol::covers`]
//!   false.
//! * Of several **line rows** at one offset the last counts: the others cover no byte. Hidden rows
//!   (0xFEEFEE, 0xF00F00) give the nearest visible row before them.
//!
//! # Many addresses
//!
//! Look up addresses in ascending order: adjacent ones share a module, a procedure and their cache
//! lines. 100,000 random addresses of a 486 MB file take about a third of the time when sorted.
//!
//! # Precompiled .NET Framework images
//!
//! The `X.ni.pdb` files of `ngen createpdb` have public symbols and no section headers: see
//! [`WindowsPdb::assumed_image_size`].
//!
//! # Untested
//!
//! No sample was available of OMAP, of separated code with inline sites, and of `/DEBUG:FASTLINK`
//! (which is detected: see [`Limitation`]).
//!
//! Formats: microsoft/microsoft-pdb (`cvinfo.h`, `msf.cpp`, `dbi.h`) and LLVM's `docs/PDB`.

mod address_map;
mod boundaries;
mod dbi;
mod find;
mod inline;
mod lines;
mod managed;
mod module;
mod msf;
mod pdb;
mod pdb_stream;
mod publics;
mod symbols;
mod types;

pub use boundaries::Boundaries;
pub use find::{Frame, Frames, Function, FunctionName, PublicSymbol};
pub use managed::ManagedLine;
pub use pdb::{Limitation, WindowsPdb};
pub use symbols::FunctionKind;
