//! Which untimed row answers for an address: the latest of those that cover it.
//!
//! Rows may nest forty thousand deep, and a later one may cover all before it. So what answers is kept flat: pieces that
//! do not overlap. A row replaces the pieces that it covers, and leaves at most one more on each side than it took away.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ranges::Ranges;
use crate::untimed::UntimedSymbol;
use chronosym_types::Chunked;

/// Pieces that do not overlap: their first address to their last and the latest row there.
#[derive(Clone, Debug, Default)]
struct Flat {
    pieces: BTreeMap<u64, (u64, u32)>,
    /// Where rows with different names stand.
    contested: Ranges,
}

impl Flat {
    fn at(&self, address: u64) -> Option<u32> {
        let (_, &(last, row)) = self.pieces.range(..=address).next_back()?;
        (address <= last).then_some(row)
    }

    fn insert(&mut self, row: usize, rows: &Chunked<UntimedSymbol>) {
        let symbol = &rows[row];
        let (start, last) = (symbol.start, symbol.last.max(symbol.start));
        // What lies in its range goes; what sticks out stays.
        while let Some((&from, &(to, earlier))) = self.pieces.range(..=last).next_back()
            && to >= start
        {
            self.pieces.remove(&from);
            if from < start {
                self.pieces.insert(from, (start - 1, earlier));
            }
            if to > last {
                self.pieces.insert(last + 1, (to, earlier));
            }
            if rows[earlier as usize].name != symbol.name {
                self.contested.insert(from.max(start), to.min(last));
            }
        }
        self.pieces.insert(start, (last, row as u32));
    }
}

/// The untimed rows of one process by address. A copy shares what has been there for some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct UntimedIndex {
    base: Arc<Flat>,
    /// Rows of the base.
    merged: usize,
    /// Those that came since.
    recent: Flat,
    seen: usize,
}

impl UntimedIndex {
    /// All rows.
    pub(crate) fn of(rows: &Chunked<UntimedSymbol>) -> Self {
        let mut index = UntimedIndex::default();
        index.catch_up(rows);
        index
    }

    /// Takes in the rows that have come since the last time.
    pub(crate) fn catch_up(&mut self, rows: &Chunked<UntimedSymbol>) {
        let (new, all) = (rows.len() - self.merged, rows.len());
        // Copies of the base are rare, and those of what came since are small: neither grows with the number of calls.
        if new.saturating_mul(new) >= all {
            let base = Arc::make_mut(&mut self.base);
            (self.merged..all).for_each(|row| base.insert(row, rows));
            (self.merged, self.recent) = (all, Flat::default());
        } else {
            (self.seen..all).for_each(|row| self.recent.insert(row, rows));
        }
        self.seen = all;
    }

    /// The row that answers for an address, and whether another one there has a different name. In O(log n).
    pub(crate) fn at(&self, address: u64, rows: &Chunked<UntimedSymbol>) -> Option<(usize, bool)> {
        let (base, recent) = (self.base.at(address), self.recent.at(address));
        let row = recent.or(base)? as usize;
        let is_other = base.is_some_and(|base| rows[base as usize].name != rows[row].name);
        let of = |flat: &Flat| flat.contested.contains(address);
        Some((row, is_other || of(&self.base) || of(&self.recent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;
    use crate::names::Names;

    proptest::proptest! {
        #[test]
        fn answers_are_those_of_looking_at_every_row(
            ranges in proptest::collection::vec((0..40_u64, 0..12_u64, 0..3_usize), 0..40),
            every in 1..8_usize,
        ) {
            let mut names = Names::default();
            let ids = ["a", "b", "c"].map(|name| names.intern("", name, ""));
            let (mut rows, mut index) = (Chunked::default(), UntimedIndex::default());
            let module = names.strings.intern("");
            for (i, &(start, len, name)) in ranges.iter().enumerate() {
                rows.push(UntimedSymbol {
                    start,
                    last: start + len,
                    name: ids[name],
                    module,
                    tier: None,
                    evidence: Evidence::PerfMap,
                });
                if i % every == 0 {
                    index.catch_up(&rows);
                }
            }
            index.catch_up(&rows);
            for address in 0..60 {
                let covers = |row: &usize| (rows[*row].start..=rows[*row].last).contains(&address);
                let there: Vec<usize> = (0..rows.len()).filter(covers).collect();
                let expected = there.last().map(|&row| {
                    (row, there.iter().any(|&other| rows[other].name != rows[row].name))
                });
                proptest::prop_assert_eq!(index.at(address, &rows), expected);
            }
        }
    }
}
