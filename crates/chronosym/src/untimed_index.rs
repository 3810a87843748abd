//! Which untimed row answers for an address: the latest of those that cover it.
//!
//! Rows may nest forty thousand deep, and a later one may cover all before it. So what answers is kept flat: pieces that
//! do not overlap. A row replaces the pieces that it covers, and leaves at most one more on each side than it took away.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chunked::Chunked;
use crate::untimed::UntimedSymbol;

/// Ranges that do not overlap: their first address to their last and what is there.
#[derive(Clone, Debug)]
struct Pieces<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces(BTreeMap::new())
    }
}

impl<T: Copy> Pieces<T> {
    fn at(&self, address: u64) -> Option<T> {
        let (_, &(last, what)) = self.0.range(..=address).next_back()?;
        (address <= last).then_some(what)
    }

    /// Takes out all that lies in a range, cut to it, for `each` to see; what sticks out stays.
    fn carve(&mut self, start: u64, last: u64, mut each: impl FnMut(u64, u64, T)) {
        while let Some((&from, &(to, what))) = self.0.range(..=last).next_back() {
            if to < start {
                return;
            }
            self.0.remove(&from);
            if from < start {
                self.0.insert(from, (start - 1, what));
            }
            if to > last {
                self.0.insert(last + 1, (to, what));
            }
            each(from.max(start), to.min(last), what);
        }
    }

    fn put(&mut self, start: u64, last: u64, what: T) {
        self.0.insert(start, (last, what));
    }
}

#[derive(Clone, Debug, Default)]
struct Flat {
    latest: Pieces<u32>,
    /// Where rows with different names stand.
    contested: Pieces<()>,
}

impl Flat {
    fn insert(&mut self, row: usize, rows: &Chunked<UntimedSymbol>) {
        let symbol = &rows[row];
        let (start, last) = (symbol.start, symbol.last.max(symbol.start));
        let contested = &mut self.contested;
        self.latest.carve(start, last, |from, to, earlier| {
            if rows[earlier as usize].name != symbol.name {
                // One with those that it touches: there are no more of them than of the latest.
                let (mut first, mut end) = (from, to);
                let touched = (from.saturating_sub(1), to.saturating_add(1));
                if let Some((&at, &(last, ()))) = contested.0.range(..=touched.0).next_back()
                    && last >= touched.0
                {
                    first = first.min(at);
                }
                if let Some((_, &(last, ()))) = contested.0.range(..=touched.1).next_back() {
                    end = end.max(last);
                }
                contested.carve(first, end, |_, _, ()| {});
                contested.put(first, end, ());
            }
        });
        self.latest.put(start, last, row as u32);
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
        let (base, recent) = (self.base.latest.at(address), self.recent.latest.at(address));
        let row = recent.or(base)? as usize;
        let is_other = base.is_some_and(|base| rows[base as usize].name != rows[row].name);
        let of = |flat: &Flat| flat.contested.at(address).is_some();
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
