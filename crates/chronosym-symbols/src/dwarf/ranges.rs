//! Ranges of addresses, each with a value.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sorted, disjoint ranges of addresses, each with a value.
#[derive(Debug, Default)]
pub(crate) struct Ranges<T>(Vec<(u64, u64, T)>);

impl<T: Copy + Ord> Ranges<T> {
    /// Maps each range from a start to an end. Where ranges overlap, the smallest value is used.
    ///
    /// Adjacent ranges with equal values are merged. Gaps remain.
    pub(crate) fn new(mut all: Vec<(u64, u64, T)>) -> Self {
        all.sort_by_key(|&(start, ..)| start);
        if !all.is_sorted_by(|(_, end, _), (next, ..)| end <= next) {
            all = disjoint(&all);
        }
        all.dedup_by(|&mut (start, end, value), (_, last, same)| {
            let joins = *same == value && *last == start && start < end;
            if joins {
                *last = end;
            }
            joins
        });
        all.shrink_to_fit();
        Self(all)
    }

    /// Returns the value at an address.
    pub(crate) fn find(&self, va: u64) -> Option<T> {
        let next = self.0.partition_point(|&(start, ..)| start <= va);
        let &(_, end, value) = self.0.get(next.checked_sub(1)?)?;
        (va < end).then_some(value)
    }

    /// Returns the start and the end of each range.
    pub(crate) fn boundaries(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|&(start, end, _)| [start, end])
    }

    /// Heap in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity().saturating_mul(size_of::<(u64, u64, T)>())
    }
}

/// Cuts sorted ranges so that none overlaps another.
fn disjoint<T: Copy + Ord>(all: &[(u64, u64, T)]) -> Vec<(u64, u64, T)> {
    let mut ranges = Vec::with_capacity(all.len());
    // The ranges that extend beyond `done`, the smallest value on top.
    let mut open: BinaryHeap<Reverse<(T, u64)>> = BinaryHeap::new();
    let mut done = 0;
    let mut add_until = |until: u64, open: &mut BinaryHeap<Reverse<(T, u64)>>| {
        while let Some(&Reverse((value, end))) = open.peek()
            && done < until
        {
            if end <= done {
                open.pop();
                continue;
            }
            let end = end.min(until);
            ranges.push((done, end, value));
            done = end;
        }
        done = until;
    };
    for &(start, end, value) in all {
        add_until(start, &mut open);
        open.push(Reverse((value, end)));
    }
    add_until(u64::MAX, &mut open);
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_least_value_has_an_address(
            all in proptest::collection::vec((0..40_u64, -2..12_i64, 0..6_usize), 0..30),
            va in 0..60_u64,
        ) {
            // Damaged files have ranges that end before they start.
            let range = |(start, len, value): (u64, i64, usize)| (start, start.saturating_add_signed(len), value);
            let all: Vec<(u64, u64, usize)> = all.into_iter().map(range).collect();
            let covers = |(start, end, _): &&(u64, u64, usize)| (*start..*end).contains(&va);
            let expected = all.iter().filter(covers).map(|range| range.2).min();
            proptest::prop_assert_eq!(Ranges::new(all).find(va), expected);
        }
    }
}
