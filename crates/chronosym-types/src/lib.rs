#![doc = include_str!("../README.md")]
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

mod addresses;
mod ahead;
pub mod append;
#[expect(
    clippy::indexing_slicing,
    reason = "indices come from the slice itself"
)]
mod by_offset;
mod byte_order;
pub mod bytes;
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a vector: indices are its callers', not a file's"
)]
mod chunked;
mod closed_list;
mod cursor;
pub mod escape;
mod field;
mod gap;
mod guid;
#[cfg(feature = "hash")]
pub mod hash;
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "positions in a text of at most 18 bytes, and sums of digits"
)]
mod hex;
mod id;
#[cfg(feature = "json")]
pub mod json;
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a vector: indices are its callers', not a file's"
)]
mod leaves;
mod pointer_size;
mod registers;
#[expect(
    clippy::arithmetic_side_effects,
    reason = "a vector: indices are its callers', not a file's"
)]
mod sparse;
mod text;
pub mod time;
pub mod tracelogging;
#[cfg(feature = "hash")]
mod tree_index;
mod window;
mod zigzag;

pub use addresses::Addresses;
pub use ahead::Ahead;
pub use by_offset::ByOffset;
pub use byte_order::ByteOrder;
pub use chunked::Chunked;
pub use cursor::{Cursor, ReadError};
pub use field::{Field, FieldType};
pub use gap::{Gap, GapCause, GapTotal, Gaps};
pub use guid::{Guid, ParseGuidError};
pub use hex::{Hex, HexText};
pub use id::{BuildId, FileNumber, IdentityKind, MappedFile, PdbId, PortablePdbId};
pub use leaves::Leaves;
pub use pointer_size::PointerSize;
pub use registers::{Processor, Registers};
pub use sparse::{Bits, SparseVec};
pub use text::{AStr, WStr, copied_text};
pub use tracelogging::TraceLoggingSchema;
#[cfg(feature = "hash")]
pub use tree_index::TreeIndex;
pub use window::Window;
pub use zigzag::{unzigzag, zigzag};
