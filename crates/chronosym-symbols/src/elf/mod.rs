//! Object files (ELF, and PE for its DWARF): sections, segments, identity, symbols.
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod chunks;
pub(crate) mod companions;
pub(crate) mod container;
mod layout;
pub(crate) mod packing;
pub(crate) mod sections;
pub(crate) mod symbols;
