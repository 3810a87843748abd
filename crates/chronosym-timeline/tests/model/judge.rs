//! The model: a list of rectangles, and the rules applied to them in quadratic time.
#![allow(dead_code)]

use chronosym_timeline::{End, Id, Lifetime, Neighbours, Occupant, Start};

pub struct Rectangle {
    pub occupant: Occupant,
    pub lifetime: Lifetime,
}

pub struct Model {
    /// By index of insertion.
    pub rectangles: Vec<Rectangle>,
    /// Indexes by (instant of evidence, insertion).
    order: Vec<usize>,
}

pub fn instant(o: &Occupant) -> u64 {
    match o.start {
        Start::At(t) | Start::Before(t) => t,
        Start::Unbounded => o.not_before,
    }
}

impl Model {
    pub fn new(occupants: &[Occupant]) -> Self {
        let mut order: Vec<usize> = (0..occupants.len()).collect();
        order.sort_by_key(|&i| (instant(&occupants[i]), i));
        let mut rectangles: Vec<Option<Rectangle>> = occupants.iter().map(|_| None).collect();
        for (rank, &i) in order.iter().enumerate() {
            let o = occupants[i];
            // The first later occupant that overlaps it ends it, unless it ended before.
            let closer = order[rank + 1..]
                .iter()
                .copied()
                .find(|&j| occupants[j].range.overlaps(o.range));
            let (mut stop, mut stated) = (o.not_after, false);
            if let End::At(t) = o.end
                && t <= stop
            {
                (stop, stated) = (t, true);
            }
            // The latest end of older occupants that overlap it.
            let floor = order[..rank]
                .iter()
                .filter(|&&j| occupants[j].range.overlaps(o.range))
                .map(|&j| rectangles[j].as_ref().unwrap().lifetime.to)
                .max()
                .unwrap_or(0);
            let from = match o.start {
                Start::At(t) => t,
                Start::Before(t) => t.min(o.not_before.max(floor)),
                Start::Unbounded => o.not_before,
            };
            let mut to = stop.max(from);
            if let Some(j) = closer
                && instant(&occupants[j]) < to
            {
                to = instant(&occupants[j]).max(from);
                stated = false;
            }
            let lifetime = Lifetime {
                from,
                to,
                from_known: matches!(o.start, Start::At(_)),
                to_known: stated,
            };
            rectangles[i] = Some(Rectangle {
                occupant: o,
                lifetime,
            });
        }
        Self {
            rectangles: rectangles.into_iter().map(Option::unwrap).collect(),
            order,
        }
    }

    pub fn lookup(&self, addr: u64, time: u64) -> Option<Id> {
        let mut alive = self.rectangles.iter().enumerate().filter(|(_, r)| {
            r.occupant.range.contains(addr) && r.lifetime.from <= time && time < r.lifetime.to
        });
        let id = alive.next().map(|(i, _)| Id::from_index(i).unwrap());
        assert!(
            alive.next().is_none(),
            "two lifetimes at {addr:#x} at {time}"
        );
        id
    }

    /// Returns the occupants of `addr` in the order of evidence.
    pub fn occupants(&self, addr: u64) -> Vec<(Id, Lifetime)> {
        self.order
            .iter()
            .filter(|&&i| self.rectangles[i].occupant.range.contains(addr))
            .map(|&i| (Id::from_index(i).unwrap(), self.rectangles[i].lifetime))
            .collect()
    }

    /// Addresses at and next to all edges.
    pub fn addresses(&self) -> Vec<u64> {
        let edges = self
            .rectangles
            .iter()
            .flat_map(|r| [r.occupant.range.start(), r.occupant.range.last()]);
        around(edges)
    }

    /// Times at and next to all starts and ends.
    pub fn times(&self) -> Vec<u64> {
        around(
            self.rectangles
                .iter()
                .flat_map(|r| [r.lifetime.from, r.lifetime.to, instant(&r.occupant)]),
        )
    }
}

/// Start and end of the last lifetime that ended by `time`, and of the first that starts after it.
pub fn nearest(occupants: &[(Id, Lifetime)], time: u64) -> [Option<(u64, u64)>; 2] {
    let lifetimes = || {
        occupants
            .iter()
            .map(|(_, lifetime)| (lifetime.from, lifetime.to))
    };
    [
        lifetimes().filter(|lifetime| lifetime.1 <= time).max(),
        lifetimes().filter(|lifetime| lifetime.0 > time).min(),
    ]
}

/// The same of an answer.
pub fn bounds(near: &Neighbours) -> [Option<(u64, u64)>; 2] {
    [near.before, near.after].map(|near| near.map(|(_, lifetime)| (lifetime.from, lifetime.to)))
}

fn around(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut all: Vec<u64> = values
        .flat_map(|v| [v.saturating_sub(1), v, v.saturating_add(1)])
        .chain([0, u64::MAX])
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}
