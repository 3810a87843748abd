//! From an image or module identity to names, source lines and inline frames.
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

#[cfg(feature = "dwarf")]
mod answer;
#[cfg(feature = "stores")]
pub mod cache;
#[cfg(feature = "dwarf")]
mod code;
#[cfg(feature = "demangle")]
pub mod demangle;
#[cfg(feature = "dwarf")]
mod dwarf;
#[cfg(feature = "dwarf")]
mod elf;
mod error;
pub mod identity;
pub mod lru;
pub mod mmap;
#[cfg(feature = "dwarf")]
mod native;
#[cfg(feature = "stores")]
pub mod path;
#[cfg(feature = "stores")]
pub mod store;
#[cfg(feature = "dwarf")]
pub mod style;
#[cfg(feature = "dwarf")]
mod sweep;
#[cfg(any(feature = "dwarf", feature = "stores"))]
mod unpack_limit;
#[cfg(feature = "dwarf")]
pub mod unwind;

#[cfg(feature = "dwarf")]
pub use answer::{Address, Answer, Answers, FileId, Frame, Missing, NameId, Source};
#[cfg(feature = "dwarf")]
pub use code::elf_code;
#[cfg(feature = "dwarf")]
pub use elf::companions::Companions;
pub use error::{Error, Result};
#[cfg(feature = "dwarf")]
pub use native::{NativeSymbols, Query};
