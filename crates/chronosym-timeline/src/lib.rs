#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
// Unlike the readers, the map computes with numbers it made itself, so arithmetic and indexing need
// no lints here: its property tests run with overflow checks.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod batch;
mod build;
mod clock;
mod directory;
mod history;
mod layout;
mod lifetimes;
mod lists;
mod live;
mod map;
mod occupant;
mod owners;
mod packed;
mod parallel;
mod radix;
mod segment_map;
mod tile;
mod wide;

pub use batch::Query;
pub use lifetimes::time_order;
pub use live::{LiveAnswer, LiveMap, Snapshot};
pub use map::VersionedMap;
pub use occupant::{AddrRange, End, Id, Lifetime, Neighbours, Occupant, Start};
pub use segment_map::SegmentMap;
