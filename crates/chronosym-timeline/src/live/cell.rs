//! The one place where writer and readers meet: the latest snapshot.

use std::sync::Arc;

use super::Snapshot;

#[cfg(not(loom))]
mod imp {
    /// Loading never waits for a store, and a store never for a load.
    pub(super) type Cell<T> = arc_swap::ArcSwap<T>;

    pub(super) fn new<T>(value: std::sync::Arc<T>) -> Cell<T> {
        Cell::new(value)
    }
}

/// A model of the same for loom, which cannot look into arc-swap.
#[cfg(loom)]
mod imp {
    use std::sync::Arc;

    pub(super) struct Cell<T>(loom::sync::Mutex<Arc<T>>);

    impl<T> Cell<T> {
        pub(super) fn load_full(&self) -> Arc<T> {
            self.0.lock().unwrap().clone()
        }

        pub(super) fn store(&self, value: Arc<T>) {
            *self.0.lock().unwrap() = value;
        }
    }

    pub(super) fn new<T>(value: Arc<T>) -> Cell<T> {
        Cell(loom::sync::Mutex::new(value))
    }
}

pub(crate) struct Latest(imp::Cell<Snapshot>);

impl Latest {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self(imp::new(Arc::new(snapshot)))
    }

    pub(crate) fn load(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }

    pub(crate) fn store(&self, snapshot: Snapshot) {
        self.0.store(Arc::new(snapshot));
    }
}
