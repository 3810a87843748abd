//! The latest body at each address.

use smallvec::SmallVec;

use crate::ids::BodyIndex;

/// The range of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub start: u64,
    /// Its last byte.
    pub last: u64,
    pub body: BodyIndex,
}

/// Ranges of which no two overlap.
#[derive(Debug, Default)]
pub(super) struct Occupied {
    /// The first address of each part.
    starts: Vec<u64>,
    /// The ranges by address, in parts that are not empty and have at most [`PART`] ranges: a
    /// change moves few of them.
    parts: Vec<Vec<Range>>,
    /// The position that was approached last: most events are about addresses near those of the
    /// event before.
    recent: (usize, usize),
}

const PART: usize = if cfg!(test) { 8 } else { 256 };

impl Occupied {
    /// Returns the positions of the last range that starts at or before an address: of its part,
    /// and in it.
    fn position(&self, address: u64) -> Option<(usize, usize)> {
        if let Some(position) = self.recent_position(address) {
            return Some(position);
        }
        let part = self.starts.partition_point(|&start| start <= address);
        let part = part.checked_sub(1)?;
        let ranges = self.parts[part].partition_point(|range| range.start <= address);
        Some((part, ranges.checked_sub(1)?))
    }

    /// Returns the position of an address if it is the recent one or next to it.
    fn recent_position(&self, address: u64) -> Option<(usize, usize)> {
        let (part, at) = self.recent;
        let ranges = self.parts.get(part)?;
        if address < ranges.get(at)?.start {
            let before = at.checked_sub(1)?;
            return (ranges[before].start <= address).then_some((part, before));
        }
        let after = |at: usize| match ranges.get(at + 1) {
            Some(range) => Some(range.start),
            None => self.starts.get(part + 1).copied(),
        };
        let is_at = |at| after(at).is_none_or(|next| address < next);
        if is_at(at) {
            return Some((part, at));
        }
        let next = at + 1;
        (next < ranges.len() && is_at(next)).then_some((part, next))
    }

    /// Returns the last range that starts at or before an address.
    fn before(&self, address: u64) -> Option<Range> {
        let (part, at) = self.position(address)?;
        Some(self.parts[part][at])
    }

    /// Returns the body whose range starts at an address.
    pub fn starting_at(&self, start: u64) -> Option<BodyIndex> {
        let range = self.before(start)?;
        (range.start == start).then_some(range.body)
    }

    /// As [`starting_at`](Self::starting_at), and makes addresses around this one be found sooner.
    pub fn approach(&mut self, start: u64) -> Option<BodyIndex> {
        let found = self.position(start);
        self.recent = found.unwrap_or_default();
        let range = found.map(|(part, at)| self.parts[part][at])?;
        (range.start == start).then_some(range.body)
    }

    /// Returns the body at an address.
    pub fn at(&self, address: u64) -> Option<BodyIndex> {
        let range = self.before(address)?;
        (address <= range.last).then_some(range.body)
    }

    /// Returns the ranges that overlap `start..=last`, the last one first.
    pub fn overlapping(&self, start: u64, last: u64) -> SmallVec<[Range; 4]> {
        let mut all = SmallVec::new();
        let mut next = self.before(last);
        while let Some(range) = next.filter(|range| range.last >= start) {
            all.push(range);
            next = range.start.checked_sub(1).and_then(|end| self.before(end));
        }
        all
    }

    /// Adds a range in place of all that overlap it.
    pub fn replace(&mut self, new: Range) {
        let found = self.position(new.last);
        if let Some((part, at)) = found {
            let range = &mut self.parts[part][at];
            // Nothing before it can overlap.
            if range.start == new.start {
                *range = new;
                return;
            }
            if range.last >= new.start {
                return self.replace_from((part, at), new);
            }
        }
        self.insert(found, new);
    }

    /// Adds a range in place of those that overlap it: the one at a position is the last of them.
    fn replace_from(&mut self, (part, at): (usize, usize), new: Range) {
        let ranges = &mut self.parts[part];
        let overlaps = |range: &&Range| range.last >= new.start;
        let count = ranges[..=at].iter().rev().take_while(overlaps).count();
        let first = at + 1 - count;
        // The parts before may have others.
        if first == 0 && part > 0 {
            let overlapping = self.overlapping(new.start, new.last);
            overlapping
                .iter()
                .for_each(|range| self.remove(range.start));
            return self.insert(self.position(new.start), new);
        }
        ranges[first] = new;
        ranges.drain(first + 1..=at);
        self.starts[part] = ranges[0].start;
    }

    /// Inserts a range after the one at a position.
    fn insert(&mut self, after: Option<(usize, usize)>, new: Range) {
        let (part, at) = match after {
            Some((part, at)) => (part, at + 1),
            None if self.parts.is_empty() => {
                self.starts.push(new.start);
                self.parts.push(Vec::new());
                (0, 0)
            }
            None => (0, 0),
        };
        let ranges = &mut self.parts[part];
        ranges.insert(at, new);
        self.starts[part] = ranges[0].start;
        if ranges.len() > PART {
            // Code is mostly added at ascending addresses: the first half stays full then.
            let half = ranges.split_off(if at == PART { PART } else { PART / 2 });
            self.starts.insert(part + 1, half[0].start);
            self.parts.insert(part + 1, half);
        }
    }

    /// Removes the range that starts at an address.
    pub fn remove(&mut self, start: u64) {
        let Some((part, at)) = self.position(start) else {
            return;
        };
        let ranges = &mut self.parts[part];
        if ranges[at].start != start {
            return;
        }
        ranges.remove(at);
        match ranges.first() {
            Some(first) => self.starts[part] = first.start,
            None => {
                self.starts.remove(part);
                self.parts.remove(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_address_has_its_latest_body(
            changes in prop::collection::vec((0_u64..4000, 0_u64..30, 0_u8..10), 0..2000),
        ) {
            let (mut occupied, mut model) = (Occupied::default(), BTreeMap::new());
            for (index, &(start, length, kind)) in changes.iter().enumerate() {
                let body = BodyIndex(index as u32);
                if kind < 5 {
                    let own = model.get(&start).map(|range: &Range| range.body);
                    prop_assert_eq!(occupied.approach(start), own);
                }
                if kind == 0 {
                    occupied.remove(start);
                    model.remove(&start);
                    continue;
                }
                let last = start + length;
                let overlapping: Vec<Range> = model
                    .range(..=last)
                    .rev()
                    .map(|(_, range)| *range)
                    .take_while(|range: &Range| range.last >= start)
                    .collect();
                prop_assert_eq!(&occupied.overlapping(start, last)[..], &overlapping);
                overlapping.iter().for_each(|range| _ = model.remove(&range.start));
                let new = Range { start, last, body };
                model.insert(start, new);
                occupied.replace(new);
            }
            prop_assert!(occupied.parts.iter().all(|part| (1..=PART).contains(&part.len())));
            prop_assert!(occupied.parts.iter().flatten().eq(model.values()));
            for address in 0..4050 {
                let before = model.range(..=address).next_back();
                let at = before.filter(|(_, range)| address <= range.last);
                prop_assert_eq!(occupied.at(address), at.map(|(_, range)| range.body));
                let own = model.get(&address).map(|range| range.body);
                prop_assert_eq!(occupied.starting_at(address), own);
            }
        }
    }
}
