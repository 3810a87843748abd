//! A map that grows while it is read: one writer and any number of readers that never wait.

mod keys;
mod occupants;
mod segment;
mod snapshot;
mod tree;

use std::collections::BTreeSet;
use std::fmt;

use crate::occupant::{AddrRange, End, Id, Occupant, Start};
use occupants::{LiveOccupant, Occupants};
use segment::{Order, Segment, Version, Versions};
pub use snapshot::{LiveAnswer, Snapshot};
use tree::{Key, Tree};

/// The writer's side of a map that grows while it is read.
///
/// Follows the rules of the frozen map: after the last event the answers are the same, whatever the
/// order of arrival. Readers use a [`snapshot`](LiveMap::snapshot).
///
/// An insertion takes O(log n) for each segment of the address space that its range covers; ranges
/// are cut wherever a remembered range that they overlap starts or ends.
pub struct LiveMap {
    /// Segments by first address; none overlap.
    tree: Tree<u64, Segment>,
    occupants: Occupants,
    late: usize,
    watermark: u64,
    finished: bool,
}

impl LiveMap {
    /// Returns an empty map.
    pub fn new() -> Self {
        Self {
            tree: Tree::new(),
            occupants: Occupants::default(),
            late: 0,
            watermark: 0,
            finished: false,
        }
    }

    /// Adds an occupant.
    ///
    /// # Panics
    /// With more than 2^32 − 2 occupants.
    pub fn insert(&mut self, occupant: Occupant) -> Id {
        self.late += usize::from(occupant.instant() < self.watermark);
        let id = self.occupants.push(LiveOccupant { occupant, to: 0 });
        let version = lifetime(id, &occupant, 0, None);
        let (start, last) = (occupant.range.start(), occupant.range.last());
        let overlapping = self.tree.last(|start| *start <= last);
        if overlapping.is_none_or(|(_, segment)| segment.last < start) {
            // Most addresses are new.
            self.tree
                .insert(start, segment(last, Versions::One(version)));
            self.set_to(id, version.to);
            return id;
        }
        self.split(start);
        if let Some(after) = last.checked_add(1) {
            self.split(after);
        }
        self.fill(occupant.range);
        // Its own lifetime, those it may end, and those that may start where an older one ended.
        let order = version.order();
        let mut stale = BTreeSet::from([order]);
        for start in self.starts(occupant.range) {
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
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.tree.clone(), self.watermark, self.finished)
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
        let ended = self.occupants.iter().filter(|(_, live)| live.to <= horizon);
        let dead: Vec<Id> = ended.map(|(id, _)| id).collect();
        for &id in &dead {
            let Some(LiveOccupant { occupant, to }) = self.occupants.remove(id) else {
                continue;
            };
            for start in self.starts(occupant.range) {
                if let Some(segment) = self.tree.get_mut(&start) {
                    segment.versions.remove((occupant.instant(), id));
                    segment.forgotten = segment.forgotten.max(to);
                }
            }
            self.join(occupant.range);
        }
        dead
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
        self.tree.memory_bytes(&of_segment) + self.occupants.memory_bytes()
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut Occupant)) {
        if let Some(live) = self.occupants.get_mut(id) {
            change(&mut live.occupant);
            let stale = BTreeSet::from([(live.occupant.instant(), id)]);
            self.refresh(stale);
        }
    }

    /// Recomputes lifetimes, oldest first: one depends on older lifetimes and on the instants of
    /// newer occupants.
    fn refresh(&mut self, mut stale: BTreeSet<Order>) {
        while let Some(order) = stale.pop_first() {
            let (_, id) = order;
            let Some(&LiveOccupant { occupant, to }) = self.occupants.get(id) else {
                continue;
            };
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
                floor = floor.max(older.map_or(segment.forgotten, |older| older.to));
                newer.extend(segment.versions.newer(order).map(Version::order));
            }
            let closer = newer.iter().map(|&(instant, _)| instant).min();
            let version = lifetime(id, &occupant, floor, closer);
            if version.to != to {
                stale.extend(newer);
            }
            for start in &starts {
                if let Some(segment) = self.tree.get_mut(start) {
                    segment.versions.insert(version);
                }
            }
            self.set_to(id, version.to);
        }
    }

    fn set_to(&mut self, id: Id, to: u64) {
        if let Some(live) = self.occupants.get_mut(id) {
            live.to = to;
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

    /// Adds segments for the addresses in `range` that have none.
    fn fill(&mut self, range: AddrRange) {
        let mut next = Some(range.start());
        for start in self.starts(range) {
            let before = next.filter(|&next| next < start);
            if let Some(before) = before {
                self.tree.insert(before, segment(start - 1, Versions::None));
            }
            let at = self.tree.last(|it| *it <= start);
            next = at.and_then(|(_, segment)| segment.last.checked_add(1));
        }
        if let Some(next) = next.filter(|&next| next <= range.last()) {
            self.tree
                .insert(next, segment(range.last(), Versions::None));
        }
    }

    /// Joins successive segments without occupants in `range` and beside it, and the addresses
    /// between them.
    fn join(&mut self, range: AddrRange) {
        let next = self.tree.after(&range.last()).map(|(&start, _)| start);
        for start in self.starts(range).into_iter().chain(next) {
            let (before, here) = self.tree.divide(|it| *it < start);
            let Some(((&first, before), (_, here))) = before.zip(here) else {
                continue;
            };
            if before.versions.is_empty() && here.versions.is_empty() {
                let joined = Segment {
                    last: here.last,
                    forgotten: before.forgotten.max(here.forgotten),
                    versions: Versions::None,
                };
                self.tree.remove(&start);
                self.tree.insert(first, joined);
            }
        }
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

/// Returns an occupant with its lifetime, if the occupants of its addresses before it end at
/// `floor`, and the next one starts at `closer`.
fn lifetime(id: Id, occupant: &Occupant, floor: u64, closer: Option<u64>) -> Version {
    let from = occupant.from(floor);
    let own = occupant.own_end().max(from);
    let to = own.min(closer.unwrap_or(u64::MAX)).max(from);
    Version {
        instant: occupant.instant(),
        from,
        to,
        id,
        from_known: matches!(occupant.start, Start::At(_)),
        to_known: to == own && occupant.end_stated(),
    }
}

/// Returns a segment in which no occupant was forgotten.
fn segment(last: u64, versions: Versions) -> Segment {
    Segment {
        last,
        forgotten: 0,
        versions,
    }
}
