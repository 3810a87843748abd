//! Saved timelines: everything that names addresses, and samples on request, in one file.
//!
//! The state of a timeline is written row by row: a process, an image, a code body. Rows are in
//! columns, blocks of rows are compressed, and a directory lists the blocks by process and address,
//! so that a lookup reads a few blocks. Reading everything restores the state in a session, which
//! resolves as the one that was saved. Deltas have what was pushed into a live session instead,
//! which is pushed again. `docs/chrono.md` describes the bytes.

mod base;
mod coder;
mod crc;
mod deltas;
mod error;
mod file;
pub(crate) mod journal;
mod merge;
mod ranks;
mod read;
mod read_samples;
mod recording_rows;
mod rows;
mod same;
mod sample_rows;
mod steps;
mod texts;
mod write;

pub use deltas::DeltaReader;
pub use error::SavedError;
pub use file::SavedTimeline;
pub use merge::{MergeError, merge};
pub use write::SaveOptions;
