//! The two shapes of a map from address and time: frozen, and a snapshot of one that still grows.

use chronosym_timeline::{Id, Lifetime, Neighbours, Snapshot, Start, VersionedMap};

/// Who stood where and when.
#[derive(Debug)]
pub(crate) enum Index {
    Frozen(Box<VersionedMap>),
    Live(Snapshot),
}

impl Index {
    /// Who was alive at an address and time, with its life.
    pub(crate) fn find(&self, address: u64, time: u64) -> Option<(Id, Lifetime)> {
        match self {
            Index::Frozen(map) => map.lookup(address, time).map(|id| (id, map.lifetime(id))),
            Index::Live(map) => map.find(address, time),
        }
    }

    /// Who stood at an address next before and next after a time.
    pub(crate) fn neighbours(&self, address: u64, time: u64) -> Neighbours {
        match self {
            Index::Frozen(map) => map.neighbours(address, time),
            Index::Live(map) => map.neighbours(address, time),
        }
    }

    /// Everyone who ever stood at an address.
    pub(crate) fn occupants(&self, address: u64) -> Vec<(Id, Lifetime)> {
        match self {
            Index::Frozen(map) => map.occupants(address).collect(),
            Index::Live(map) => map.occupants(address).collect(),
        }
    }

    /// The life of the occupant of a number, whose first address is `start`; one of no length where it is forgotten.
    pub(crate) fn life(&self, number: usize, start: u64, begin: Start) -> Lifetime {
        let known = match (self, begin, Id::from_index(number)) {
            (Index::Frozen(map), _, Some(id)) => Some(map.lifetime(id)),
            (Index::Live(map), Start::At(instant) | Start::Before(instant), Some(id)) => {
                map.lifetime(id, start, instant)
            }
            // What events state is known from some instant on.
            _ => None,
        };
        known.unwrap_or(Lifetime {
            from: 0,
            to: 0,
            from_known: false,
            to_known: false,
        })
    }

    /// Whether events to come may change the answer.
    pub(crate) fn is_provisional(&self, address: u64, time: u64) -> bool {
        match self {
            Index::Frozen(_) => false,
            Index::Live(map) => map.lookup(address, time).provisional,
        }
    }
}
