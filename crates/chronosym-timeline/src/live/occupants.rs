//! The occupants that are not forgotten, by id.

use std::collections::BTreeMap;

use super::segment::Version;
use crate::occupant::{Id, Occupant, Stated};

/// An occupant, and its lifetime.
#[derive(Clone, Copy)]
pub(crate) struct LiveOccupant {
    pub(crate) occupant: Occupant,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl LiveOccupant {
    /// Returns an occupant with its lifetime, if the occupants of its addresses before it end at
    /// `floor`, and the next one starts at `closer`.
    pub(crate) fn new(occupant: Occupant, floor: u64, closer: Option<u64>) -> Self {
        let from = occupant.from(floor);
        let own = occupant.own_end().max(from);
        let to = own.min(closer.unwrap_or(u64::MAX)).max(from);
        Self { occupant, from, to }
    }

    /// Returns start and end of its lifetime.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        (self.from, self.to)
    }

    pub(crate) fn version(&self, id: Id) -> Version {
        let Self { occupant, from, to } = self;
        Version {
            instant: occupant.instant(),
            from: *from,
            to: *to,
            id,
            stated: Stated::of(occupant, self.bounds()),
        }
    }
}

/// Occupants of a block.
const BLOCK: usize = 64;

/// Occupants in blocks of consecutive ids. Blocks without any are dropped.
#[derive(Default)]
pub(crate) struct Occupants {
    blocks: BTreeMap<usize, Vec<Option<LiveOccupant>>>,
    /// The number of occupants that were ever inserted.
    end: usize,
    count: usize,
}

impl Occupants {
    /// Adds an occupant.
    ///
    /// # Panics
    /// With more than 2^32 − 2 occupants.
    pub(crate) fn push(&mut self, occupant: LiveOccupant) -> Id {
        let id = Id::from_index(self.end).expect("fewer than 2^32 - 1 occupants");
        let block = self.blocks.entry(self.end / BLOCK).or_default();
        block.resize(self.end % BLOCK, None);
        block.push(Some(occupant));
        self.end += 1;
        self.count += 1;
        id
    }

    pub(crate) fn get(&self, id: Id) -> Option<&LiveOccupant> {
        let block = self.blocks.get(&(id.index() / BLOCK))?;
        block.get(id.index() % BLOCK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut LiveOccupant> {
        let block = self.blocks.get_mut(&(id.index() / BLOCK))?;
        block.get_mut(id.index() % BLOCK)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<LiveOccupant> {
        let number = id.index() / BLOCK;
        let block = self.blocks.get_mut(&number)?;
        let removed = block.get_mut(id.index() % BLOCK)?.take()?;
        self.count -= 1;
        if block.iter().all(Option::is_none) {
            self.blocks.remove(&number);
        }
        Some(removed)
    }

    /// Returns all occupants, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id, &LiveOccupant)> {
        let blocks = self.blocks.iter().flat_map(|(number, block)| {
            let ids = number * BLOCK..;
            ids.zip(block)
        });
        blocks.filter_map(|(index, slot)| Some((Id::from_index(index)?, slot.as_ref()?)))
    }

    /// Returns all occupants to be changed, by id.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Id, &mut LiveOccupant)> {
        let blocks = self.blocks.iter_mut().flat_map(|(number, block)| {
            let ids = number * BLOCK..;
            ids.zip(block)
        });
        blocks.filter_map(|(index, slot)| Some((Id::from_index(index)?, slot.as_mut()?)))
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let slots = self.blocks.values().map(Vec::capacity).sum::<usize>();
        slots * size_of::<Option<LiveOccupant>>()
    }
}
