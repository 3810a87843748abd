//! An index of untimed symbols by address: the latest symbol that covers an address is used.
//!
//! Symbols may be nested forty thousand deep, and a later one may cover all earlier ones. The index
//! is therefore flat: ranges that do not overlap. A symbol replaces the ranges that it covers, and
//! adds at most one on each side.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ranges::Ranges;
use crate::untimed::UntimedSymbol;
use chronosym_types::Chunked;

/// Disjoint ranges: first address → (last address, latest symbol).
#[derive(Clone, Debug, Default)]
struct Flat {
    pieces: BTreeMap<u64, (u64, u32)>,
    /// Addresses covered by symbols with different names.
    contested: Ranges,
}

impl Flat {
    fn at(&self, address: u64) -> Option<u32> {
        let (_, &(last, index)) = self.pieces.range(..=address).next_back()?;
        (address <= last).then_some(index)
    }

    fn insert(&mut self, index: usize, symbols: &Chunked<UntimedSymbol>) {
        let symbol = &symbols[index];
        let (start, last) = (symbol.start, symbol.last.max(symbol.start));
        // Replaces the covered part of each range; the rest remains.
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
            if symbols[earlier as usize].name != symbol.name {
                self.contested.insert(from.max(start), to.min(last));
            }
        }
        self.pieces.insert(start, (last, index as u32));
    }
}

/// The untimed symbols of one process by address. Copies share the base.
#[derive(Clone, Debug, Default)]
pub(crate) struct UntimedIndex {
    base: Arc<Flat>,
    /// Number of symbols in the base.
    merged: usize,
    /// Symbols added since.
    recent: Flat,
    seen: usize,
}

impl UntimedIndex {
    /// Indexes all symbols.
    pub(crate) fn of(symbols: &Chunked<UntimedSymbol>) -> Self {
        let mut index = UntimedIndex::default();
        index.catch_up(symbols);
        index
    }

    /// Adds the symbols since the last call.
    pub(crate) fn catch_up(&mut self, symbols: &Chunked<UntimedSymbol>) {
        let (new, all) = (symbols.len() - self.merged, symbols.len());
        // The base is copied rarely, and the recent part is small: neither cost grows with the
        // number of calls.
        if new.saturating_mul(new) >= all {
            let base = Arc::make_mut(&mut self.base);
            (self.merged..all).for_each(|index| base.insert(index, symbols));
            (self.merged, self.recent) = (all, Flat::default());
        } else {
            (self.seen..all).for_each(|index| self.recent.insert(index, symbols));
        }
        self.seen = all;
    }

    /// Returns the symbol at an address, and whether another one there has a different name. In
    /// O(log n).
    pub(crate) fn at(
        &self,
        address: u64,
        symbols: &Chunked<UntimedSymbol>,
    ) -> Option<(usize, bool)> {
        let (base, recent) = (self.base.at(address), self.recent.at(address));
        let index = recent.or(base)? as usize;
        let is_other = base.is_some_and(|base| symbols[base as usize].name != symbols[index].name);
        let of = |flat: &Flat| flat.contested.contains(address);
        Some((index, is_other || of(&self.base) || of(&self.recent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NameTable;

    proptest::proptest! {
        #[test]
        fn answers_are_those_of_looking_at_every_row(
            ranges in proptest::collection::vec((0..40_u64, 0..12_u64, 0..3_usize), 0..40),
            every in 1..8_usize,
        ) {
            let mut names = NameTable::default();
            let ids = ["a", "b", "c"].map(|name| names.intern("", name, ""));
            let (mut symbols, mut index) = (Chunked::default(), UntimedIndex::default());
            let module = names.strings.intern("");
            for (i, &(start, len, name)) in ranges.iter().enumerate() {
                symbols.push(UntimedSymbol {
                    start,
                    last: start + len,
                    name: ids[name],
                    module,
                    ..UntimedSymbol::default()
                });
                if i % every == 0 {
                    index.catch_up(&symbols);
                }
            }
            index.catch_up(&symbols);
            for address in 0..60 {
                let covers = |index: &usize| (symbols[*index].start..=symbols[*index].last).contains(&address);
                let there: Vec<usize> = (0..symbols.len()).filter(covers).collect();
                let expected = there.last().map(|&index| {
                    (index, there.iter().any(|&other| symbols[other].name != symbols[index].name))
                });
                proptest::prop_assert_eq!(index.at(address, &symbols), expected);
            }
        }
    }
}
