//! Lists of ids in one vector.

use std::ops::Range;

/// A list of ids for each of many keys.
#[derive(Default)]
pub(crate) struct Lists {
    /// End of each list, where the next one starts.
    ends: Vec<u32>,
    pub(crate) ids: Vec<u32>,
}

impl Lists {
    /// Builds `count` lists from `entries` (list and id), each in the order of the entries.
    pub(crate) fn new(count: usize, entries: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let mut ends = vec![0_u32; count + 1];
        // Nested iterators run faster inside of `for_each`.
        entries.clone().for_each(|(list, _)| ends[list + 1] += 1);
        let mut next = 0_u32;
        for end in &mut ends {
            next = next.checked_add(*end).expect("fewer than 2^32 entries");
            *end = next;
        }
        // Until it is filled, each end is the start of its list.
        let mut ids = vec![0; next as usize];
        entries.for_each(|(list, id)| {
            let next = &mut ends[list];
            ids[*next as usize] = id;
            *next += 1;
        });
        Self { ends, ids }
    }

    /// Returns the range of a list in `ids`.
    pub(crate) fn range(&self, list: usize) -> Range<usize> {
        let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[list] as usize
    }

    pub(crate) fn of(&self, list: usize) -> &[u32] {
        &self.ids[self.range(list)]
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        (self.ends.capacity() + self.ids.capacity()) * size_of::<u32>()
    }
}
