//! The converted symbols of one open symbol file, by query.

use std::sync::{Arc, Mutex, PoisonError};

use super::cache::SymbolCache;
use super::key::Key;
use super::table::Converted;
use crate::query::Query;

/// The converted symbols of one symbol file. Nothing is looked up without a cache.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    cache: Option<SymbolCache>,
    loaded: Mutex<Vec<Loaded>>,
}

/// What a query found.
#[derive(Clone, Debug)]
struct Loaded {
    query: Query,
    /// `None` if the file cannot be converted.
    key: Option<Key>,
    table: Option<Arc<Converted>>,
}

impl Tables {
    pub(crate) fn new(cache: SymbolCache) -> Self {
        Self {
            cache: Some(cache),
            loaded: Mutex::default(),
        }
    }

    pub(crate) fn cache(&self) -> Option<&SymbolCache> {
        self.cache.as_ref()
    }

    /// Returns the converted symbols for a query, which are loaded once; `key` makes their key.
    pub(crate) fn get(
        &self,
        query: &Query,
        key: impl FnOnce(&SymbolCache) -> Option<Key>,
    ) -> Option<Arc<Converted>> {
        let cache = self.cache.as_ref().filter(|_| query.is_convertible())?;
        // The number of threads does not change answers.
        let query = Query {
            threads: 0,
            ..*query
        };
        let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.query == query) {
            return known.table.clone();
        }
        let key = key(cache);
        let table = key.and_then(|key| cache.load(&key)).map(Arc::new);
        let loaded = table.clone();
        all.push(Loaded { query, key, table });
        loaded
    }

    /// Called for a table that is damaged: it is not used again.
    pub(crate) fn drop_damaged(&self, damaged: &Arc<Converted>) {
        let mut all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        for known in &mut *all {
            if known
                .table
                .as_ref()
                .is_some_and(|table| Arc::ptr_eq(table, damaged))
            {
                known.table = None;
                if let (Some(key), Some(cache)) = (&known.key, &self.cache) {
                    cache.remove(key);
                }
            }
        }
    }

    /// Returns the queries that found no converted symbols, with their keys.
    pub(crate) fn missing(&self) -> Vec<(Query, Key)> {
        let all = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = all.iter().filter(|known| known.table.is_none());
        missing
            .filter_map(|known| Some((known.query, known.key?)))
            .collect()
    }
}
