//! Interned strings: each distinct text is kept once, in one arena.

use std::hash::BuildHasher;
use std::sync::Arc;

use chronosym_types::hash::RandomState;
use hashbrown::HashTable;

use chronosym_types::Chunked;

/// Names a string of one [`Strings`]. `StringId::EMPTY` is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StringId(u32);

impl StringId {
    pub(crate) const EMPTY: StringId = StringId(0);
}

/// An append-only set of strings.
#[derive(Debug)]
pub(crate) struct Strings {
    /// Text in pieces that copies share; each holds whole strings.
    pieces: Vec<Arc<String>>,
    /// Piece, begin and end of each string.
    places: Chunked<(u32, u32, u32)>,
    index: HashTable<Slot>,
    hasher: RandomState,
}

/// A string in the index: half of its hash spares looking at most others.
#[derive(Debug)]
struct Slot {
    hash: u32,
    id: u32,
}

impl Slot {
    /// The table looks at the lowest and at the highest bits.
    fn spread(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

/// Bytes of a piece, unless one string is longer.
const PIECE: usize = 1 << 16;

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Strings {
            pieces: Vec::new(),
            places: Chunked::default(),
            index: HashTable::new(),
            hasher: RandomState::default(),
        };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// The id of `text`, which is added if it is new. Past 4 Gi strings everything new is the empty string.
    pub(crate) fn intern(&mut self, text: &str) -> StringId {
        let hash = self.hasher.hash_one(text) as u32;
        let same = |slot: &Slot| slot.hash == hash && self.get(StringId(slot.id)) == text;
        if let Some(known) = self.index.find(Slot::spread(hash), same) {
            return StringId(known.id);
        }
        let (Ok(id), Some(place)) = (u32::try_from(self.places.len()), self.append(text)) else {
            return StringId::EMPTY;
        };
        self.places.push(place);
        let rehash = |slot: &Slot| Slot::spread(slot.hash);
        self.index
            .insert_unique(Slot::spread(hash), Slot { hash, id }, rehash);
        StringId(id)
    }

    fn append(&mut self, text: &str) -> Option<(u32, u32, u32)> {
        if self
            .pieces
            .last()
            .is_none_or(|piece| piece.len() + text.len() > PIECE)
        {
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Arc::new(String::with_capacity(room)));
        }
        let piece = u32::try_from(self.pieces.len() - 1).ok()?;
        let last = Arc::make_mut(self.pieces.last_mut()?);
        let start = u32::try_from(last.len()).ok()?;
        let end = u32::try_from(last.len() + text.len()).ok()?;
        last.push_str(text);
        Some((piece, start, end))
    }

    pub(crate) fn get(&self, id: StringId) -> &str {
        let (piece, start, end) = self.places[id.0 as usize];
        &self.pieces[piece as usize][start as usize..end as usize]
    }

    /// The strings as they are now, to be read.
    pub(crate) fn snapshot(&self) -> Self {
        Strings {
            pieces: self.pieces.clone(),
            places: self.places.clone(),
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
