//! Lists of ids, one after the other.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "places that this file gave out"
)]

use std::ops::Range;

/// For each of many places the ids that are there.
#[derive(Default)]
pub(crate) struct Lists {
    /// Where each list ends, and the next begins.
    ends: Vec<u32>,
    pub(crate) ids: Vec<u32>,
}

impl Lists {
    /// Lists for `places`, each in the order in which `entries` (place and id) come.
    pub(crate) fn new(places: usize, entries: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let mut ends = vec![0_u32; places + 1];
        for (place, _) in entries.clone() {
            ends[place + 1] += 1;
        }
        let mut next = 0_u32;
        for end in &mut ends {
            next = next.checked_add(*end).expect("fewer than 2^32 entries");
            *end = next;
        }
        // Each is where its list begins until that is filled.
        let mut ids = vec![0; next as usize];
        for (place, id) in entries {
            let next = &mut ends[place];
            ids[*next as usize] = id;
            *next += 1;
        }
        Self { ends, ids }
    }

    /// Where the list of a place is in `ids`.
    pub(crate) fn range(&self, place: usize) -> Range<usize> {
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin as usize..self.ends[place] as usize
    }

    pub(crate) fn of(&self, place: usize) -> &[u32] {
        &self.ids[self.range(place)]
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        (self.ends.capacity() + self.ids.capacity()) * size_of::<u32>()
    }
}
