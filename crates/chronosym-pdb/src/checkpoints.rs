//! Checkpoints in long lists, from which reading goes on: a list that many questions are about is gone through once, not for each.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

/// Lists of no more bytes are gone through for each question.
const SHORT: usize = 1 << 10;
/// Items between two marks.
const STEP: usize = 128;
/// How often each byte of a file is gone through for marks, on average: lists may lie in each other.
const SHARE: usize = 4;

/// A place in a list, and what was read up to there.
pub(crate) trait ListPosition: Clone {
    /// Goes past one item; nothing at the end.
    fn advance(&mut self) -> Option<()>;
}

/// Checkpoints in the lists of one file.
pub(crate) struct Checkpoints<K, W> {
    known: Mutex<(BTreeMap<K, Vec<W>>, usize)>,
    most: usize,
}

impl<K: Ord + Copy, W: ListPosition> Checkpoints<K, W> {
    /// In a file of so many bytes.
    pub(crate) fn new(file: usize) -> Self {
        Self {
            known: Mutex::new((BTreeMap::new(), 0)),
            most: file.saturating_mul(SHARE),
        }
    }

    /// Where to go on in a list of so many bytes: the last mark for which `is_before` holds, as it does for all before it.
    /// Nothing if the file's lists share too many bytes.
    pub(crate) fn nearest(
        &self,
        list: K,
        bytes: usize,
        start: W,
        is_before: impl Fn(&W) -> bool,
    ) -> Option<W> {
        if bytes <= SHORT {
            return Some(start);
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, read) = &mut *known;
        let marks = match of.entry(list) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                *read = read.saturating_add(bytes);
                if *read > self.most {
                    return None;
                }
                let (mut marks, mut walk) = (vec![start.clone()], start.clone());
                while (0..STEP).all(|_| walk.advance().is_some()) {
                    marks.push(walk.clone());
                }
                new.insert(marks)
            }
        };
        let before = marks.partition_point(is_before).checked_sub(1);
        Some(
            before
                .and_then(|at| marks.get(at).cloned())
                .unwrap_or(start),
        )
    }
}
