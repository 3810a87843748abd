//! A set of addresses as merged ranges.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Start → last address; ranges neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn insert(&mut self, mut start: u64, mut last: u64) {
        while let Some((&s, &l)) = self.0.range(..=last.saturating_add(1)).next_back() {
            if l < start.saturating_sub(1) {
                break;
            }
            self.0.remove(&s);
            start = start.min(s);
            last = last.max(l);
        }
        self.0.insert(start, last);
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        self.0
            .range(..=address)
            .next_back()
            .is_some_and(|(_, &last)| address <= last)
    }
}

/// Addresses of dropped code: at least the most recent ranges, within bounded memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForgottenCode {
    recent: Ranges,
    /// The content of `recent` when it had too many ranges.
    earlier: Arc<Ranges>,
}

impl ForgottenCode {
    /// Maximum number of ranges in `recent`; `earlier` holds about as many.
    const MAX_RANGES: usize = 2048;

    pub(crate) fn insert(&mut self, start: u64, last: u64) {
        self.recent.insert(start, last);
        if self.recent.len() > Self::MAX_RANGES {
            self.earlier = Arc::new(std::mem::take(&mut self.recent));
        }
    }

    /// Returns all ranges, oldest first: first and last address.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let ranges = self.earlier.0.iter().chain(&self.recent.0);
        ranges.map(|(&first, &last)| (first, last))
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        self.recent.contains(address) || self.earlier.contains(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge() {
        let mut ranges = Ranges::default();
        for (start, last) in [
            (10, 19),
            (30, 39),
            (20, 25),
            (0, 3),
            (u64::MAX - 1, u64::MAX),
            (38, 50),
        ] {
            ranges.insert(start, last);
        }
        assert!(ranges.0.iter().eq([
            (&0, &3),
            (&10, &25),
            (&30, &50),
            (&(u64::MAX - 1), &u64::MAX)
        ]));
        assert!(ranges.contains(25) && ranges.contains(0) && ranges.contains(u64::MAX));
        assert!(!ranges.contains(26) && !ranges.contains(4));
        ranges.insert(4, 9);
        assert!(ranges.0.iter().take(1).eq([(&0, &25)]));
    }
}
