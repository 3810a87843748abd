//! Names, each stored once for all timelines: processes of one program share them.

use std::sync::Arc;

use chronosym_types::hash::HashMap;

/// Bytes of names after which the pool is emptied.
const MAX_BYTES: usize = 256 << 20;
/// Bytes of a name besides its text, and of a list besides its names.
const ENTRY: usize = 64;

/// The number of a name in a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(pub u32);

/// The number of a list of names in a [`Pool`]: those of an address with inlinees.
#[derive(Clone, Copy, Debug)]
pub struct List(u32);

#[derive(Default)]
pub struct Pool {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Name>,
    lists: Vec<Arc<[Name]>>,
    list_numbers: HashMap<Arc<[Name]>, List>,
    bytes: usize,
}

impl Pool {
    /// Returns the number of a name, which is added if it is new.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.numbers.get(text) {
            return name;
        }
        let name = Name(self.texts.len() as u32);
        let text: Arc<str> = text.into();
        self.bytes += text.len() + ENTRY;
        self.texts.push(text.clone());
        self.numbers.insert(text, name);
        name
    }

    /// Returns the number of a list, which is added if it is new.
    pub fn list(&mut self, names: &[Name]) -> List {
        if let Some(&list) = self.list_numbers.get(names) {
            return list;
        }
        let list = List(self.lists.len() as u32);
        let names: Arc<[Name]> = names.into();
        self.bytes += size_of_val(&*names) + ENTRY;
        self.lists.push(names.clone());
        self.list_numbers.insert(names, list);
        list
    }

    #[inline]
    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

    #[inline]
    pub fn names(&self, list: List) -> &[Name] {
        &self.lists[list.0 as usize]
    }

    /// The number of names.
    #[cfg(feature = "fleet")]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether it has to be emptied before the next batch.
    pub fn is_full(&self) -> bool {
        self.bytes > MAX_BYTES
    }
}
