//! The map while events arrive: one writer, any number of readers that never wait.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts in memory, and a start that is not the first address"
)]

mod snapshot;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::occupant::{AddrRange, Begin, End, Id, Occupant};
pub use snapshot::{LiveAnswer, Snapshot};
use tree::{Entry, Key, Tree};

/// The writer's side of a map that is asked while it grows.
///
/// The rules are those of the frozen map, whatever the order of arrival: after the last event the answers are the same.
/// Readers ask a [`snapshot`](LiveMap::snapshot).
///
/// An insertion costs O(log n) for each piece of the address space that its range covers; a piece is cut wherever a range that
/// is still remembered begins or ends.
pub struct LiveMap {
    tree: Tree,
    records: BTreeMap<Id, Record>,
    inserted: usize,
    late: usize,
    watermark: u64,
    finished: bool,
}

/// What the writer knows of an occupant.
#[derive(Clone, Copy)]
struct Record {
    occupant: Occupant,
    to: u64,
}

impl LiveMap {
    /// An empty map.
    pub fn new() -> Self {
        let mut tree = Tree::new();
        // The first piece: from the first address on.
        tree.insert(piece(0, 0));
        Self {
            tree,
            records: BTreeMap::new(),
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
        if let Some(behind) = occupant.range.last().checked_add(1) {
            self.split(behind);
        }
        self.records.insert(id, Record { occupant, to: 0 });
        // Its own life, those it may close, and those that may have begun when an older one ended.
        let mut stale = BTreeSet::from([order(id, &occupant)]);
        for key in self.keys(id, &occupant) {
            let (start, instant, id) = key;
            self.tree.insert(Entry {
                start,
                instant,
                id,
                ..Entry::default()
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

    /// Says what has become known of an occupant's end. Does nothing if `id` is forgotten.
    pub fn set_end(&mut self, id: Id, end: End) {
        self.change(id, |occupant| occupant.end = end);
    }

    /// Says when an occupant's container ended. Does nothing if `id` is forgotten.
    pub fn set_not_after(&mut self, id: Id, not_after: u64) {
        self.change(id, |occupant| occupant.not_after = not_after);
    }

    /// What is known of `id`; `None` if it is forgotten.
    pub fn get(&self, id: Id) -> Option<&Occupant> {
        self.records.get(&id).map(|record| &record.occupant)
    }

    /// Promises that nothing to come is evidence for an instant before `watermark`: no occupant with such an instant will be
    /// inserted, and no end moved that lies before it. Occupants that break the promise are taken in, and [counted](Self::late).
    pub fn advance(&mut self, watermark: u64) {
        self.watermark = self.watermark.max(watermark);
    }

    /// Says that no event is to come: all answers are final.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// The number of occupants that were inserted behind the watermark: answers said to be final may have changed by them.
    pub fn late(&self) -> usize {
        self.late
    }

    /// The map as it is now, for any thread. Cheap, but not free: what follows must copy what it may look at.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.tree.clone(), self.watermark, self.finished)
    }

    /// Drops the occupants whose life ended at or before `horizon`, and tells their ids. Costs a pass over all occupants.
    ///
    /// Answers for later times stay the same. For earlier ones, occupants with an unknown begin may seem to begin later than
    /// they did, but not after `horizon`.
    pub fn forget_before(&mut self, horizon: u64) -> Vec<Id> {
        let dead: Vec<Id> = self
            .records
            .iter()
            .filter(|(_, r)| r.to <= horizon)
            .map(|(id, _)| *id)
            .collect();
        for &id in &dead {
            let Some(Record { occupant, to, .. }) = self.records.remove(&id) else {
                continue;
            };
            for key in self.keys(id, &occupant) {
                self.tree.remove(key);
                self.raise(key.0, to);
            }
            self.join(occupant.range);
        }
        dead
    }

    /// The number of occupants that are not forgotten.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What the map holds on the heap, in bytes, about: a pass over all of it. Snapshots share most of it.
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes() + self.records.len() * size_of::<(Id, Record)>() * 3 / 2
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut Occupant)) {
        if let Some(record) = self.records.get_mut(&id) {
            change(&mut record.occupant);
            let stale = BTreeSet::from([order(id, &record.occupant)]);
            self.refresh(stale);
        }
    }

    /// Works lives out anew, oldest first: a life depends on older ones, and on the mere instants of newer ones.
    fn refresh(&mut self, mut stale: BTreeSet<(u64, Id)>) {
        while let Some((_, id)) = stale.pop_first() {
            let Some(&Record {
                occupant,
                to: old_to,
            }) = self.records.get(&id)
            else {
                continue;
            };
            let keys = self.keys(id, &occupant);
            // At one address occupants follow one another, so the neighbours in each piece say all.
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
            let from_known = matches!(occupant.begin, Begin::At(_));
            let to_known = to == own && occupant.end_stated();
            for &(start, instant, id) in &keys {
                self.tree.insert(Entry {
                    start,
                    instant,
                    id,
                    from,
                    to,
                    from_known,
                    to_known,
                });
            }
            self.records.insert(id, Record { occupant, to });
        }
    }

    /// The keys of an occupant, one in each piece of its range.
    fn keys(&self, id: Id, occupant: &Occupant) -> Vec<Key> {
        self.pieces(occupant.range)
            .map(|start| (start, occupant.instant(), Id::raw(Some(id))))
            .collect()
    }

    /// The first addresses of the pieces that begin in `range`.
    fn pieces(&self, range: AddrRange) -> impl Iterator<Item = u64> + '_ {
        let next = |start: u64| {
            self.tree
                .after((start, u64::MAX, u32::MAX))
                .map(|e| e.start)
        };
        std::iter::successors(Some(range.start()), move |&start| next(start))
            .take_while(move |&start| start <= range.last())
    }

    /// The neighbour before an entry in its piece; the piece's own entry if there is no other.
    fn older(&self, (start, instant, id): Key) -> Option<&Entry> {
        self.tree
            .at_or_before((start, instant, id.checked_sub(1)?))
            .filter(|e| e.start == start)
    }

    /// The neighbour after an entry in its piece.
    fn newer(&self, key: Key) -> Option<&Entry> {
        self.tree.after(key).filter(|e| e.start == key.0)
    }

    /// Makes a piece begin at `start`, with the history of the piece it is cut from.
    fn split(&mut self, start: u64) {
        let from = self
            .tree
            .at_or_before((start, u64::MAX, u32::MAX))
            .map_or(0, |e| e.start);
        if from == start {
            return;
        }
        let mut key = (from, 0, 0);
        let mut copied = self.tree.at_or_before(key).copied();
        while let Some(entry) = copied.filter(|e| e.start == from) {
            key = entry.key();
            self.tree.insert(Entry { start, ..entry });
            copied = self.tree.after(key).copied();
        }
    }

    /// Notes in a piece that something forgotten ended at `to`.
    fn raise(&mut self, start: u64, to: u64) {
        let before = self.tree.at_or_before((start, 0, 0)).map_or(0, |e| e.to);
        self.tree.insert(piece(start, before.max(to)));
    }

    /// Joins pieces that nothing is remembered of: those in `range`, and with their neighbours.
    fn join(&mut self, range: AddrRange) {
        let behind = range.last().checked_add(1);
        let starts: Vec<u64> = self.pieces(range).chain(behind).collect();
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
                self.raise(before.start, here.to);
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

fn stale_key(entry: &Entry) -> Option<(u64, Id)> {
    Some((entry.instant, Id::from_raw(entry.id)?))
}

/// The entry of a piece itself.
fn piece(start: u64, to: u64) -> Entry {
    Entry {
        start,
        to,
        ..Entry::default()
    }
}
