//! The two shapes of a map from address and time: frozen, and a snapshot of one that still grows.

use chronosym_timeline::{Id, Life, Snapshot, VersionedMap};

/// Who stood where and when.
#[derive(Debug)]
pub(crate) enum Index {
    Frozen(Box<VersionedMap>),
    Live(Snapshot),
}

impl Index {
    /// Who was alive at an address and time, with its life.
    pub(crate) fn find(&self, address: u64, time: u64) -> Option<(Id, Life)> {
        match self {
            Index::Frozen(map) => map.lookup(address, time).map(|id| (id, map.life(id))),
            Index::Live(map) => map.occupants(address).find(|(_, life)| life.contains(time)),
        }
    }

    /// Everyone who ever stood at an address.
    pub(crate) fn occupants(&self, address: u64) -> Vec<(Id, Life)> {
        match self {
            Index::Frozen(map) => map.occupants(address).collect(),
            Index::Live(map) => map.occupants(address).collect(),
        }
    }

    /// The life of an occupant that begins at `start`; one of no length where it is forgotten.
    pub(crate) fn life(&self, id: Id, start: u64) -> Life {
        let none = Life {
            from: 0,
            to: 0,
            from_known: false,
            to_known: false,
        };
        match self {
            Index::Frozen(map) => map.life(id),
            Index::Live(map) => map
                .occupants(start)
                .find(|(i, _)| *i == id)
                .map_or(none, |(_, life)| life),
        }
    }

    /// Whether events to come may change the answer.
    pub(crate) fn is_provisional(&self, address: u64, time: u64) -> bool {
        match self {
            Index::Frozen(_) => false,
            Index::Live(map) => map.lookup(address, time).provisional,
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Index::Frozen(map) => map.memory_bytes(),
            Index::Live(_) => 0,
        }
    }
}
