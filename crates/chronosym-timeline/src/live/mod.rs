//! A map that grows while it is read: one writer and any number of readers that never wait.

mod snapshot;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::occupant::{AddrRange, End, Id, Occupant, Start};
pub use snapshot::{LiveAnswer, Snapshot};
use tree::{Key, SegmentEntry, Tree};

/// The writer's side of a map that grows while it is read.
///
/// Follows the rules of the frozen map: after the last event the answers are the same, whatever the
/// order of arrival. Readers use a [`snapshot`](LiveMap::snapshot).
///
/// An insertion takes O(log n) for each segment of the address space that its range covers; the
/// address space is cut wherever a remembered range starts or ends.
pub struct LiveMap {
    tree: Tree,
    occupants: BTreeMap<Id, LiveOccupant>,
    inserted: usize,
    late: usize,
    watermark: u64,
    finished: bool,
}

/// An occupant that is not forgotten.
#[derive(Clone, Copy)]
struct LiveOccupant {
    occupant: Occupant,
    /// End of its lifetime.
    to: u64,
}

impl LiveMap {
    /// Returns an empty map.
    pub fn new() -> Self {
        let mut tree = Tree::new();
        // The first segment is the whole address space.
        tree.insert(segment(0, 0));
        Self {
            tree,
            occupants: BTreeMap::new(),
            inserted: 0,
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
        let id = Id::from_index(self.inserted).expect("fewer than 2^32 - 1 occupants");
        self.inserted += 1;
        self.late += usize::from(occupant.instant() < self.watermark);
        self.split(occupant.range.start());
        if let Some(after) = occupant.range.last().checked_add(1) {
            self.split(after);
        }
        self.occupants.insert(id, LiveOccupant { occupant, to: 0 });
        // Its own lifetime, those it may end, and those that may start where an older one ended.
        let mut stale = BTreeSet::from([order(id, &occupant)]);
        for key in self.keys(id, &occupant) {
            let (start, instant, id) = key;
            self.tree.insert(SegmentEntry {
                start,
                instant,
                id,
                ..SegmentEntry::default()
            });
            stale.extend(
                self.older(key)
                    .and_then(stale_key)
                    .into_iter()
                    .chain(self.newer(key).and_then(stale_key)),
            );
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
        self.occupants.get(&id).map(|live| &live.occupant)
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
        let dead: Vec<Id> = self
            .occupants
            .iter()
            .filter(|(_, r)| r.to <= horizon)
            .map(|(id, _)| *id)
            .collect();
        for &id in &dead {
            let Some(LiveOccupant { occupant, to, .. }) = self.occupants.remove(&id) else {
                continue;
            };
            for key in self.keys(id, &occupant) {
                self.tree.remove(key);
                self.raise_end(key.0, to);
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
        self.occupants.is_empty()
    }

    /// Returns the approximate size on the heap in bytes, most of it shared with snapshots. Visits
    /// all nodes.
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes() + self.occupants.len() * size_of::<(Id, LiveOccupant)>() * 3 / 2
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut Occupant)) {
        if let Some(live) = self.occupants.get_mut(&id) {
            change(&mut live.occupant);
            let stale = BTreeSet::from([order(id, &live.occupant)]);
            self.refresh(stale);
        }
    }

    /// Recomputes lifetimes, oldest first: one depends on older lifetimes and on the instants of
    /// newer occupants.
    fn refresh(&mut self, mut stale: BTreeSet<(u64, Id)>) {
        while let Some((_, id)) = stale.pop_first() {
            let Some(&LiveOccupant {
                occupant,
                to: old_to,
            }) = self.occupants.get(&id)
            else {
                continue;
            };
            let keys = self.keys(id, &occupant);
            // Occupants of one address follow one another, so the neighbours in each segment
            // suffice.
            let floor = keys
                .iter()
                .filter_map(|&k| self.older(k))
                .map(|e| e.to)
                .max()
                .unwrap_or(0);
            let closer = keys
                .iter()
                .filter_map(|&k| self.newer(k))
                .map(|e| e.instant)
                .min();
            let from = occupant.from(floor);
            let own = occupant.own_end().max(from);
            let to = own.min(closer.unwrap_or(u64::MAX)).max(from);
            if to != old_to {
                stale.extend(
                    keys.iter()
                        .filter_map(|&k| self.newer(k))
                        .filter_map(stale_key),
                );
            }
            let from_known = matches!(occupant.start, Start::At(_));
            let to_known = to == own && occupant.end_stated();
            for &(start, instant, id) in &keys {
                self.tree.insert(SegmentEntry {
                    start,
                    instant,
                    id,
                    from,
                    to,
                    from_known,
                    to_known,
                });
            }
            self.occupants.insert(id, LiveOccupant { occupant, to });
        }
    }

    /// Returns the keys of an occupant, one for each segment of its range.
    fn keys(&self, id: Id, occupant: &Occupant) -> Vec<Key> {
        self.segments(occupant.range)
            .map(|start| (start, occupant.instant(), Id::raw(Some(id))))
            .collect()
    }

    /// Returns the first addresses of the segments that start in `range`.
    fn segments(&self, range: AddrRange) -> impl Iterator<Item = u64> + '_ {
        let next = |start: u64| {
            self.tree
                .after((start, u64::MAX, u32::MAX))
                .map(|e| e.start)
        };
        std::iter::successors(Some(range.start()), move |&start| next(start))
            .take_while(move |&start| start <= range.last())
    }

    /// Returns the entry before another in its segment; the segment's own entry if there is no
    /// other.
    fn older(&self, (start, instant, id): Key) -> Option<&SegmentEntry> {
        self.tree
            .at_or_before((start, instant, id.checked_sub(1)?))
            .filter(|e| e.start == start)
    }

    /// Returns the entry after another in its segment.
    fn newer(&self, key: Key) -> Option<&SegmentEntry> {
        self.tree.after(key).filter(|e| e.start == key.0)
    }

    /// Makes a segment start at `start`, with the entries of the segment it is cut from.
    fn split(&mut self, start: u64) {
        let from = self
            .tree
            .at_or_before((start, u64::MAX, u32::MAX))
            .map_or(0, |e| e.start);
        if from == start {
            return;
        }
        let mut key = (from, 0, 0);
        let mut next = self.tree.at_or_before(key).copied();
        while let Some(entry) = next.filter(|e| e.start == from) {
            key = entry.key();
            self.tree.insert(SegmentEntry { start, ..entry });
            next = self.tree.after(key).copied();
        }
    }

    /// Notes in a segment that a forgotten occupant ended at `to`.
    fn raise_end(&mut self, start: u64, to: u64) {
        let before = self.tree.at_or_before((start, 0, 0)).map_or(0, |e| e.to);
        self.tree.insert(segment(start, before.max(to)));
    }

    /// Joins empty segments in `range`, and empty neighbours with them.
    fn join(&mut self, range: AddrRange) {
        let after = range.last().checked_add(1);
        let starts: Vec<u64> = self.segments(range).chain(after).collect();
        for start in starts.into_iter().filter(|&start| start > 0) {
            let Some(&before) = self.tree.at_or_before((start - 1, u64::MAX, u32::MAX)) else {
                continue;
            };
            let here = self
                .tree
                .at_or_before((start, u64::MAX, u32::MAX))
                .copied()
                .filter(|e| e.start == start);
            if let Some(here) = here.filter(|here| before.id == 0 && here.id == 0) {
                self.tree.remove(here.key());
                self.raise_end(before.start, here.to);
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

fn order(id: Id, occupant: &Occupant) -> (u64, Id) {
    (occupant.instant(), id)
}

fn stale_key(entry: &SegmentEntry) -> Option<(u64, Id)> {
    Some((entry.instant, Id::from_raw(entry.id)?))
}

/// Returns the entry of a segment itself.
fn segment(start: u64, to: u64) -> SegmentEntry {
    SegmentEntry {
        start,
        to,
        ..SegmentEntry::default()
    }
}
