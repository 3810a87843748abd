//! Names, each stored once for all timelines: processes of one program share them.

use std::sync::Arc;

use chronosym_types::hash::HashMap;

/// Bytes of names after which the pool is emptied.
const MAX_BYTES: usize = 256 << 20;
/// Bytes of a name besides its text.
const NAME: usize = 64;

/// The number of a name in a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub u32);

#[derive(Default)]
pub struct Pool {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Name>,
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
        self.bytes += text.len() + NAME;
        self.texts.push(text.clone());
        self.numbers.insert(text, name);
        name
    }

    pub fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
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
