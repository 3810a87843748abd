//! Object files (ELF, Mach-O, and PE for its DWARF): sections, segments, identity, symbols.

pub(crate) mod bundle;
mod chunks;
pub(crate) mod container;
pub(crate) mod contents;
pub(crate) mod debug_files;
mod layout;
pub(crate) mod packing;
mod plt;
pub(crate) mod sections;
pub(crate) mod segments;
pub(crate) mod symbols;
pub(crate) mod universal;
pub(crate) mod variables;
