//! From an image or module identity to names, source lines and inline frames.
#![deny(missing_docs)]

mod answer;
pub mod cache;
pub mod demangle;
mod dwarf;
mod elf;
mod error;
#[cfg(feature = "http")]
pub mod http;
pub mod identity;
pub mod lru;
pub mod mmap;
mod native;
pub mod path;
pub mod store;
pub mod style;
mod sweep;

pub use answer::{Address, Answer, Answers, FileId, Frame, Missing, NameId, Source};
pub use elf::companions::Companions;
pub use error::{Error, Result};
pub use native::{NativeSymbols, ObjectSymbols, Query};
