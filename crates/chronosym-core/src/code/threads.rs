//! The last events of each thread: maps belong to adjacent events (rule 12).

use std::sync::Arc;

use chronosym_events::Extent;
use chronosym_types::hash::HashMap;

use crate::ids::BodyIndex;
use crate::il_map::IlMap;

/// Runtime instance, method, native code version, extent.
pub(super) type VersionKey = (u16, u64, u64, Extent);

/// A map that waits for its body's event.
#[derive(Debug)]
pub(super) struct Pending {
    pub time: u64,
    pub method_id: u64,
    pub extent: Extent,
    /// The version, if the event states one (V1).
    pub version: Option<VersionKey>,
    pub map: Arc<IlMap>,
    /// Number of maps before it.
    pub before: usize,
}

/// The last events of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadState {
    /// The last method event, unless it ended the method.
    pub last_method: Option<(u64, BodyIndex)>,
    pub pending: Option<Pending>,
    /// Time of its last event.
    pub last_ns: u64,
    pub jitting: Vec<(u64, u64)>,
}

/// The states of threads by id.
#[derive(Debug, Default)]
pub(super) struct Threads {
    states: Vec<(u64, ThreadState)>,
    index: HashMap<u64, usize>,
    /// The position of the last thread that logged something: most events are of its thread.
    recent: usize,
}

impl Threads {
    /// Returns the number of threads.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns the state of a thread.
    pub fn get(&self, thread: u64) -> Option<&ThreadState> {
        let position = self.index.get(&thread)?;
        self.states.get(*position).map(|(_, state)| state)
    }

    /// Returns the state of a thread that logs something.
    #[inline]
    pub fn logging(&mut self, thread: u64, time: u64) -> &mut ThreadState {
        let recent = self.states.get(self.recent);
        if recent.is_none_or(|(id, _)| *id != thread) {
            self.recent = self.position(thread);
        }
        let (_, state) = &mut self.states[self.recent];
        state.last_ns = time;
        state
    }

    /// Returns the position of a thread's state, which is added if there is none.
    #[inline(never)]
    fn position(&mut self, thread: u64) -> usize {
        let new = self.states.len();
        let position = *self.index.entry(thread).or_insert(new);
        if position == new {
            self.states.push((thread, ThreadState::default()));
        }
        position
    }

    /// Returns all states to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut ThreadState> {
        self.states.iter_mut().map(|(_, state)| state)
    }

    /// Removes and returns the states of threads that have logged nothing since a time.
    pub fn remove_until(&mut self, time: u64) -> Vec<ThreadState> {
        let is_old = |(_, state): &mut (u64, ThreadState)| state.last_ns <= time;
        let old: Vec<_> = self.states.extract_if(.., is_old).collect();
        if !old.is_empty() {
            self.states.shrink_to(2 * self.states.len());
            let ids = self.states.iter().map(|(id, _)| *id);
            self.index = ids.zip(0..).collect();
        }
        old.into_iter().map(|(_, state)| state).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_keeps_its_state_until_it_is_removed() {
        let mut threads = Threads::default();
        for (thread, time) in [(7, 1), (8, 2), (7, 3), (9, 4), (8, 5)] {
            threads.logging(thread, time).jitting.push((thread, time));
        }
        let jitting = |threads: &Threads, thread| Some(threads.get(thread)?.jitting.clone());
        assert_eq!(jitting(&threads, 7), Some(vec![(7, 1), (7, 3)]));
        assert_eq!(jitting(&threads, 8), Some(vec![(8, 2), (8, 5)]));
        let removed = threads.remove_until(3);
        assert_eq!(removed.len(), 1);
        assert_eq!((jitting(&threads, 7), threads.len()), (None, 2));
        assert_eq!(jitting(&threads, 9), Some(vec![(9, 4)]));
        threads.logging(7, 6);
        assert_eq!(jitting(&threads, 7), Some(vec![]));
        assert_eq!(jitting(&threads, 8), Some(vec![(8, 2), (8, 5)]));
    }
}
