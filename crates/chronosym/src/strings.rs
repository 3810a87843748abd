//! Interned strings: each distinct text is kept once, in one arena.

use std::hash::{BuildHasher, Hash, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap};

/// Names a string of one [`Strings`]. `StringId::EMPTY` is the empty string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StringId(u32);

impl StringId {
    pub(crate) const EMPTY: StringId = StringId(0);
}

/// An append-only set of strings.
#[derive(Debug)]
pub(crate) struct Strings {
    text: String,
    ends: Vec<u32>,
    by_hash: FxHashMap<u64, Bucket>,
}

#[derive(Debug)]
enum Bucket {
    One(u32),
    Many(Vec<u32>),
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Strings {
            text: String::new(),
            ends: Vec::new(),
            by_hash: FxHashMap::default(),
        };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// The id of `text`, which is added if it is new. Past 4 GiB of text everything new is the empty string.
    pub(crate) fn intern(&mut self, text: &str) -> StringId {
        let mut hasher = FxBuildHasher.build_hasher();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        let candidates: &[u32] = match self.by_hash.get(&hash) {
            None => &[],
            Some(Bucket::One(id)) => std::slice::from_ref(id),
            Some(Bucket::Many(ids)) => ids,
        };
        if let Some(&id) = candidates
            .iter()
            .find(|&&id| self.get(StringId(id)) == text)
        {
            return StringId(id);
        }
        let Ok(end) = u32::try_from(self.text.len() + text.len()) else {
            return StringId::EMPTY;
        };
        let id = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(end);
        match self.by_hash.entry(hash) {
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(Bucket::One(id));
            }
            std::collections::hash_map::Entry::Occupied(mut slot) => match slot.get_mut() {
                Bucket::Many(ids) => ids.push(id),
                Bucket::One(first) => {
                    let first = *first;
                    slot.insert(Bucket::Many(vec![first, id]));
                }
            },
        }
        StringId(id)
    }

    pub(crate) fn get(&self, id: StringId) -> &str {
        let index = id.0 as usize;
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1] as usize
        };
        &self.text[start..self.ends[index] as usize]
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
