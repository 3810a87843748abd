//! A cache of decoded files, limited by bytes: a PDB may have 50 KB or 2 GB.

use std::convert::Infallible;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronosym_types::hash::{HashMap, RandomState};
use lru::LruCache;

/// Keeps the most recently used values up to a budget in bytes. Threads may share it.
///
/// The cache is not locked while a value is loaded, and threads that need the same key at the same
/// time load it once. Values in use stay alive through their `Arc` after the cache has dropped
/// them.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use chronosym_symbols::lru::WeightedLru;
///
/// let cache = WeightedLru::new(100); // bytes
/// let make = |size: u64| move || (Arc::new(size), size);
/// cache.get_or_make(&"a", make(60));
/// cache.get_or_make(&"b", make(60));
/// assert_eq!(cache.get(&"a"), None); // the least recently used one made room
/// assert_eq!(cache.weight(), 60);
/// ```
#[derive(Debug)]
pub struct WeightedLru<K: Hash + Eq, T> {
    budget: u64,
    state: Mutex<State<K, T>>,
}

#[derive(Debug)]
struct State<K: Hash + Eq, T> {
    kept: LruCache<K, (Arc<T>, u64), RandomState>,
    weight: u64,
    loading: HashMap<K, Arc<Mutex<Option<Arc<T>>>>>,
}

impl<K: Hash + Eq + Clone, T> WeightedLru<K, T> {
    /// Creates a cache that keeps at most `budget` bytes, by the weights that the loaders return.
    pub fn new(budget: u64) -> Self {
        let state = State {
            kept: LruCache::unbounded_with_hasher(RandomState::default()),
            weight: 0,
            loading: HashMap::default(),
        };
        Self {
            budget,
            state: Mutex::new(state),
        }
    }

    /// Returns the value of `key`, loaded with `load` if it is not cached. `load` returns the value
    /// and its weight in bytes.
    ///
    /// A value heavier than the budget is returned but not kept. If another thread is loading the
    /// same key, this one waits for the result, and loads itself if that load fails or panics.
    /// Failures are not cached; make them part of `T` if they should be. `load` must not use the
    /// same key: it would wait for itself.
    ///
    /// # Errors
    /// The error of `load`.
    pub fn get_or_load<E>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<(Arc<T>, u64), E>,
    ) -> Result<Arc<T>, E> {
        let flight = {
            let mut state = self.lock();
            if let Some((value, _)) = state.kept.get(key) {
                return Ok(Arc::clone(value));
            }
            Arc::clone(state.loading.entry(key.clone()).or_default())
        };
        let mut result = flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*result {
            return Ok(Arc::clone(value));
        }
        let loaded = load();
        let mut state = self.lock();
        // Waiting threads have the flight; later ones get the value or start again.
        let current = state.loading.get(key);
        if current.is_some_and(|current| Arc::ptr_eq(current, &flight)) {
            state.loading.remove(key);
        }
        let (value, weight) = loaded?;
        *result = Some(Arc::clone(&value));
        let evicted = state.keep(key.clone(), Arc::clone(&value), weight, self.budget);
        drop(state);
        // Dropping a decoded file may unmap gigabytes, so the lock is released first.
        drop(evicted);
        Ok(value)
    }

    /// As [`get_or_load`](Self::get_or_load), for loads that cannot fail.
    pub fn get_or_make(&self, key: &K, make: impl FnOnce() -> (Arc<T>, u64)) -> Arc<T> {
        match self.get_or_load(key, || Ok::<_, Infallible>(make())) {
            Ok(value) => value,
        }
    }

    /// Returns the value of `key` if it is cached; marks it as used.
    pub fn get(&self, key: &K) -> Option<Arc<T>> {
        self.lock()
            .kept
            .get(key)
            .map(|(value, _)| Arc::clone(value))
    }

    /// Returns all values, without marking them as used.
    pub fn values(&self) -> Vec<Arc<T>> {
        let state = self.lock();
        let values = state.kept.iter().map(|(_, (value, _))| Arc::clone(value));
        values.collect()
    }

    /// Returns the weight of all values in bytes; at most the budget.
    pub fn weight(&self) -> u64 {
        self.lock().weight
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.lock().kept.len()
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq, T> State<K, T> {
    fn keep(&mut self, key: K, value: Arc<T>, weight: u64, budget: u64) -> Vec<Arc<T>> {
        let mut evicted = Vec::new();
        if weight > budget {
            return evicted;
        }
        if let Some((_, (old, old_weight))) = self.kept.push(key, (value, weight)) {
            self.weight = self.weight.saturating_sub(old_weight);
            evicted.push(old);
        }
        self.weight = self.weight.saturating_add(weight);
        while self.weight > budget {
            let Some((_, (old, old_weight))) = self.kept.pop_lru() else {
                break;
            };
            self.weight = self.weight.saturating_sub(old_weight);
            evicted.push(old);
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn load(cache: &WeightedLru<u32, u32>, key: u32, weight: u64) -> u32 {
        *cache.get_or_make(&key, || (Arc::new(key), weight))
    }

    #[test]
    fn keeps_the_recently_used_within_the_budget() {
        let cache = WeightedLru::new(10);
        for key in 1..=3 {
            load(&cache, key, 3);
        }
        assert_eq!(cache.weight(), 9);
        assert!(cache.get(&1).is_some());
        load(&cache, 4, 5);
        assert!(cache.get(&2).is_none(), "the least recently used");
        assert!(cache.get(&3).is_none(), "and the next");
        assert!(cache.get(&1).is_some());
        assert_eq!((cache.weight(), cache.len()), (8, 2));
    }

    #[test]
    fn too_heavy_is_usable_but_not_kept() {
        let cache = WeightedLru::new(10);
        load(&cache, 1, 4);
        assert_eq!(load(&cache, 2, 11), 2);
        assert!(cache.get(&2).is_none());
        assert!(cache.get(&1).is_some(), "nothing else was dropped");
        assert_eq!(cache.weight(), 4);
    }

    #[test]
    fn a_key_is_loaded_once_and_does_not_block_others() {
        let cache = WeightedLru::new(100);
        let loads = AtomicU32::new(0);
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    let value: Result<_, Infallible> = cache.get_or_load(&7, || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        // Another key can be loaded meanwhile.
                        assert_eq!(load(&cache, 8, 1), 8);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        Ok((Arc::new(70), 1))
                    });
                    assert_eq!(value.map(|v| *v), Ok(70));
                });
            }
        });
        assert_eq!(loads.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn failures_and_panics_are_not_cached() {
        let cache: WeightedLru<u32, u32> = WeightedLru::new(100);
        assert_eq!(cache.get_or_load(&1, || Err("no")), Err("no"));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _: Result<_, ()> = cache.get_or_load(&1, || panic!("while loading"));
        }));
        assert!(panicked.is_err());
        assert_eq!(load(&cache, 1, 1), 1);
    }

    proptest::proptest! {
        /// Compares with a list in the order of use, cut to the budget from its old end.
        #[test]
        fn keeps_the_values_of_a_naive_model(loads in proptest::collection::vec((0..6_u32, 0..7_u64), 0..60)) {
            let cache = WeightedLru::new(12);
            let mut model: Vec<(u32, u64)> = Vec::new();
            for (key, weight) in loads {
                load(&cache, key, weight);
                match model.iter().position(|&(other, _)| other == key) {
                    Some(at) => {
                        let entry = model.remove(at);
                        model.push(entry);
                    }
                    None if weight <= 12 => model.push((key, weight)),
                    None => {}
                }
                while model.iter().map(|&(_, weight)| weight).sum::<u64>() > 12 {
                    model.remove(0);
                }
                proptest::prop_assert_eq!(cache.weight(), model.iter().map(|&(_, weight)| weight).sum::<u64>());
                proptest::prop_assert_eq!(cache.len(), model.len());
            }
            // In the order of the model, which does not change the order of use.
            for (key, _) in model {
                proptest::prop_assert!(cache.get(&key).is_some());
            }
        }
    }
}
