//! A map from address and time: frozen, for many lookups or few, or a snapshot of a live one.

use chronosym_timeline::{Id, Lifetime, Neighbours, SegmentMap, Snapshot, Start, VersionedMap};

/// Occupants by address and time.
#[derive(Debug)]
pub(crate) enum Index {
    Frozen(Box<VersionedMap>),
    /// Frozen, for few lookups.
    Segments(Box<SegmentMap>),
    Live(Snapshot),
}

impl Index {
    /// Returns the occupant at an address and time.
    #[inline]
    pub(crate) fn id(&self, address: u64, time: u64) -> Option<Id> {
        match self {
            Index::Frozen(map) => map.lookup(address, time),
            Index::Segments(map) => map.lookup(address, time),
            Index::Live(map) => map.id(address, time),
        }
    }

    /// Returns the occupant at an address and time, with its lifetime.
    pub(crate) fn find(&self, address: u64, time: u64) -> Option<(Id, Lifetime)> {
        match self {
            Index::Frozen(map) => map.lookup(address, time).map(|id| (id, map.lifetime(id))),
            Index::Segments(map) => map.lookup(address, time).map(|id| (id, map.lifetime(id))),
            Index::Live(map) => map.find(address, time),
        }
    }

    /// Returns the occupants of an address before and after a time.
    pub(crate) fn neighbours(&self, address: u64, time: u64) -> Neighbours {
        match self {
            Index::Frozen(map) => map.neighbours(address, time),
            Index::Segments(map) => map.neighbours(address, time),
            Index::Live(map) => map.neighbours(address, time),
        }
    }

    /// Returns all occupants that an address ever had.
    pub(crate) fn occupants(&self, address: u64) -> Vec<(Id, Lifetime)> {
        match self {
            Index::Frozen(map) => map.occupants(address).collect(),
            Index::Segments(map) => map.occupants(address).collect(),
            Index::Live(map) => map.occupants(address).collect(),
        }
    }

    /// Returns the lifetime of an occupant whose first address is `start`; an empty one if it was
    /// dropped.
    pub(crate) fn lifetime(&self, number: usize, start: u64, loaded: Start) -> Lifetime {
        let lifetime = match (self, loaded, Id::from_index(number)) {
            (Index::Frozen(map), _, Some(id)) => Some(map.lifetime(id)),
            (Index::Segments(map), _, Some(id)) => Some(map.lifetime(id)),
            (Index::Live(map), Start::At(instant) | Start::Before(instant), Some(id)) => {
                map.lifetime(id, start, instant)
            }
            // Lifetimes stated by events become known at some instant.
            _ => None,
        };
        lifetime.unwrap_or(Lifetime {
            from: 0,
            to: 0,
            from_known: false,
            to_known: false,
        })
    }
}
