//! Stores each file path and name once.

use std::sync::{Arc, Mutex, PoisonError};

use chronosym_types::hash::HashSet;

use chronosym_core::SourceLine;

#[derive(Default)]
pub(super) struct Texts(Mutex<HashSet<Arc<str>>>);

impl Texts {
    /// Returns a line in the file at a path.
    pub(super) fn line(&self, path: &str, line: u32, column: Option<impl Into<u32>>) -> SourceLine {
        SourceLine::new(self.get(path), line, column.map(Into::into))
    }

    pub(super) fn get(&self, text: &str) -> Arc<str> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        known.insert(Arc::clone(&shared));
        shared
    }
}
