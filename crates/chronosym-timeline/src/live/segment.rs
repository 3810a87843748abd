//! Segments of the address space: addresses with the same occupants at all times.

use std::iter::once;
use std::sync::Arc;

use super::tree::{Key, Tree};
use crate::occupant::{Id, Lifetime, Stated};

/// Orders the occupants of a segment: instant of the evidence, id.
pub(crate) type Order = (u64, Id);

/// An occupant of a segment, and its lifetime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) instant: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) id: Id,
    pub(crate) stated: Stated,
}

impl Version {
    #[inline(always)]
    pub(crate) fn is_alive(&self, time: u64) -> bool {
        (self.from <= time) & (time < self.to)
    }

    pub(crate) fn lifetime(&self) -> Lifetime {
        self.stated.lifetime((self.from, self.to))
    }
}

impl Key for Version {
    type Order = Order;
    type Keys = Vec<Self>;

    fn order(&self) -> Order {
        (self.instant, self.id)
    }
}

/// The occupants of a segment, oldest first. Most segments have one.
#[derive(Clone)]
pub(crate) enum Versions {
    None,
    One(Version),
    /// At most [`FEW`].
    Few(Arc<[Version]>),
    Many(Tree<Version, ()>),
}

/// An insertion copies this many at most.
const FEW: usize = 64;

/// A segment; the tree of segments has its first address.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) last: u64,
    pub(crate) versions: Versions,
}

impl Versions {
    /// Returns those of a list, which is sorted.
    pub(crate) fn of(all: &[Version]) -> Self {
        match *all {
            [] => Versions::None,
            [one] => Versions::One(one),
            _ if all.len() <= FEW => Versions::Few(all.into()),
            _ => Versions::Many(all.iter().map(|&version| (version, ())).collect()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Versions::None)
    }

    /// Returns the first that ends after a time, or the newest one.
    #[inline(always)]
    pub(crate) fn ending_after(&self, time: u64) -> Option<&Version> {
        match self {
            Versions::None => None,
            Versions::One(version) => Some(version),
            Versions::Few(all) => {
                let at = all.partition_point(|version| version.to <= time);
                all.get(at.min(all.len().checked_sub(1)?))
            }
            Versions::Many(all) => {
                let (newest, next) = all.divide(|version| version.to <= time);
                Some(next.or(newest)?.0)
            }
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
            Versions::Few(all) => {
                let at = all.partition_point(before);
                (at.checked_sub(1).map(|last| &all[last]), all.get(at))
            }
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
            Versions::One(one) if one.order() < version.order() => {
                *self = Versions::Few(Arc::new([*one, version]));
            }
            Versions::One(one) => *self = Versions::Few(Arc::new([version, *one])),
            Versions::Few(all) => {
                let at = all.partition_point(|it| it.order() < version.order());
                if all.get(at).is_some_and(|it| it.order() == version.order()) {
                    Arc::make_mut(all)[at] = version;
                    return;
                }
                let (before, after) = all.split_at(at);
                let all = before.iter().chain(once(&version)).chain(after).copied();
                *self = match before.len() + after.len() {
                    FEW.. => Versions::Many(all.map(|version| (version, ())).collect()),
                    _ => Versions::Few(all.collect()),
                };
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
            Versions::Few(all) => {
                let kept = all.iter().filter(|it| it.order() != order);
                *self = Versions::of(&kept.copied().collect::<Vec<_>>());
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
            Versions::Few(all) => size_of_val(&**all),
            Versions::Many(all) => all.memory_bytes(&|()| 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Occupants of one address follow one another.
    fn version(index: usize) -> Version {
        let instant = index as u64 / 2 * 10;
        Version {
            instant,
            from: instant,
            to: instant + [0, 7][index % 2],
            id: Id::from_index(index).expect("few"),
            stated: Stated(0),
        }
    }

    proptest! {
        #[test]
        fn is_sorted_for_any_number(
            changes in prop::collection::vec((0..3 * FEW, prop::bool::weighted(0.8)), 0..600)
        ) {
            let (mut versions, mut model) = (Versions::None, BTreeMap::new());
            for (step, &(index, adds)) in changes.iter().enumerate() {
                let mut version = version(index);
                if adds {
                    version.stated = Stated(step as u8 % 2);
                    versions.insert(version);
                    model.insert(version.order(), version.stated);
                } else {
                    versions.remove(version.order());
                    model.remove(&version.order());
                }
            }
            prop_assert_eq!(versions.is_empty(), model.is_empty());
            let oldest = versions.divide(|_| false).1;
            let all = std::iter::successors(oldest, |it| versions.newer(it.order()));
            prop_assert!(all.map(|it| (it.order(), it.stated)).eq(model));
            let newest = versions.divide(|_| true).0.map(Version::order);
            for time in 0..30 * FEW as u64 {
                let next = versions.divide(|it| it.to <= time).1.map(Version::order);
                prop_assert_eq!(versions.ending_after(time).map(Version::order), next.or(newest));
            }
        }
    }
}
