//! Resolved samples as tables for query engines: Parquet or Arrow.
//!
//! An [`Exporter`] writes a file per table and recording into the folder of the table:
//! `samples/NAME.parquet`, `stacks/NAME.parquet` and so on. The schema is that of
//! `docs/fleet/schema.md`. Ids of stacks and frames are hashes of what they show
//! ([`FORMAT_VERSION`] is part of it), so that equal stacks have equal ids in all files. [`read`]
//! reads tables back into a session.
#![deny(missing_docs)]

mod addresses;
mod columns;
mod content;
mod error;
mod export;
mod format;
mod frames;
mod guard;
mod listings;
mod profiles;
mod read;
mod row;
mod samples;
mod table;
mod trace;

pub use addresses::{AddressBatch, AddressReader, NameRows, NamesWriter};
pub use error::Error;
pub use export::{Exported, Exporter};
pub use format::{Detail, FORMAT_VERSION, Format, FrameNames};
pub use guard::is_decoding;
pub use read::{is_export, read};
pub use trace::Trace;
