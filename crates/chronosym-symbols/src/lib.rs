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

mod answer;
mod breakpad;
pub mod cache;
mod code;
mod convert;
pub mod converted;
pub mod demangle;
mod dwarf;
mod elf;
mod error;
mod go;
pub mod identity;
mod interned;
pub mod log;
pub mod lru;
pub mod mmap;
mod name_limit;
mod native;
pub mod path;
mod pdb;
mod query;
pub mod store;
pub mod style;
mod sweep;
mod unpack_limit;
pub mod unwind;

pub use answer::{Address, Answer, Answers, FileId, Frame, Missing, NameId, Source};
pub use code::elf_code;
pub use dwarf::variables::LocalVariable;
pub use elf::bundle::ObjectPath;
pub use elf::debug_files::DebugFileSearch;
pub use elf::segments::Mapping;
pub use elf::variables::DataSymbol;
pub use error::{Error, Result};
pub use native::NativeSymbols;
pub use pdb::PdbSymbols;
pub use query::Query;
