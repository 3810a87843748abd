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

mod batch;
mod build;
mod clock;
mod directory;
mod layout;
mod lifetimes;
mod lists;
mod live;
mod map;
mod occupant;
mod owners;
mod packed;
mod radix;
mod tile;
mod wide;

pub use batch::Query;
pub use live::{LiveAnswer, LiveMap, Snapshot};
pub use map::VersionedMap;
pub use occupant::{AddrRange, End, Id, Lifetime, Neighbours, Occupant, Start};
