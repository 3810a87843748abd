//! A stable radix sort of 64-bit keys with 32-bit positions.

/// A key and its position before sorting.
#[derive(Clone, Copy, Default)]
pub(crate) struct Keyed {
    pub(crate) key: u64,
    pub(crate) pos: u32,
}

const DIGIT: u32 = 11;
const DIGITS: usize = 64_u32.div_ceil(DIGIT) as usize;
const BINS: usize = 1 << DIGIT;

/// Sorts by key, keeping the order of equal keys. Skips digits in which all keys agree.
pub(crate) fn sort(mut items: Vec<Keyed>) -> Vec<Keyed> {
    if items.is_sorted_by_key(|i| i.key) {
        return items;
    }
    if items.len() < BINS {
        items.sort_by_key(|i| i.key);
        return items;
    }
    let mut other = vec![Keyed::default(); items.len()];
    let first = items[0].key;
    let varying = items.iter().fold(0, |bits, item| bits | item.key ^ first);
    for digit in (0..DIGITS).filter(|&digit| bin(varying, digit) != 0) {
        // The slots of each bin from its first one on.
        let mut bins = [0_u32; BINS];
        for item in &items {
            bins[bin(item.key, digit)] += 1;
        }
        let mut next = 0;
        for count in &mut bins {
            next += std::mem::replace(count, next);
        }
        for item in &items {
            let slot = &mut bins[bin(item.key, digit)];
            other[*slot as usize] = *item;
            *slot += 1;
        }
        std::mem::swap(&mut items, &mut other);
    }
    items
}

fn bin(key: u64, digit: usize) -> usize {
    (key >> (digit as u32 * DIGIT)) as usize & (BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sorts_stably(
            keys in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..50, Just(u64::MAX)], 0..6000)
        ) {
            let items: Vec<_> =
                keys.iter().enumerate().map(|(i, &key)| Keyed { key, pos: i as u32 }).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|i| (i.key, i.pos));
            let sorted = sort(items);
            prop_assert!(sorted.iter().map(|i| (i.key, i.pos)).eq(expected.iter().map(|i| (i.key, i.pos))));
        }
    }
}
