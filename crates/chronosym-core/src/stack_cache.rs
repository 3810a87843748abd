//! A cache of resolved stacks by interned stack.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::answers::Answers;
use crate::ids::{ProcessIndex, StackId};
use crate::terms::Position;

/// What a resolved stack depends on apart from its time: its process, the position of its innermost
/// address, and whether a time is given.
type Key = (ProcessIndex, Position, bool);

const _: () = assert!(size_of::<Option<First>>() == 16);

/// The nodes of resolved stacks. Ids of interned stacks are dense, and nearly every stack is of one
/// process, at times with one answer: that is found without hashing.
#[derive(Default)]
pub(crate) struct StackCache {
    first: Vec<Option<First>>,
    /// The times at which first answers are valid: those of a stack are mostly those of the stack
    /// before it.
    times: Vec<Range<u64>>,
    others: FxHashMap<(StackId, Key), Answers<u32>>,
}

/// The first answer for a stack, in 16 bytes.
#[derive(Clone)]
struct First {
    key: Key,
    node: u32,
    times: u32,
}

impl StackCache {
    /// Returns the node of a stack at a time, with the times for which it is valid.
    pub fn at(&self, stack: StackId, key: Key, time: u64) -> Option<(u32, Range<u64>)> {
        let first = self.first.get(stack.index())?.as_ref()?;
        if first.key == key {
            let valid = &self.times[first.times as usize];
            if valid.contains(&time) {
                return Some((first.node, valid.clone()));
            }
        }
        let (valid, node) = self.others.get(&(stack, key))?.at(time)?;
        Some((*node, valid.clone()))
    }

    /// Stores the node of a stack at a time that had none.
    pub fn keep(&mut self, stack: StackId, key: Key, time: u64, valid: Range<u64>, node: u32) {
        if stack.index() >= self.first.len() {
            self.first.resize(stack.index() + 1, None);
        }
        let first = &mut self.first[stack.index()];
        if first.is_some() {
            let answers = self.others.entry((stack, key)).or_default();
            answers.keep(time, valid, node);
            return;
        }
        if self.times.last() != Some(&valid) {
            self.times.push(valid);
        }
        let times = self.times.len() as u32 - 1;
        *first = Some(First { key, node, times });
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.first.clear();
        self.times.clear();
        self.others.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_process_position_and_time() {
        let mut stacks = crate::stacks::StackTable::default();
        let stack = stacks.intern([2, 1].into_iter()).expect("room");
        let mut cache = StackCache::default();
        let key = |process| (ProcessIndex(process), Position::Exact, true);
        cache.keep(stack, key(0), 5, 0..10, 7);
        cache.keep(stack, key(1), 5, 0..10, 8);
        cache.keep(stack, key(0), 15, 10..20, 9);
        let at = |process, time| cache.at(stack, key(process), time).map(|(node, _)| node);
        assert_eq!([at(0, 5), at(1, 5), at(0, 15)], [Some(7), Some(8), Some(9)]);
        assert_eq!([at(0, 20), at(1, 15), at(2, 5)], [None; 3]);
        let caller = stacks.caller(stack).expect("a caller");
        assert!(cache.at(caller, key(0), 5).is_none());
    }
}
