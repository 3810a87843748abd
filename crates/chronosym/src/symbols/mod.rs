//! Names and lines beyond the trace: the symbol stage, from the identity of a module or image to what its files say.
//!
//! A [`Symbolizer`] is a [`SymbolSource`](crate::SymbolSource) that looks for files in the places of a [`StoreConfig`]. Each file is looked
//! for once, used only if its identity is the one in the trace, and kept open as long as there is room.

#[cfg(all(feature = "dwarf", feature = "pdb"))]
mod code;
#[cfg(feature = "dwarf")]
mod elf;
mod files;
mod image;
mod kallsyms;
#[cfg(feature = "pdb")]
mod managed;
#[cfg(feature = "pdb")]
mod managed_module;
#[cfg(feature = "pdb")]
mod method_text;
mod missing;
#[cfg(feature = "pdb")]
mod module;
#[cfg(feature = "dwarf")]
mod object;
mod options;
#[cfg(feature = "pdb")]
mod parsed;
#[cfg(feature = "pdb")]
mod parts;
#[cfg(feature = "pdb")]
mod pdb;
#[cfg(feature = "pdb")]
mod pe;
#[cfg(feature = "pdb")]
mod pe_image;
#[cfg(feature = "pdb")]
mod precompiled;
mod search;
#[cfg(feature = "pdb")]
mod source;
mod symbolizer;
#[cfg(feature = "pdb")]
mod target;
#[cfg(any(feature = "dwarf", feature = "pdb"))]
mod texts;
#[cfg(all(feature = "dwarf", feature = "open"))]
mod unwind;

pub use chronosym_symbols::cache;
pub use chronosym_symbols::path::{SymbolPath, parse_debuginfod_urls};
pub use chronosym_symbols::store::{Attempt, NoFile, NotFetched, Place, StoreConfig, Trial};
pub use kallsyms::{Kallsyms, KallsymsError, KallsymsMismatch};
#[cfg(feature = "pdb")]
pub use managed_module::{ManagedModule, ManagedModuleError};
pub use missing::MissingSymbols;
pub use options::SymbolOptions;
pub use search::{FoundFile, SymbolFile};
#[cfg(feature = "pdb")]
pub use source::{NoSource, SourceText};
pub use symbolizer::Symbolizer;
