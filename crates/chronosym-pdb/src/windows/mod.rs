//! Windows PDBs (MSF containers): native symbols, lines and inlinees, and classic managed PDBs.
//!
//! [`WindowsPdb`] borrows the bytes of the file, usually a mapping, and reads what a question needs:
//! opening touches the directory and two stream headers; an address costs a binary search over the
//! section contributions, then the one module that they name. The on-disk indexes do the rest (the
//! publics' address map, the type streams' index offsets). What is decoded is kept: the answers
//! borrow from it, and it is shared by all threads (`&WindowsPdb` is `Sync`).
//!
//! # What is answered, and what is not
//!
//! * A **procedure record** that covers the address gives name, lines and inlined frames. Of several
//!   procedures folded into one body (ICF) the module's first record that has lines is taken, and
//!   the line table of that same function. (Functions that no source line made, such as implicit
//!   constructors, have none; tables stand in the order of the records, which tells whose each is.)
//! * Where no procedure covers it, a **public symbol** does, up to the next public, the end of the
//!   section contribution or the next procedure, whichever comes first: [`FunctionKind::Public`].
//!   Lines still come from the module if it has them.
//! * A piece of **separated code** (S_SEPCODE) has the name of the procedure that it was split off, and the inlined frames of
//!   its own record, or, where that states none, those that the procedure's record states for it.
//! * **Padding** between functions belongs to none: [`WindowsPdb::find`] answers nothing, and
//!   [`WindowsPdb::public_symbol`] gives the nearest public before it with [`PublicSymbol::covers`] false.
//! * Of several **line rows** at one offset the last counts: the others cover no byte. Hidden rows
//!   (0xFEEFEE, 0xF00F00) give the nearest visible row before them.
//!
//! # Many addresses
//!
//! Ask in ascending order if the order is free: neighbours share a module, a procedure and the cache
//! lines of both. 100,000 random addresses of a 486 MB file cost about a third when sorted.
//!
//! # Precompiled .NET Framework images
//!
//! `X.ni.pdb`, as `ngen createpdb` makes them, hold public symbols and no section headers: see
//! [`WindowsPdb::assumed_image_size`].
//!
//! Unverified, for no sample shows it: OMAP, separated code (S_SEPCODE) with inline sites,
//! `/DEBUG:FASTLINK` (recognised: see [`Limitation`]).
//!
//! Formats: microsoft/microsoft-pdb (`cvinfo.h`, `msf.cpp`, `dbi.h`) and LLVM's `docs/PDB`.

mod address_map;
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

pub use find::{Frame, Frames, Function, FunctionName, PublicSymbol};
pub use managed::ManagedLine;
pub use pdb::{Limitation, WindowsPdb};
pub use symbols::FunctionKind;
