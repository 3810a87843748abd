//! Collects occupants until they are frozen.

use crate::map::VersionedMap;
use crate::occupant::{Id, Occupant};

/// Takes occupants and makes a [`VersionedMap`] of them.
#[derive(Debug, Default, Clone)]
pub struct VersionedMapBuilder {
    occupants: Vec<Occupant>,
}

impl VersionedMapBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an occupant. Any order will do; of two occupants with evidence of the same instant, the one inserted later is
    /// taken to have come later.
    ///
    /// # Panics
    /// With more than 2^32 − 2 occupants (260 GB of them).
    pub fn insert(&mut self, occupant: Occupant) -> Id {
        let id = Id::from_index(self.occupants.len()).expect("fewer than 2^32 - 1 occupants");
        self.occupants.push(occupant);
        id
    }

    /// What was inserted as `id`; `None` if `id` is another map's.
    pub fn get(&self, id: Id) -> Option<&Occupant> {
        self.occupants.get(id.index())
    }

    /// What was inserted as `id`, to change it as more becomes known; `None` if `id` is another map's.
    pub fn get_mut(&mut self, id: Id) -> Option<&mut Occupant> {
        self.occupants.get_mut(id.index())
    }

    /// The number of occupants.
    pub fn len(&self) -> usize {
        self.occupants.len()
    }

    /// Whether there are no occupants.
    pub fn is_empty(&self) -> bool {
        self.occupants.is_empty()
    }

    /// Works out each occupant's life and builds the index, in O(n log n).
    pub fn freeze(self) -> VersionedMap {
        VersionedMap::build(&self.occupants)
    }
}

impl Extend<Occupant> for VersionedMapBuilder {
    fn extend<T: IntoIterator<Item = Occupant>>(&mut self, occupants: T) {
        for occupant in occupants {
            self.insert(occupant);
        }
    }
}
