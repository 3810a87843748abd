//! Breakpad's symbol files: text with the functions, lines and inlined calls of a module.
//!
//! Source: `docs/symbol_files.md` of Breakpad. Addresses are counted from the module's base; stack
//! records (`STACK`) are skipped.

mod index;
mod module;
mod record;
mod resolve;

pub(crate) use module::Module;
pub(crate) use resolve::{BreakpadScratch, BreakpadSymbols};
