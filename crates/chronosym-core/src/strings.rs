//! Interned strings: each distinct text is stored once, in one arena.

use std::hash::BuildHasher;
use std::sync::Arc;

use chronosym_types::hash::RandomState;
use hashbrown::HashTable;

use chronosym_types::Chunked;

/// A string of one [`Strings`]; `StringId::EMPTY` is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StringId(u32);

impl StringId {
    pub(crate) const EMPTY: StringId = StringId(0);
}

/// An append-only set of strings.
#[derive(Debug)]
pub(crate) struct Strings {
    /// Chunks of text shared by copies; each holds whole strings.
    chunks: Vec<Arc<String>>,
    /// Chunk, start and end of each string.
    ranges: Chunked<(u32, u32, u32)>,
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

/// Bytes of a chunk, unless one string is longer.
const CHUNK: usize = 1 << 16;

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Strings {
            chunks: Vec::new(),
            ranges: Chunked::default(),
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
        let (Ok(id), Some(range)) = (u32::try_from(self.ranges.len()), self.append(text)) else {
            return StringId::EMPTY;
        };
        self.ranges.push(range);
        let rehash = |slot: &Slot| Slot::spread(slot.hash);
        self.index
            .insert_unique(Slot::spread(hash), Slot { hash, id }, rehash);
        StringId(id)
    }

    fn append(&mut self, text: &str) -> Option<(u32, u32, u32)> {
        if self
            .chunks
            .last()
            .is_none_or(|chunk| chunk.len() + text.len() > CHUNK)
        {
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Arc::new(String::with_capacity(room)));
        }
        let chunk = u32::try_from(self.chunks.len() - 1).ok()?;
        let last = Arc::make_mut(self.chunks.last_mut()?);
        let start = u32::try_from(last.len()).ok()?;
        let end = u32::try_from(last.len() + text.len()).ok()?;
        last.push_str(text);
        Some((chunk, start, end))
    }

    pub(crate) fn get(&self, id: StringId) -> &str {
        let (chunk, start, end) = self.ranges[id.0 as usize];
        &self.chunks[chunk as usize][start as usize..end as usize]
    }

    /// Returns a read-only copy of the strings.
    pub(crate) fn snapshot(&self) -> Self {
        Strings {
            chunks: self.chunks.clone(),
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
}
