//! Converted symbols: the answers for a whole symbol file, in a form that takes no decoding.
//!
//! [`SymbolCache`] keeps them in the cache folder, in files of a layout that `docs/symbol-cache.md`
//! describes. A file is named after a digest of what its answers depend on (`key.rs`), and every
//! block of it has a checksum, so a damaged, outdated or foreign file is never used: the symbol
//! file is read instead.

mod cache;
mod key;
mod layout;
mod rows;
mod table;
mod tables;
mod writer;

pub use cache::{CacheUse, SymbolCache};
pub(crate) use key::{Input, Key};
pub use table::{Converted, Damaged};
pub(crate) use tables::Tables;
pub(crate) use writer::{Table, TableWriter};
