//! A time-versioned interval map: what was at address A at time T.
#![deny(missing_docs)]

mod batch;
mod build;
mod builder;
mod lives;
mod map;
mod occupant;
mod pieces;
mod radix;
mod regions;

pub use batch::Query;
pub use builder::VersionedMapBuilder;
pub use map::VersionedMap;
pub use occupant::{AddrRange, Begin, Closed, End, Id, Life, Occupant};
