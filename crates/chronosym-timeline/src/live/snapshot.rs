//! A live map at one moment, for readers.

use std::fmt;

use super::tree::{Entry, Tree};
use crate::occupant::{Id, Life, Neighbours};

/// An answer while events still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
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

    /// Who was alive at `addr` at `time`, and whether that is final. In O(log n), allocates nothing.
    ///
    /// An occupant is final before the watermark. That there is none is final at the end only: something whose begin nobody saw
    /// may still turn up.
    pub fn lookup(&self, addr: u64, time: u64) -> LiveAnswer {
        let id = self.find(addr, time).map(|(id, _)| id);
        LiveAnswer {
            id,
            provisional: !self.finished && (id.is_none() || time >= self.watermark),
        }
    }

    /// Who was alive at `addr` at `time`, with its life. In O(log n), allocates nothing.
    pub fn find(&self, addr: u64, time: u64) -> Option<(Id, Life)> {
        let latest = self.latest(addr)?;
        if latest.from <= time || latest.to <= time {
            // Most questions are of now.
            return occupant(latest).filter(|(_, life)| life.contains(time));
        }
        let (_, next) = self.divide(latest.start, time);
        occupant(next?).filter(|(_, life)| life.contains(time))
    }

    /// Whose lives at `addr` are the nearest to `time`, as far as is remembered. In O(log n), allocates nothing.
    pub fn neighbours(&self, addr: u64, time: u64) -> Neighbours {
        let Some(latest) = self.latest(addr) else {
            return Neighbours::default();
        };
        let (before, mut after) = self.divide(latest.start, time);
        if let Some(alive) = after.filter(|entry| entry.from <= time) {
            let next = self.tree.after(alive.key());
            after = next.filter(|next| next.start == alive.start);
        }
        Neighbours {
            before: before.and_then(occupant),
            after: after.and_then(occupant),
        }
    }

    /// The life of `id`, which is at `addr` and whose begin is evidence for `instant`; `None` if it is forgotten.
    pub fn life(&self, id: Id, addr: u64, instant: u64) -> Option<Life> {
        let key = (self.latest(addr)?.start, instant, Id::raw(Some(id)));
        let entry = self.tree.at_or_before(key)?;
        (entry.key() == key).then(|| life(entry))
    }

    /// Everything that is remembered of `addr`, with its life, in time order: lives of no length too.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Life)> + '_ {
        let start = self.latest(addr).map_or(0, |latest| latest.start);
        let next = move |entry: &&Entry| self.tree.after(entry.key());
        std::iter::successors(self.tree.after((start, 0, 0)), next)
            .take_while(move |entry| entry.start == start)
            .filter_map(occupant)
    }

    /// Up to when occupants are final: exclusive.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Whether no event is to come.
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// The last entry of an address's piece: the piece itself if nothing is remembered of it.
    fn latest(&self, addr: u64) -> Option<&Entry> {
        self.tree.at_or_before((addr, u64::MAX, u32::MAX))
    }

    /// The last in a piece that ended by a time, and the next: at one address each ends before the next begins.
    fn divide(&self, start: u64, time: u64) -> (Option<&Entry>, Option<&Entry>) {
        let ended = |entry: &Entry| {
            entry.start < start || entry.start == start && (entry.id == 0 || entry.to <= time)
        };
        let (last, next) = self.tree.divide(ended);
        let here = |entry: &&Entry| entry.start == start;
        (last.filter(here), next.filter(here))
    }
}

/// The occupant of an entry; `None` if it is the piece itself.
fn occupant(entry: &Entry) -> Option<(Id, Life)> {
    Some((Id::from_raw(entry.id)?, life(entry)))
}

fn life(entry: &Entry) -> Life {
    Life {
        from: entry.from,
        to: entry.to,
        from_known: entry.from_known,
        to_known: entry.to_known,
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
