//! Interned strings: each distinct text is stored once, in one arena.

use std::hash::BuildHasher;

use chronosym_types::hash::RandomState;
use hashbrown::HashTable;
use rustc_hash::FxHashSet;

use chronosym_types::{Bits, Leaves};

/// A string of one [`Strings`]; `StringId::EMPTY` is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StringId(pub(crate) u32);

impl StringId {
    pub(crate) const EMPTY: StringId = StringId(0);
}

/// A set of strings. The ids of dropped strings stay unused.
#[derive(Debug)]
pub(crate) struct Strings {
    /// Strings by id, in blocks that copies share.
    blocks: Leaves<Block>,
    /// The next id.
    end: usize,
    index: HashTable<Slot>,
    hasher: RandomState,
    /// Bytes of all text that was ever added.
    bytes: usize,
}

/// Bytes allocated per string in advance.
const TYPICAL: usize = 48;

/// Number of strings in a block.
const BLOCK: usize = 64;

/// Up to 64 consecutive strings.
#[derive(Clone, Debug, Default)]
struct Block {
    present: Bits,
    text: String,
    /// The end of each string in `text`; it starts at the end of the preceding one.
    ends: Vec<u32>,
}

impl Block {
    fn with_capacity(strings: usize) -> Self {
        Block {
            present: Bits::default(),
            text: String::with_capacity(strings * TYPICAL),
            ends: Vec::with_capacity(strings),
        }
    }

    fn push(&mut self, at: usize, text: &str) -> Option<()> {
        self.ends
            .push(u32::try_from(self.text.len() + text.len()).ok()?);
        self.text.push_str(text);
        self.present.insert(at);
        Some(())
    }

    #[inline]
    fn get(&self, at: usize) -> Option<&str> {
        let position = self.present.position(at)?;
        let start = position.checked_sub(1).map_or(0, |it| self.ends[it]);
        self.text.get(start as usize..self.ends[position] as usize)
    }
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

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Strings {
            blocks: Leaves::default(),
            end: 0,
            index: HashTable::new(),
            hasher: RandomState::default(),
            bytes: 0,
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
        let Some(id) = self.append(text) else {
            return StringId::EMPTY;
        };
        let rehash = |slot: &Slot| Slot::spread(slot.hash);
        self.index
            .insert_unique(Slot::spread(hash), Slot { hash, id }, rehash);
        StringId(id)
    }

    fn append(&mut self, text: &str) -> Option<u32> {
        let id = u32::try_from(self.end).ok()?;
        let block = self.blocks.get_or_insert_with(self.end / BLOCK, || {
            let is_first = self.end == 0;
            Block::with_capacity(if is_first { 0 } else { BLOCK })
        });
        block.push(self.end % BLOCK, text)?;
        if self.end % BLOCK == BLOCK - 1 {
            block.text.shrink_to_fit();
        }
        self.end += 1;
        self.bytes += text.len();
        Some(id)
    }

    #[inline]
    pub(crate) fn get(&self, id: StringId) -> &str {
        let block = self.blocks.get(id.0 as usize / BLOCK);
        let text = block.and_then(|block| block.get(id.0 as usize % BLOCK));
        text.unwrap_or_default()
    }

    /// Returns the bytes of the strings, including dropped ones.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + self.end * 3 * size_of::<Slot>()
    }

    /// Returns the number of strings.
    pub(crate) fn count(&self) -> usize {
        self.index.len()
    }

    /// Drops strings; the empty one stays.
    pub(crate) fn retain(&mut self, keep: impl Fn(StringId) -> bool) {
        let keep = |id: usize| id == 0 || keep(StringId(id as u32));
        let count = self.index.len();
        self.index.retain(|slot| keep(slot.id as usize));
        if self.index.len() == count {
            return;
        }
        let capacity = 2 * self.index.len();
        self.index
            .shrink_to(capacity, |slot| Slot::spread(slot.hash));
        let is_dropped = |&(at, index): &(usize, usize)| !keep(at * BLOCK + index);
        let strings = self.blocks.iter().flat_map(|(at, block)| {
            let present = block.present.iter();
            present.map(move |index| (at, index))
        });
        let blocks: FxHashSet<usize> = strings.filter(is_dropped).map(|(at, _)| at).collect();
        for at in blocks {
            self.rebuild(at, |index| keep(at * BLOCK + index));
        }
    }

    /// Drops strings of a block.
    fn rebuild(&mut self, at: usize, keep: impl Fn(usize) -> bool) {
        let Some(old) = self.blocks.get(at) else {
            return;
        };
        let mut new = Block::default();
        for index in old.present.iter().filter(|&index| keep(index)) {
            // Less text than before always fits.
            _ = new.push(index, old.get(index).unwrap_or_default());
        }
        if new.ends.is_empty() {
            self.blocks.remove(at);
            return;
        }
        if at != self.end / BLOCK {
            new.text.shrink_to_fit();
            new.ends.shrink_to_fit();
        }
        if let Some(block) = self.blocks.get_mut(at) {
            *block = new;
        }
    }

    /// Returns a read-only copy of the strings.
    pub(crate) fn snapshot(&self) -> Self {
        Strings {
            blocks: self.blocks.clone(),
            end: self.end,
            index: HashTable::new(),
            hasher: self.hasher.clone(),
            bytes: self.bytes,
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
        let blocks = strings.blocks.iter().map(|(_, block)| block);
        let bytes = blocks.map(|it| it.text.capacity() + 4 * it.ends.capacity());
        let typical = BLOCK * (TYPICAL + 4);
        assert!(bytes.sum::<usize>() <= kept.len() * 32 + typical);
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
