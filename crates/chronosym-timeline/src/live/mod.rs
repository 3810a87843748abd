//! A map that grows while it is read: one writer and any number of readers that never wait.

mod base;
mod keys;
mod occupants;
mod segment;
mod snapshot;
mod tree;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::occupant::{AddrRange, End, Id, Occupant, Start};
use base::Base;
use occupants::{LiveOccupant, Occupants};
use segment::{Order, Segment, Version, Versions};
pub use snapshot::{LiveAnswer, Snapshot};
use tree::{Key, Tree};

/// With at most this many changes since, no base is built.
const FEW: usize = 64;
/// The part of the base that must have changed before the next one is built. The smaller, the more
/// lookups search the tree; the larger, the more a change costs on average.
const SHARE: usize = 16;

/// The writer's side of a map that grows while it is read.
///
/// Follows the rules of the frozen map: after the last event the answers are the same, whatever the
/// order of arrival. Readers use a [`snapshot`](LiveMap::snapshot).
///
/// An insertion takes O(log n) for each segment of the address space that its range covers; ranges
/// are cut wherever a remembered range that they overlap starts or ends. Once a sixteenth of the
/// occupants has changed, the next [`snapshot`](LiveMap::snapshot) builds a frozen map of all in
/// O(n log n), so that lookups in snapshots are about as fast.
pub struct LiveMap {
    /// The occupants of all addresses that no segment has.
    base: Option<Arc<Base>>,
    /// Segments by first address; none overlap. Each has all occupants of its addresses.
    tree: Tree<u64, Segment>,
    /// The number of changes since the base was built.
    changes: usize,
    occupants: Occupants,
    /// The latest time before which occupants were forgotten.
    horizon: u64,
    late: usize,
    watermark: u64,
    finished: bool,
}

impl LiveMap {
    /// Returns an empty map.
    pub fn new() -> Self {
        Self {
            base: None,
            tree: Tree::new(),
            changes: 0,
            occupants: Occupants::default(),
            horizon: 0,
            late: 0,
            watermark: 0,
            finished: false,
        }
    }

    /// Adds an occupant.
    ///
    /// # Panics
    /// With more than 2^32 − 2 occupants.
    pub fn insert(&mut self, mut occupant: Occupant) -> Id {
        self.late += usize::from(occupant.instant() < self.watermark);
        self.changes += 1;
        // Occupants that it would follow may be forgotten.
        not_from_before(&mut occupant, self.horizon);
        let live = LiveOccupant::new(occupant, 0, None);
        let (range, id) = (occupant.range, self.occupants.push(live));
        let version = live.version(id);
        if self.is_vacant(range) {
            // Most addresses are new.
            self.add_segment(range, Versions::One(version));
            return id;
        }
        self.split(range.start());
        if let Some(after) = range.last().checked_add(1) {
            self.split(after);
        }
        self.complete(range);
        // Its own lifetime, those it may end, and those that may start where an older one ended.
        let order = version.order();
        let mut stale = BTreeSet::from([order]);
        for start in self.starts(range) {
            if let Some(segment) = self.tree.get_mut(&start) {
                let versions = &mut segment.versions;
                let neighbours = [versions.older(order), versions.newer(order)];
                stale.extend(neighbours.into_iter().flatten().map(Version::order));
                versions.insert(version);
            }
        }
        self.refresh(stale);
        id
    }

    /// Sets the evidence of an occupant's end. Does nothing if `id` is forgotten.
    pub fn set_end(&mut self, id: Id, end: End) {
        self.change(id, |occupant| occupant.end = end);
    }

    /// Sets the end of an occupant's container. Does nothing if `id` is forgotten.
    pub fn set_not_after(&mut self, id: Id, not_after: u64) {
        self.change(id, |occupant| occupant.not_after = not_after);
    }

    /// Returns the occupant `id`; `None` if it is forgotten.
    pub fn get(&self, id: Id) -> Option<&Occupant> {
        self.occupants.get(id).map(|live| &live.occupant)
    }

    /// Promises that no further evidence is for an instant before `watermark`: no occupant with
    /// such an instant will be inserted, and no earlier end moved. Occupants that break the promise
    /// are inserted and [counted](Self::late).
    pub fn advance(&mut self, watermark: u64) {
        self.watermark = self.watermark.max(watermark);
    }

    /// Makes all answers final: no more events arrive.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Returns the number of occupants that were inserted before the watermark; they may have
    /// changed final answers.
    pub fn late(&self) -> usize {
        self.late
    }

    /// Returns the current state of the map, for any thread. Later changes copy the nodes they
    /// share with it.
    ///
    /// Takes constant time unless a sixteenth of the occupants has changed since the last frozen
    /// map was built; then O(n log n) for the next one.
    pub fn snapshot(&mut self) -> Snapshot {
        self.renew_base();
        let (base, changes) = (self.base.clone(), self.tree.clone());
        Snapshot::new(base, changes, self.watermark, self.finished)
    }

    /// Forgets the occupants that ended at or before `horizon` and returns their ids. Visits all
    /// occupants.
    ///
    /// Answers for later times stay the same. For earlier times, occupants with an unknown start
    /// may start later than they did, but not after `horizon`.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_timeline::{AddrRange, End, LiveMap, Occupant, Start};
    ///
    /// let mut live = LiveMap::new();
    /// let range = AddrRange::sized(0x1000, 0x100).unwrap();
    /// let old = live.insert(Occupant::new(range, Start::At(10), End::At(20)));
    /// let new = live.insert(Occupant::new(range, Start::At(30), End::Open));
    /// live.advance(100);
    /// assert_eq!(live.forget_before(50), [old]);
    /// assert_eq!(live.snapshot().lookup(0x1080, 60).id, Some(new));
    /// ```
    pub fn forget_before(&mut self, horizon: u64) -> Vec<Id> {
        self.horizon = self.horizon.max(horizon);
        let mut dead = Vec::new();
        for (id, live) in self.occupants.iter_mut() {
            // Those that it followed may be forgotten.
            not_from_before(&mut live.occupant, live.from.min(horizon));
            if live.to <= horizon {
                dead.push((id, live.occupant));
            }
        }
        for &(id, _) in &dead {
            self.occupants.remove(id);
        }
        self.changes += dead.len();
        if !self.renew_base() {
            for (id, occupant) in &dead {
                self.remove_versions(*id, occupant);
            }
        }
        dead.into_iter().map(|(id, _)| id).collect()
    }

    /// Returns the number of occupants that are not forgotten.
    pub fn len(&self) -> usize {
        self.occupants.len()
    }

    /// Returns whether the map has no occupants.
    pub fn is_empty(&self) -> bool {
        self.occupants.len() == 0
    }

    /// Returns the approximate size on the heap in bytes, most of it shared with snapshots. Visits
    /// all nodes.
    pub fn memory_bytes(&self) -> usize {
        let of_segment = |segment: &Segment| segment.versions.memory_bytes();
        let base = self.base.as_ref().map_or(0, |base| base.memory_bytes());
        base + self.tree.memory_bytes(&of_segment) + self.occupants.memory_bytes()
    }

    /// Builds the base from all occupants if enough have changed. Returns whether it did.
    fn renew_base(&mut self) -> bool {
        let unchanged = self.base.as_ref().map_or(0, |base| base.len());
        let is_due = self.changes > FEW + unchanged / SHARE;
        if is_due {
            let base = (self.occupants.len() > 0).then(|| Arc::new(Base::new(&self.occupants)));
            (self.base, self.tree, self.changes) = (base, Tree::new(), 0);
        }
        is_due
    }

    /// Removes a forgotten occupant from the segments.
    fn remove_versions(&mut self, id: Id, occupant: &Occupant) {
        self.complete(occupant.range);
        for start in self.starts(occupant.range) {
            if let Some(segment) = self.tree.get_mut(&start) {
                segment.versions.remove((occupant.instant(), id));
                if segment.versions.is_empty() && self.base.is_none() {
                    self.tree.remove(&start);
                }
            }
        }
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut Occupant)) {
        if let Some(live) = self.occupants.get_mut(id) {
            change(&mut live.occupant);
            self.changes += 1;
            let stale = BTreeSet::from([(live.occupant.instant(), id)]);
            self.refresh(stale);
        }
    }

    /// Recomputes lifetimes, oldest first: one depends on older lifetimes and on the instants of
    /// newer occupants.
    fn refresh(&mut self, mut stale: BTreeSet<Order>) {
        while let Some(order) = stale.pop_first() {
            let (_, id) = order;
            let Some(&LiveOccupant { occupant, to, .. }) = self.occupants.get(id) else {
                continue;
            };
            self.complete(occupant.range);
            let starts = self.starts(occupant.range);
            // Occupants of one address follow one another, so the neighbours in each segment
            // suffice.
            let mut floor = 0;
            let mut newer = Vec::new();
            for start in &starts {
                let Some((_, segment)) = self.tree.last(|it| it <= start) else {
                    continue;
                };
                let older = segment.versions.older(order);
                floor = floor.max(older.map_or(0, |older| older.to));
                newer.extend(segment.versions.newer(order).map(Version::order));
            }
            let closer = newer.iter().map(|&(instant, _)| instant).min();
            let live = LiveOccupant::new(occupant, floor, closer);
            let version = live.version(id);
            if live.to != to {
                stale.extend(newer);
            }
            for start in &starts {
                if let Some(segment) = self.tree.get_mut(start) {
                    segment.versions.insert(version);
                }
            }
            if let Some(changed) = self.occupants.get_mut(id) {
                *changed = live;
            }
        }
    }

    /// Returns the first addresses of the segments that start in `range`.
    fn starts(&self, range: AddrRange) -> Vec<u64> {
        let mut starts = Vec::new();
        let mut next = self.tree.divide(|start| *start < range.start()).1;
        while let Some((&start, _)) = next.filter(|(start, _)| **start <= range.last()) {
            starts.push(start);
            next = self.tree.after(&start);
        }
        starts
    }

    /// Makes a segment that contains `start` and the address before it into two.
    fn split(&mut self, start: u64) {
        let Some((&first, _)) = self.tree.last(|it| *it < start) else {
            return;
        };
        if let Some(segment) = self.tree.get_mut(&first)
            && segment.last >= start
        {
            let upper = segment.clone();
            segment.last = start - 1;
            self.tree.insert(start, upper);
        }
    }

    /// Returns whether no address of a range ever had an occupant that is not forgotten.
    fn is_vacant(&self, range: AddrRange) -> bool {
        let before = self.tree.last(|start| *start <= range.last());
        before.is_none_or(|(_, segment)| segment.last < range.start())
            && self.in_base(range).next().is_none()
    }

    /// Returns the occupants of the base that overlap a range.
    fn in_base(&self, range: AddrRange) -> impl Iterator<Item = (AddrRange, Version)> + '_ {
        let near = self.base.iter().flat_map(move |base| base.ids_near(range));
        let near = near.filter_map(|id| Some((id, self.occupants.get(id)?)));
        let here = near.filter(move |(_, live)| live.occupant.range.overlaps(range));
        here.map(|(id, live)| (live.occupant.range, live.version(id)))
    }

    /// Adds segments for the addresses in `range` that have none, with their occupants in the base.
    fn complete(&mut self, range: AddrRange) {
        let mut next = Some(range.start());
        for start in self.starts(range) {
            if let Some(before) = start.checked_sub(1) {
                self.copy_base(next, before);
            }
            let at = self.tree.last(|it| *it <= start);
            next = at.and_then(|(_, segment)| segment.last.checked_add(1));
        }
        self.copy_base(next, range.last());
    }

    /// Adds segments for addresses that have none.
    fn copy_base(&mut self, start: Option<u64>, last: u64) {
        let Some(range) = start.and_then(|start| AddrRange::new(start, last)) else {
            return;
        };
        let mut occupants: Vec<(AddrRange, Version)> = self.in_base(range).collect();
        occupants.sort_unstable_by_key(|(_, version)| version.order());
        let bounds = occupants.iter().flat_map(|(range, _)| {
            let after = range.last().checked_add(1);
            [Some(range.start()), after]
        });
        let mut starts: Vec<u64> = bounds
            .flatten()
            .filter(|start| range.contains(*start))
            .chain([range.start()])
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let mut versions = vec![Vec::new(); starts.len()];
        for (range, version) in occupants {
            let first = starts.partition_point(|start| *start < range.start());
            let end = starts.partition_point(|start| *start <= range.last());
            for here in &mut versions[first..end] {
                here.push(version);
            }
        }
        let nexts = starts[1..].iter().map(|next| next - 1);
        let lasts = nexts.chain([range.last()]);
        for ((&start, last), versions) in starts.iter().zip(lasts).zip(versions) {
            if let Some(range) = AddrRange::new(start, last) {
                self.add_segment(range, Versions::of(&versions));
            }
        }
    }

    fn add_segment(&mut self, range: AddrRange, versions: Versions) {
        if let Some(base) = &self.base {
            base.set_changed(range);
        }
        let last = range.last();
        self.tree.insert(range.start(), Segment { last, versions });
    }
}

impl Default for LiveMap {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LiveMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveMap")
            .field("len", &self.len())
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}

/// States that an unknown start is not before a time.
fn not_from_before(occupant: &mut Occupant, time: u64) {
    if matches!(occupant.start, Start::Before(_)) {
        occupant.not_before = occupant.not_before.max(time);
    }
}
