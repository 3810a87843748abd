//! The state of a live map at one moment, for readers.

use std::fmt;

use super::tree::{SegmentEntry, Tree};
use crate::occupant::{Id, Lifetime, Neighbours};

/// An answer while events still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LiveAnswer {
    /// The occupant.
    pub id: Option<Id>,
    /// Whether later events may change the answer.
    pub provisional: bool,
}

/// The state of a [`LiveMap`](super::LiveMap) at one moment: immutable, for any number of threads.
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

    /// Returns the occupant that was alive at `addr` at `time`, and whether that is final. Takes
    /// O(log n) and does not allocate.
    ///
    /// An occupant is final before the watermark. A lookup without an occupant is final only when
    /// the map is finished: an occupant with an unknown start may still be inserted.
    pub fn lookup(&self, addr: u64, time: u64) -> LiveAnswer {
        let id = self.find(addr, time).map(|(id, _)| id);
        LiveAnswer {
            id,
            provisional: !self.finished && (id.is_none() || time >= self.watermark),
        }
    }

    /// Returns the occupant that was alive at `addr` at `time` with its lifetime. Takes O(log n)
    /// and does not allocate.
    pub fn find(&self, addr: u64, time: u64) -> Option<(Id, Lifetime)> {
        let latest = self.latest(addr)?;
        if latest.from <= time || latest.to <= time {
            // Most lookups are for the present.
            return occupant(latest).filter(|(_, lifetime)| lifetime.contains(time));
        }
        let (_, next) = self.divide(latest.start, time);
        occupant(next?).filter(|(_, lifetime)| lifetime.contains(time))
    }

    /// Returns the occupants of `addr` whose lifetimes are nearest to `time`, without forgotten
    /// ones. Takes O(log n) and does not allocate.
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

    /// Returns the lifetime of `id`, which is at `addr` and whose start is evidence for `instant`;
    /// `None` if it is forgotten.
    pub fn lifetime(&self, id: Id, addr: u64, instant: u64) -> Option<Lifetime> {
        let key = (self.latest(addr)?.start, instant, Id::raw(Some(id)));
        let entry = self.tree.at_or_before(key)?;
        (entry.key() == key).then(|| lifetime(entry))
    }

    /// Returns all occupants of `addr` that are not forgotten with their lifetimes, including empty
    /// ones, in time order.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Lifetime)> + '_ {
        let start = self.latest(addr).map_or(0, |latest| latest.start);
        let next = move |entry: &&SegmentEntry| self.tree.after(entry.key());
        std::iter::successors(self.tree.after((start, 0, 0)), next)
            .take_while(move |entry| entry.start == start)
            .filter_map(occupant)
    }

    /// Returns the time up to which occupants are final, exclusive.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Returns whether all answers are final.
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// Returns the last entry of an address's segment: that of the segment itself if it is empty.
    fn latest(&self, addr: u64) -> Option<&SegmentEntry> {
        self.tree.at_or_before((addr, u64::MAX, u32::MAX))
    }

    /// Returns the last entry of a segment that ended by a time, and the next one.
    fn divide(&self, start: u64, time: u64) -> (Option<&SegmentEntry>, Option<&SegmentEntry>) {
        let ended = |entry: &SegmentEntry| {
            entry.start < start || entry.start == start && (entry.id == 0 || entry.to <= time)
        };
        let (last, next) = self.tree.divide(ended);
        let here = |entry: &&SegmentEntry| entry.start == start;
        (last.filter(here), next.filter(here))
    }
}

/// Returns the occupant of an entry; `None` if it is that of the segment itself.
fn occupant(entry: &SegmentEntry) -> Option<(Id, Lifetime)> {
    Some((Id::from_raw(entry.id)?, lifetime(entry)))
}

fn lifetime(entry: &SegmentEntry) -> Lifetime {
    Lifetime {
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
