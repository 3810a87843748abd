//! The numbers of recent texts by their UTF-16 form: they need not be decoded again.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

/// Number of slots.
const SLOTS: usize = 2048;
/// Maximum number of bytes of a text.
pub(crate) const LONGEST: usize = 512;

/// Some texts with their ids. Empty until the first one.
#[derive(Debug, Default)]
pub(crate) struct RecentTexts {
    /// Ids by a hash of the text.
    ids: Vec<u32>,
    /// Texts by id.
    texts: Vec<(u32, Vec<u8>)>,
}

impl RecentTexts {
    /// Returns the id of a text.
    pub(crate) fn id(&self, text: &[u8]) -> Option<u32> {
        let id = *self.ids.get(hash_slot(text))?;
        self.is(id, text).then_some(id)
    }

    /// Returns whether an id is known to be that of a text.
    pub(crate) fn is(&self, id: u32, text: &[u8]) -> bool {
        let recent = self.texts.get(id_slot(id));
        recent.is_some_and(|(of, known)| *of == id && known == text)
    }

    /// Adds a text, unless it is too long.
    pub(crate) fn add(&mut self, id: u32, text: &[u8]) {
        if text.len() > LONGEST {
            return;
        }
        if self.ids.is_empty() {
            self.ids.resize(SLOTS, 0);
            self.texts.resize_with(SLOTS, Default::default);
        }
        self.ids[hash_slot(text)] = id;
        let (of, known) = &mut self.texts[id_slot(id)];
        *of = id;
        known.clear();
        known.extend_from_slice(text);
    }

    /// Forgets all texts: their ids may no longer exist.
    pub(crate) fn clear(&mut self) {
        *self = RecentTexts::default();
    }
}

fn hash_slot(text: &[u8]) -> usize {
    FxBuildHasher.hash_one(text) as usize % SLOTS
}

fn id_slot(id: u32) -> usize {
    id as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_recent_until_another_takes_its_slot() {
        let mut recent = RecentTexts::default();
        assert_eq!(recent.id(b"a\0"), None);
        let (first, second) = (1, 1 + SLOTS as u32);
        recent.add(first, b"a\0");
        assert_eq!(
            (recent.id(b"a\0"), recent.is(first, b"a\0")),
            (Some(first), true)
        );
        assert!(!recent.is(second, b"a\0") && !recent.is(first, b"b\0"));
        recent.add(second, b"b\0");
        assert_eq!((recent.id(b"b\0"), recent.id(b"a\0")), (Some(second), None));
        assert!(!recent.is(first, b"a\0"));
        recent.add(first, &[1; LONGEST + 1]);
        assert_eq!(recent.id(&[1; LONGEST + 1]), None);
        recent.clear();
        assert_eq!(recent.id(b"b\0"), None);
    }
}
