//! The judge: a list of rectangles, and the rules applied to it one by one in quadratic time.
#![allow(dead_code)]

use chronosym_timeline::{Begin, End, Id, Life, Neighbours, Occupant};

pub struct Rectangle {
    pub occupant: Occupant,
    pub life: Life,
}

pub struct Model {
    /// By index of insertion.
    pub rectangles: Vec<Rectangle>,
    /// Indexes by (instant of evidence, insertion).
    order: Vec<usize>,
}

pub fn instant(o: &Occupant) -> u64 {
    match o.begin {
        Begin::At(t) | Begin::Before(t) => t,
        Begin::Unbounded => o.not_before,
    }
}

impl Model {
    pub fn new(occupants: &[Occupant]) -> Self {
        let mut order: Vec<usize> = (0..occupants.len()).collect();
        order.sort_by_key(|&i| (instant(&occupants[i]), i));
        let mut rectangles: Vec<Option<Rectangle>> = occupants.iter().map(|_| None).collect();
        for (rank, &i) in order.iter().enumerate() {
            let o = occupants[i];
            // The first to turn up at its place after it ends it, if nothing ended it before.
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
            // The latest end of those who were there before.
            let floor = order[..rank]
                .iter()
                .filter(|&&j| occupants[j].range.overlaps(o.range))
                .map(|&j| rectangles[j].as_ref().unwrap().life.to)
                .max()
                .unwrap_or(0);
            let from = match o.begin {
                Begin::At(t) => t,
                Begin::Before(t) => t.min(o.not_before.max(floor)),
                Begin::Unbounded => o.not_before,
            };
            let mut to = stop.max(from);
            if let Some(j) = closer
                && instant(&occupants[j]) < to
            {
                to = instant(&occupants[j]).max(from);
                stated = false;
            }
            let life = Life {
                from,
                to,
                from_known: matches!(o.begin, Begin::At(_)),
                to_known: stated,
            };
            rectangles[i] = Some(Rectangle { occupant: o, life });
        }
        Self {
            rectangles: rectangles.into_iter().map(Option::unwrap).collect(),
            order,
        }
    }

    pub fn lookup(&self, addr: u64, time: u64) -> Option<Id> {
        let mut found = self.rectangles.iter().enumerate().filter(|(_, r)| {
            r.occupant.range.contains(addr) && r.life.from <= time && time < r.life.to
        });
        let answer = found.next().map(|(i, _)| Id::from_index(i).unwrap());
        assert!(found.next().is_none(), "two lives at {addr:#x} at {time}");
        answer
    }

    /// Those who were at `addr`, in the order of their evidence.
    pub fn occupants(&self, addr: u64) -> Vec<(Id, Life)> {
        self.order
            .iter()
            .filter(|&&i| self.rectangles[i].occupant.range.contains(addr))
            .map(|&i| (Id::from_index(i).unwrap(), self.rectangles[i].life))
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

    /// Times at and next to all begins and ends.
    pub fn times(&self) -> Vec<u64> {
        around(
            self.rectangles
                .iter()
                .flat_map(|r| [r.life.from, r.life.to, instant(&r.occupant)]),
        )
    }
}

/// From and to of the last that ended by `time`, and of the first that begins after it.
pub fn nearest(occupants: &[(Id, Life)], time: u64) -> [Option<(u64, u64)>; 2] {
    let lives = || occupants.iter().map(|(_, life)| (life.from, life.to));
    [
        lives().filter(|life| life.1 <= time).max(),
        lives().filter(|life| life.0 > time).min(),
    ]
}

/// The same of an answer.
pub fn spans(near: &Neighbours) -> [Option<(u64, u64)>; 2] {
    [near.before, near.after].map(|near| near.map(|(_, life)| (life.from, life.to)))
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
