//! File paths and names, each once.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashSet;

#[derive(Default)]
pub(super) struct Texts(Mutex<FxHashSet<Arc<str>>>);

impl Texts {
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
