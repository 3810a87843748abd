//! Names and paths of formats that store them inline, interned once per batch.

use chronosym_types::hash::HashMap;

use crate::answer::{NonZeroId, Strings};

/// The ids of texts by their offset in the file.
#[derive(Debug, Default)]
pub(crate) struct Interned(HashMap<usize, Option<NonZeroId>>);

impl Interned {
    /// Returns the id of the text at an offset, which `text` returns when it is first used.
    pub(crate) fn id<'a>(
        &mut self,
        offset: usize,
        strings: &mut Strings,
        text: impl FnOnce() -> Option<&'a [u8]>,
    ) -> Option<NonZeroId> {
        let id = self.0.entry(offset);
        *id.or_insert_with(|| strings.intern(text()?))
    }
}
