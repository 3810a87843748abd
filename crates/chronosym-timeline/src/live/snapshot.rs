//! A live map at one moment, for readers.

use std::fmt;

use super::tree::{Entry, Tree};
use crate::occupant::{Id, Life};

/// An answer while events still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiveAnswer {
    /// Who was there, as far as is known.
    pub id: Option<Id>,
    /// Events to come may change the answer.
    pub provisional: bool,
}

/// A [`LiveMap`](super::LiveMap) at the moment it was taken. It does not change, and any number of threads can ask it at once.
pub struct Snapshot {
    tree: Tree,
    watermark: u64,
    finished: bool,
}

impl Snapshot {
    pub(super) fn new(tree: Tree, watermark: u64, finished: bool) -> Self {
        Self {
            tree,
            watermark,
            finished,
        }
    }

    /// Who was alive at `addr` at `time`, and whether that is final. Allocates nothing.
    ///
    /// An occupant is final before the watermark. That there is none is final at the end only: something whose begin nobody saw
    /// may still turn up.
    pub fn lookup(&self, addr: u64, time: u64) -> LiveAnswer {
        let id = self.entry(addr, time).and_then(|e| Id::from_raw(e.key.2));
        LiveAnswer {
            id,
            provisional: !self.finished && (id.is_none() || time >= self.watermark),
        }
    }

    /// Everything that is remembered of `addr`, with its life, in time order: lives of no length too.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Life)> + '_ {
        let start = self.piece(addr);
        let next = move |entry: &&Entry| self.tree.after(entry.key);
        std::iter::successors(self.tree.after((start, 0, 0)), next)
            .take_while(move |e| e.key.0 == start)
            .filter_map(|e| {
                let life = Life {
                    from: e.from,
                    to: e.to,
                    from_known: e.from_known,
                    to_known: e.to_known,
                };
                Some((Id::from_raw(e.key.2)?, life))
            })
    }

    /// Up to when occupants are final: exclusive.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Whether no event is to come.
    pub fn finished(&self) -> bool {
        self.finished
    }

    fn piece(&self, addr: u64) -> u64 {
        self.tree
            .at_or_before((addr, u64::MAX, u32::MAX))
            .map_or(0, |e| e.key.0)
    }

    fn entry(&self, addr: u64, time: u64) -> Option<&Entry> {
        let start = self.piece(addr);
        // The last with evidence up to `time`; if it is dead by then, whoever has evidence later only may have begun before.
        let mut entry = self.tree.at_or_before((start, time, u32::MAX))?;
        loop {
            if entry.key.2 != 0 && time < entry.to {
                return Some(entry);
            }
            entry = self
                .tree
                .after(entry.key)
                .filter(|e| e.key.0 == start && e.from <= time)?;
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("watermark", &self.watermark)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}
