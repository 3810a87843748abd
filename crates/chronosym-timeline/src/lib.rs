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

mod above;
mod batch;
mod build;
mod clock;
mod directory;
mod layout;
mod lists;
mod live;
mod lives;
mod map;
mod occupant;
mod pieces;
mod radix;
mod spans;
mod tile;

pub use batch::Query;
pub use live::{LiveAnswer, LiveMap, Snapshot};
pub use map::VersionedMap;
pub use occupant::{AddrRange, Begin, End, Id, Life, Neighbours, Occupant};
