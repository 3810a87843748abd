//! The symbol stage: adds names and lines from symbol files, found by the identity of a module or
//! image.
//!
//! A [`Symbolizer`] is a [`SymbolSource`](chronosym_core::SymbolSource) that searches for files in
//! the locations of a [`StoreConfig`]. Each file is searched for once, used only if its identity is
//! the one in the trace, and kept open within a limit of bytes.
#![deny(missing_docs)]

mod code;
mod content;
mod elf;
mod file_symbols;
mod files;
mod function_names;
mod image;
mod kallsyms;
mod managed;
mod managed_module;
mod mapped;
mod method_text;
mod missing;
mod module;
mod object;
mod open_error;
mod options;
mod parsed;
mod pdb;
mod pe;
mod pe_image;
mod pe_part;
mod precompiled;
mod search;
mod source;
mod symbolizer;
mod target;
mod texts;
mod unwind;

pub use {chronosym_pdb, chronosym_symbols};

pub use chronosym_symbols::cache;
pub use chronosym_symbols::converted::{CacheUse, SymbolCache};
pub use chronosym_symbols::path::{SymbolPath, parse_debuginfod_urls};
pub use chronosym_symbols::store::{
    Attempt, AttemptResult, NoFile, NotFetched, SearchLocation, StoreConfig,
};
pub use file_symbols::{FileSymbols, module_name};
pub use kallsyms::{Kallsyms, KallsymsError, KallsymsMismatch};
pub use managed_module::ManagedModule;
pub use missing::MissingSymbols;
pub use open_error::OpenError;
pub use options::SymbolOptions;
pub use search::{FoundFile, SymbolFile};
pub use source::{NoSource, SourceText};
pub use symbolizer::Symbolizer;
