//! The same queries to other structures. None of them has times, so each is used as its users
//! would: it returns all that cover the address, whose lifetimes are then compared.

use std::collections::BTreeMap;

use chronosym_timeline::{AddrRange, End, Occupant, Start, VersionedMap};
use coitrees::{COITree, Interval as CoiInterval, IntervalTree as _};
use rust_lapper::{Interval as LapperInterval, Lapper};

use crate::workload::Body;

/// Answers which body covers an address at a time, by its position.
pub trait Peer {
    /// The position of the body.
    fn lookup(&self, addr: u64, time: u64) -> Option<u32>;
}

/// A body's lifetime and its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    from: u64,
    to: u64,
    body: u32,
}

impl Version {
    fn at(&self, time: u64) -> Option<u32> {
        (self.from <= time && time < self.to).then_some(self.body)
    }
}

fn versions(bodies: &[Body]) -> impl Iterator<Item = (Body, Version)> + '_ {
    bodies.iter().zip(0..).map(|(&body, index)| {
        (
            body,
            Version {
                from: body.from,
                to: body.to,
                body: index,
            },
        )
    })
}

/// Versions of one address in time order: searched by halves.
fn latest(versions: &[Version], time: u64) -> Option<u32> {
    versions[..versions.partition_point(|v| v.from <= time)]
        .last()?
        .at(time)
}

impl Peer for VersionedMap {
    #[inline]
    fn lookup(&self, addr: u64, time: u64) -> Option<u32> {
        VersionedMap::lookup(self, addr, time).map(|id| id.index() as u32)
    }
}

/// Our own map.
pub fn versioned_map(bodies: &[Body]) -> VersionedMap {
    let occupants = bodies.iter().map(|b| {
        let range = AddrRange::new(b.start, b.last).expect("a body is not empty");
        Occupant::new(range, Start::At(b.from), End::At(b.to))
    });
    VersionedMap::new(&occupants.collect::<Vec<_>>())
}

/// A `BTreeMap` by start, as in samply, with the versions of each start.
pub struct BTree(BTreeMap<u64, (u64, Vec<Version>)>);

impl BTree {
    /// Bodies at one address must be equally long.
    pub fn new(bodies: &[Body]) -> Self {
        let mut map = BTreeMap::<u64, (u64, Vec<Version>)>::new();
        for (body, version) in versions(bodies) {
            map.entry(body.start)
                .or_insert((body.last, Vec::new()))
                .1
                .push(version);
        }
        Self(map)
    }
}

impl Peer for BTree {
    fn lookup(&self, addr: u64, time: u64) -> Option<u32> {
        let (_, (last, versions)) = self.0.range(..=addr).next_back()?;
        if addr <= *last {
            latest(versions, time)
        } else {
            None
        }
    }
}

/// std's binary search over starts, then over the versions of the start.
pub struct Sorted {
    starts: Vec<u64>,
    places: Vec<(u64, u32)>,
    versions: Vec<Version>,
}

impl Sorted {
    /// Bodies at one address must be equally long.
    pub fn new(bodies: &[Body]) -> Self {
        let mut all: Vec<_> = versions(bodies).collect();
        all.sort_by_key(|(body, version)| (body.start, version.from));
        let mut sorted = Self {
            starts: Vec::new(),
            places: Vec::new(),
            versions: Vec::new(),
        };
        for (body, version) in all {
            if sorted.starts.last() != Some(&body.start) {
                sorted.starts.push(body.start);
                sorted
                    .places
                    .push((body.last, sorted.versions.len() as u32));
            }
            sorted.versions.push(version);
        }
        sorted.places.push((0, sorted.versions.len() as u32));
        sorted
    }
}

impl Peer for Sorted {
    fn lookup(&self, addr: u64, time: u64) -> Option<u32> {
        let place = self
            .starts
            .partition_point(|&start| start <= addr)
            .checked_sub(1)?;
        let (last, begin) = self.places[place];
        if addr > last {
            return None;
        }
        latest(
            &self.versions[begin as usize..self.places[place + 1].1 as usize],
            time,
        )
    }
}

/// The `coitrees` crate. Its coordinates are 32 bits wide: relative to the lowest address.
pub struct Coi {
    base: u64,
    tree: COITree<Version, u32>,
}

impl Coi {
    /// Bodies must be within 2 GiB.
    pub fn new(bodies: &[Body]) -> Self {
        let base = bodies.iter().map(|b| b.start).min().unwrap_or(0);
        let nodes: Vec<_> = versions(bodies)
            .map(|(b, v)| CoiInterval::new((b.start - base) as i32, (b.last - base) as i32, v))
            .collect();
        Self {
            base,
            tree: COITree::new(&nodes),
        }
    }
}

impl Peer for Coi {
    fn lookup(&self, addr: u64, time: u64) -> Option<u32> {
        let at = i32::try_from(addr.checked_sub(self.base)?).ok()?;
        let mut found = None;
        self.tree
            .query(at, at, |node| found = found.or(node.metadata.at(time)));
        found
    }
}

/// The `rust-lapper` crate.
pub struct Lap(Lapper<u64, Version>);

impl Lap {
    /// Builds it.
    pub fn new(bodies: &[Body]) -> Self {
        Self(Lapper::new(
            versions(bodies)
                .map(|(b, val)| LapperInterval {
                    start: b.start,
                    stop: b.last + 1,
                    val,
                })
                .collect(),
        ))
    }
}

impl Peer for Lap {
    fn lookup(&self, addr: u64, time: u64) -> Option<u32> {
        self.0
            .find(addr, addr + 1)
            .find_map(|interval| interval.val.at(time))
    }
}

/// The `intervaltree` crate.
pub struct Tree(intervaltree::IntervalTree<u64, Version>);

impl Tree {
    /// Builds it.
    pub fn new(bodies: &[Body]) -> Self {
        Self(
            versions(bodies)
                .map(|(b, v)| (b.start..b.last + 1, v))
                .collect(),
        )
    }
}

impl Peer for Tree {
    fn lookup(&self, addr: u64, time: u64) -> Option<u32> {
        self.0
            .query_point(addr)
            .find_map(|element| element.value.at(time))
    }
}

/// The `iset` crate.
pub struct Iset(iset::IntervalMap<u64, Version>);

impl Iset {
    /// Builds it.
    pub fn new(bodies: &[Body]) -> Self {
        let mut map = iset::IntervalMap::with_capacity(bodies.len());
        for (body, version) in versions(bodies) {
            map.force_insert(body.start..body.last + 1, version);
        }
        Self(map)
    }
}

impl Peer for Iset {
    fn lookup(&self, addr: u64, time: u64) -> Option<u32> {
        self.0
            .values_overlap(addr)
            .find_map(|version| version.at(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    #[test]
    fn all_give_the_same_answers() {
        for versions in [1, 2, 50] {
            let bodies = workload::bodies(2000, versions);
            let peers: [Box<dyn Peer>; 7] = [
                Box::new(versioned_map(&bodies)),
                Box::new(BTree::new(&bodies)),
                Box::new(Sorted::new(&bodies)),
                Box::new(Coi::new(&bodies)),
                Box::new(Lap::new(&bodies)),
                Box::new(Tree::new(&bodies)),
                Box::new(Iset::new(&bodies)),
            ];
            for stream in [
                workload::uniform(&bodies, 3000),
                workload::clustered(&bodies, 3000),
            ] {
                let hits = stream
                    .iter()
                    .filter(|q| peers[0].lookup(q.addr, q.time).is_some())
                    .count();
                assert!(hits > stream.len() / 2 || versions > 1, "{hits}");
                for query in stream {
                    let expected = bodies.iter().position(|b| {
                        (b.start..=b.last).contains(&query.addr)
                            && (b.from..b.to).contains(&query.time)
                    });
                    for peer in &peers {
                        assert_eq!(
                            peer.lookup(query.addr, query.time),
                            expected.map(|i| i as u32),
                            "{query:?}"
                        );
                    }
                }
            }
        }
    }
}
