//! What was found out of modules and images, up to a number of bytes.

use std::hash::Hash;
use std::sync::Arc;

use chronosym_symbols::lru::WeightedLru;

/// Values by a key of theirs, which need not be unique: the identity that each was found out for says whose it is.
pub(super) struct Known<K: Hash + Eq, I, T>(WeightedLru<(u64, K), (I, T)>);

impl<K: Hash + Eq + Clone, I, T> Known<K, I, T> {
    pub(super) fn new(bytes: u64) -> Self {
        Known(WeightedLru::new(bytes))
    }

    /// What is known of `item`; `find` finds it out, and says for whom and about how many bytes it takes. The first half of
    /// the key is the generation of the places to search.
    pub(super) fn get<R>(
        &self,
        key: (u64, K),
        item: &R,
        find: impl Fn() -> (I, T, u64),
    ) -> Arc<(I, T)>
    where
        I: PartialEq<R>,
    {
        let make = || {
            let (identity, value, weight) = find();
            (Arc::new((identity, value)), weight)
        };
        let known = self.0.get_or_make(&key, make);
        if known.0 == *item { known } else { make().0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_same_key_is_told_apart() {
        let known: Known<u8, u32, u32> = Known::new(1 << 10);
        for item in [1, 2, 1, 2_u32] {
            let found = known.get((0, 7), &item, || (item, item * 10, 1));
            assert_eq!(*found, (item, item * 10));
        }
    }
}
