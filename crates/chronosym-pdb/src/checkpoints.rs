//! Checkpoints in long lists of variable-length elements, so that repeated lookups in one list do
//! not each decode it from its start.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

/// Lists of at most this many bytes are decoded from their start each time.
const SHORT: usize = 1 << 10;
/// Elements between two checkpoints.
const STEP: usize = 128;
/// Maximum ratio of checkpointed data to the file's size: lists may overlap.
const MAX_SHARE: usize = 4;

/// A position in a list, with the state decoded up to it.
pub(crate) trait ListPosition: Clone {
    /// Moves past one element; `None` at the end.
    fn advance(&mut self) -> Option<()>;
}

/// Checkpoints in the lists of one file.
pub(crate) struct Checkpoints<K, P> {
    lists: Mutex<(BTreeMap<K, Vec<P>>, usize)>,
    max_bytes: usize,
}

impl<K: Ord + Copy, P: ListPosition> Checkpoints<K, P> {
    /// For a file of `file` bytes.
    pub(crate) fn new(file: usize) -> Self {
        Self {
            lists: Mutex::new((BTreeMap::new(), 0)),
            max_bytes: file.saturating_mul(MAX_SHARE),
        }
    }

    /// Returns the last checkpoint of a list of `bytes` bytes for which `is_before` holds;
    /// `is_before` must partition the positions. `None` if the file's lists overlap too much.
    pub(crate) fn nearest(
        &self,
        list: K,
        bytes: usize,
        start: P,
        is_before: impl Fn(&P) -> bool,
    ) -> Option<P> {
        if bytes <= SHORT {
            return Some(start);
        }
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let (lists, read) = &mut *lists;
        let checkpoints = match lists.entry(list) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                *read = read.saturating_add(bytes);
                if *read > self.max_bytes {
                    return None;
                }
                let (mut checkpoints, mut position) = (vec![start.clone()], start.clone());
                while (0..STEP).all(|_| position.advance().is_some()) {
                    checkpoints.push(position.clone());
                }
                entry.insert(checkpoints)
            }
        };
        let before = checkpoints.partition_point(is_before).checked_sub(1);
        Some(
            before
                .and_then(|at| checkpoints.get(at).cloned())
                .unwrap_or(start),
        )
    }
}
