//! The state of a live map at one moment, for readers.

use std::fmt;

use super::segment::{Segment, Version, Versions};
use super::tree::{Key, Tree};
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
    tree: Tree<u64, Segment>,
    watermark: u64,
    finished: bool,
}

impl Snapshot {
    pub(super) fn new(tree: Tree<u64, Segment>, watermark: u64, finished: bool) -> Self {
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
    #[inline]
    pub fn lookup(&self, addr: u64, time: u64) -> LiveAnswer {
        let id = self.id(addr, time);
        LiveAnswer {
            id,
            provisional: !self.finished && (id.is_none() || time >= self.watermark),
        }
    }

    /// Returns the occupant that was alive at `addr` at `time` with its lifetime. Takes O(log n)
    /// and does not allocate.
    #[inline]
    pub fn find(&self, addr: u64, time: u64) -> Option<(Id, Lifetime)> {
        let (version, is_alive) = self.version(addr, time)?;
        is_alive.then(|| occupant(version))
    }

    /// Returns the occupant that was alive at `addr` at `time`, as [`find`](Self::find) without its
    /// lifetime, but faster.
    #[inline]
    pub fn id(&self, addr: u64, time: u64) -> Option<Id> {
        let (version, is_alive) = self.version(addr, time)?;
        // A branch here would be mispredicted often, and only after all loads.
        Id::from_raw(version.id.raw() * u32::from(is_alive))
    }

    /// Returns the occupant that may have been alive at `addr` at `time`, and whether it was.
    #[inline(always)]
    fn version(&self, addr: u64, time: u64) -> Option<(&Version, bool)> {
        let (_, segment) = self.tree.last(|start| *start <= addr)?;
        let version = segment.versions.ending_after(time)?;
        let is_alive = (addr <= segment.last) & (version.from <= time) & (time < version.to);
        Some((version, is_alive))
    }

    /// Returns the occupants of `addr` whose lifetimes are nearest to `time`, without forgotten
    /// ones. Takes O(log n) and does not allocate.
    pub fn neighbours(&self, addr: u64, time: u64) -> Neighbours {
        let Some(versions) = self.versions(addr) else {
            return Neighbours::default();
        };
        let (before, mut after) = versions.divide(|version| version.to <= time);
        if let Some(alive) = after.filter(|version| version.from <= time) {
            after = versions.newer(alive.order());
        }
        Neighbours {
            before: before.map(occupant),
            after: after.map(occupant),
        }
    }

    /// Returns the lifetime of `id`, which is at `addr` and whose start is evidence for `instant`;
    /// `None` if it is forgotten.
    pub fn lifetime(&self, id: Id, addr: u64, instant: u64) -> Option<Lifetime> {
        let order = (instant, id);
        let (version, _) = self.versions(addr)?.divide(|it| it.order() <= order);
        version
            .filter(|it| it.order() == order)
            .map(Version::lifetime)
    }

    /// Returns all occupants of `addr` that are not forgotten with their lifetimes, including empty
    /// ones, in time order.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Lifetime)> + '_ {
        let versions = self.versions(addr);
        let oldest = versions.and_then(|versions| versions.divide(|_| false).1);
        let next = move |version: &&Version| versions?.newer(version.order());
        std::iter::successors(oldest, next).map(occupant)
    }

    /// Returns the time up to which occupants are final, exclusive.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Returns whether all answers are final.
    pub fn finished(&self) -> bool {
        self.finished
    }

    #[inline]
    fn versions(&self, addr: u64) -> Option<&Versions> {
        let (_, segment) = self.tree.last(|start| *start <= addr)?;
        (addr <= segment.last).then_some(&segment.versions)
    }
}

fn occupant(version: &Version) -> (Id, Lifetime) {
    (version.id, version.lifetime())
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("watermark", &self.watermark)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}
