//! The state of a live map at one moment, for readers.

use std::fmt;
use std::sync::Arc;

use super::base::Base;
use super::segment::{Segment, Version, Versions};
use super::tree::{Key, Tree};
use crate::directory::Hint;
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
    base: Option<Arc<Base>>,
    changes: Tree<u64, Segment>,
    watermark: u64,
    finished: bool,
}

impl Snapshot {
    pub(super) fn new(
        base: Option<Arc<Base>>,
        changes: Tree<u64, Segment>,
        watermark: u64,
        finished: bool,
    ) -> Self {
        Self {
            base,
            changes,
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
        match self.versions(addr) {
            Occupants::Unchanged(base, hint) => base.find(hint, addr, time),
            Occupants::Changed(versions) => {
                let version = versions?.ending_after(time)?;
                version.is_alive(time).then(|| occupant(version))
            }
        }
    }

    /// Returns the occupant that was alive at `addr` at `time`, as [`find`](Self::find) without its
    /// lifetime, but faster.
    #[inline]
    pub fn id(&self, addr: u64, time: u64) -> Option<Id> {
        match self.versions(addr) {
            Occupants::Unchanged(base, hint) => base.id(hint, addr, time),
            Occupants::Changed(versions) => {
                let version = versions?.ending_after(time)?;
                // A branch here would be mispredicted often, and only after all loads.
                Id::from_raw(version.id.raw() * u32::from(version.is_alive(time)))
            }
        }
    }

    /// Returns the occupants of `addr` whose lifetimes are nearest to `time`, without forgotten
    /// ones. Takes the time of [`VersionedMap::neighbours`](crate::VersionedMap::neighbours) and
    /// does not allocate.
    pub fn neighbours(&self, addr: u64, time: u64) -> Neighbours {
        let versions = match self.versions(addr) {
            Occupants::Unchanged(base, _) => return base.neighbours(addr, time),
            Occupants::Changed(None) => return Neighbours::default(),
            Occupants::Changed(Some(versions)) => versions,
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
        match self.versions(addr) {
            Occupants::Unchanged(base, _) => base.lifetime(id),
            Occupants::Changed(versions) => {
                let order = (instant, id);
                let version = versions?.divide(|it| it.order() <= order).0;
                let version = version.filter(|it| it.order() == order);
                version.map(Version::lifetime)
            }
        }
    }

    /// Returns all occupants of `addr` that are not forgotten with their lifetimes, including empty
    /// ones, in time order.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Lifetime)> + '_ {
        let (base, versions) = match self.versions(addr) {
            Occupants::Unchanged(base, _) => (Some(base), None),
            Occupants::Changed(versions) => (None, versions),
        };
        let oldest = versions.and_then(|versions| versions.divide(|_| false).1);
        let next = move |version: &&Version| versions?.newer(version.order());
        let changed = std::iter::successors(oldest, next).map(occupant);
        let unchanged = base.into_iter().flat_map(move |base| base.occupants(addr));
        unchanged.chain(changed)
    }

    /// Returns the time up to which occupants are final, exclusive.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Returns whether all answers are final.
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// Returns where the occupants of an address are.
    #[inline(always)]
    fn versions(&self, addr: u64) -> Occupants<'_> {
        let versions = || {
            let (_, segment) = self.changes.last(|start| *start <= addr)?;
            (addr <= segment.last).then_some(&segment.versions)
        };
        let Some(base) = &self.base else {
            return Occupants::Changed(versions());
        };
        let hint = base.hint(addr);
        match base.may_have_changed(hint, addr).then(versions).flatten() {
            None => Occupants::Unchanged(base, hint),
            changed => Occupants::Changed(changed),
        }
    }
}

/// The occupants of an address.
enum Occupants<'s> {
    /// Those of the base.
    Unchanged(&'s Base, Hint),
    Changed(Option<&'s Versions>),
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
