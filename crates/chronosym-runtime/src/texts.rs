//! Texts of events, each stored once.

use std::sync::Arc;

use chronosym_types::hash::HashSet;

/// Distinct texts.
#[derive(Debug, Default)]
pub(crate) struct Texts(HashSet<Arc<str>>);

impl Texts {
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.0.insert(text.clone());
        text
    }
}
