//! Segments of the address space: addresses with the same occupants at all times.

use super::tree::{Key, Tree};
use crate::occupant::{Id, Lifetime};

/// Orders the occupants of a segment: instant of the evidence, id.
pub(crate) type Order = (u64, Id);

/// An occupant of a segment, and its lifetime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) instant: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) id: Id,
    pub(crate) from_known: bool,
    pub(crate) to_known: bool,
}

impl Version {
    pub(crate) fn lifetime(&self) -> Lifetime {
        Lifetime {
            from: self.from,
            to: self.to,
            from_known: self.from_known,
            to_known: self.to_known,
        }
    }
}

impl Key for Version {
    type Order = Order;

    fn order(&self) -> Order {
        (self.instant, self.id)
    }
}

/// The occupants of a segment, oldest first. Most segments have one.
#[derive(Clone)]
pub(crate) enum Versions {
    None,
    One(Version),
    Many(Tree<Version, ()>),
}

/// A segment; the tree of segments has its first address. Addresses outside of all segments never
/// had an occupant.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) last: u64,
    /// The latest end of forgotten occupants.
    pub(crate) forgotten: u64,
    pub(crate) versions: Versions,
}

impl Versions {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Versions::None)
    }

    /// Returns the newest one.
    #[inline]
    pub(crate) fn newest(&self) -> Option<&Version> {
        match self {
            Versions::None => None,
            Versions::One(version) => Some(version),
            Versions::Many(all) => Some(all.last(|_| true)?.0),
        }
    }

    /// Returns the last one for which `before` holds and the first for which it does not; `before`
    /// must hold for all up to one.
    pub(crate) fn divide(
        &self,
        before: impl Fn(&Version) -> bool,
    ) -> (Option<&Version>, Option<&Version>) {
        match self {
            Versions::None => (None, None),
            Versions::One(version) if before(version) => (Some(version), None),
            Versions::One(version) => (None, Some(version)),
            Versions::Many(all) => {
                let (last, next) = all.divide(before);
                (last.map(|it| it.0), next.map(|it| it.0))
            }
        }
    }

    /// Returns the one before another.
    pub(crate) fn older(&self, order: Order) -> Option<&Version> {
        self.divide(|version| version.order() < order).0
    }

    /// Returns the one after another.
    pub(crate) fn newer(&self, order: Order) -> Option<&Version> {
        self.divide(|version| version.order() <= order).1
    }

    /// Inserts one; replaces it if it is there.
    pub(crate) fn insert(&mut self, version: Version) {
        match self {
            Versions::None => *self = Versions::One(version),
            Versions::One(one) if one.order() == version.order() => *one = version,
            Versions::One(one) => {
                let mut all = Tree::new();
                all.insert(*one, ());
                all.insert(version, ());
                *self = Versions::Many(all);
            }
            Versions::Many(all) => all.insert(version, ()),
        }
    }

    pub(crate) fn remove(&mut self, order: Order) {
        match self {
            Versions::None => {}
            Versions::One(one) => {
                if one.order() == order {
                    *self = Versions::None;
                }
            }
            Versions::Many(all) => {
                all.remove(&order);
                let (oldest, newest) = (all.divide(|_| false).1, all.last(|_| true));
                if let Some((&oldest, ())) = oldest
                    && newest.is_some_and(|(newest, ())| newest.order() == oldest.order())
                {
                    *self = Versions::One(oldest);
                }
            }
        }
    }

    /// Returns the bytes beyond their own size.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Versions::None | Versions::One(_) => 0,
            Versions::Many(all) => all.memory_bytes(&|()| 0),
        }
    }
}
