//! Interned strings: each distinct text is stored once, in one arena.

use std::hash::BuildHasher;
use std::sync::Arc;

use chronosym_types::hash::RandomState;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};

use chronosym_types::SparseVec;

/// A string of one [`Strings`]; `StringId::EMPTY` is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StringId(pub(crate) u32);

impl StringId {
    pub(crate) const EMPTY: StringId = StringId(0);
}

/// A set of strings. Those that are dropped leave their ids unused.
#[derive(Debug)]
pub(crate) struct Strings {
    /// Text in blocks that copies share; each has whole strings.
    blocks: SparseVec<Arc<String>>,
    /// Block, start and end of each string.
    ranges: SparseVec<(u32, u32, u32)>,
    index: HashTable<Slot>,
    hasher: RandomState,
}

/// A string in the index: half of its hash avoids most comparisons.
#[derive(Debug)]
struct Slot {
    hash: u32,
    id: u32,
}

impl Slot {
    /// The hash table uses the lowest and the highest bits.
    fn spread(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

/// Bytes of a block, unless one string is longer.
const BLOCK: usize = 1 << 14;

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Strings {
            blocks: SparseVec::default(),
            ranges: SparseVec::default(),
            index: HashTable::new(),
            hasher: RandomState::default(),
        };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// Returns the id of `text`, adding it if it is new. Beyond 4 Gi strings, new text maps to the
    /// empty string.
    pub(crate) fn intern(&mut self, text: &str) -> StringId {
        let hash = self.hasher.hash_one(text) as u32;
        let same = |slot: &Slot| slot.hash == hash && self.get(StringId(slot.id)) == text;
        if let Some(slot) = self.index.find(Slot::spread(hash), same) {
            return StringId(slot.id);
        }
        let (Ok(id), Some(place)) = (u32::try_from(self.ranges.end()), self.append(text)) else {
            return StringId::EMPTY;
        };
        self.ranges.push(place);
        let rehash = |slot: &Slot| Slot::spread(slot.hash);
        self.index
            .insert_unique(Slot::spread(hash), Slot { hash, id }, rehash);
        StringId(id)
    }

    fn append(&mut self, text: &str) -> Option<(u32, u32, u32)> {
        let last = self.blocks.end().checked_sub(1);
        let last = last.filter(|&last| {
            let block = self.blocks.get(last);
            block.is_some_and(|block| block.len() + text.len() <= BLOCK)
        });
        let last = last.unwrap_or_else(|| {
            let capacity = if self.blocks.end() == 0 { 0 } else { BLOCK };
            self.blocks.push(Arc::new(String::with_capacity(capacity)))
        });
        let block = Arc::make_mut(&mut self.blocks[last]);
        let start = u32::try_from(block.len()).ok()?;
        let end = u32::try_from(block.len() + text.len()).ok()?;
        block.push_str(text);
        Some((u32::try_from(last).ok()?, start, end))
    }

    pub(crate) fn get(&self, id: StringId) -> &str {
        let range = self.ranges.get(id.0 as usize);
        let text = range.and_then(|&(block, start, end)| {
            self.blocks
                .get(block as usize)?
                .get(start as usize..end as usize)
        });
        text.unwrap_or_default()
    }

    /// The number of strings.
    pub(crate) fn count(&self) -> usize {
        self.ranges.count()
    }

    /// Drops strings; the empty one stays. Texts of blocks that become half empty are moved.
    pub(crate) fn retain(&mut self, keep: impl Fn(StringId) -> bool) {
        let keep = |id: usize| id == 0 || keep(StringId(id as u32));
        if self.ranges.retain(|id, _| keep(id)) == 0 {
            return;
        }
        self.index.retain(|slot| keep(slot.id as usize));
        let capacity = 2 * self.index.len();
        self.index
            .shrink_to(capacity, |slot| Slot::spread(slot.hash));
        let mut used: FxHashMap<u32, usize> = FxHashMap::default();
        for &(block, start, end) in self.ranges.iter() {
            *used.entry(block).or_default() += (end - start) as usize;
        }
        let last = self.blocks.end().saturating_sub(1);
        let is_sparse = |block: usize| {
            let used = used.get(&(block as u32)).copied().unwrap_or(0);
            let len = self.blocks.get(block).map_or(0, |block| block.len());
            block != last && used < len.div_ceil(2)
        };
        let sparse = self
            .blocks
            .indexed()
            .map(|(block, _)| block)
            .filter(|&block| is_sparse(block));
        let sparse: FxHashSet<usize> = sparse.collect();
        let moved = self
            .ranges
            .indexed()
            .filter(|(_, range)| sparse.contains(&(range.0 as usize)));
        for id in moved.map(|(id, _)| id).collect::<Vec<_>>() {
            let text = self.get(StringId(id as u32)).to_owned();
            if let Some(range) = self.append(&text) {
                self.ranges[id] = range;
            }
        }
        for block in sparse {
            self.blocks.remove(block);
        }
    }

    /// Returns a read-only copy of the strings.
    pub(crate) fn snapshot(&self) -> Self {
        Strings {
            blocks: self.blocks.clone(),
            ranges: self.ranges.clone(),
            index: HashTable::new(),
            hasher: self.hasher.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_one_id() {
        let mut strings = Strings::default();
        let a = strings.intern("a");
        let b = strings.intern("bc");
        assert_eq!(strings.intern("a"), a);
        assert_eq!(strings.intern(""), StringId::EMPTY);
        assert_eq!(
            (strings.get(a), strings.get(b), strings.get(StringId::EMPTY)),
            ("a", "bc", "")
        );
    }

    #[test]
    fn dropped_strings_take_no_memory_and_the_others_stay() {
        let mut strings = Strings::default();
        let text = |n: u32| format!("string number {n}");
        let mut kept = Vec::new();
        for round in 0..50_u32 {
            let ids = (round * 1000..(round + 1) * 1000).map(|n| (n, strings.intern(&text(n))));
            kept.extend(
                ids.collect::<Vec<_>>()
                    .into_iter()
                    .filter(|(n, _)| n % 100 == 7),
            );
            let before = strings.snapshot();
            strings.retain(|id| kept.iter().any(|&(_, kept)| kept == id));
            let lost = StringId(round * 1000 + 1);
            assert_eq!(
                (strings.get(lost), before.get(lost)),
                ("", &*text(round * 1000))
            );
        }
        assert_eq!(strings.count(), 1 + kept.len());
        assert!(
            strings.blocks.count() <= 3,
            "{} blocks",
            strings.blocks.count()
        );
        for &(n, id) in &kept {
            assert_eq!(strings.intern(&text(n)), id);
            assert_eq!(strings.get(id), text(n));
        }
        assert_ne!(
            strings.intern(&text(1)),
            StringId(2),
            "ids are not used again"
        );
    }
}
