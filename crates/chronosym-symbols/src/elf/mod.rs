//! Object files (ELF, and PE for its DWARF): sections, segments, identity, symbols.

pub(crate) mod companions;
pub(crate) mod container;
pub(crate) mod sections;
pub(crate) mod symbols;
