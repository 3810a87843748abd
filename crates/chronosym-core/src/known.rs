//! Elements of one recording, to which those of another are joined.

use std::collections::BTreeMap;
use std::hash::Hash;

use chronosym_timeline::{End, Start};
use chronosym_types::hash::HashMap;

/// Elements by identity and the time of their first event.
#[derive(Debug)]
pub(crate) struct Known<K, I> {
    elements: HashMap<K, BTreeMap<u64, I>>,
}

impl<K: Hash + Eq, I: Copy> Known<K, I> {
    pub fn of(elements: impl Iterator<Item = (K, u64, I)>) -> Self {
        let mut known = Known {
            elements: HashMap::default(),
        };
        elements.for_each(|(key, time, index)| known.add(key, time, index));
        known
    }

    pub fn add(&mut self, key: K, first_seen: u64, index: I) {
        self.elements
            .entry(key)
            .or_default()
            .insert(first_seen, index);
    }

    /// Returns the elements with an identity whose first events precede and follow a time.
    pub fn near(&self, key: &K, time: u64) -> impl Iterator<Item = I> + use<K, I> {
        let near = self.elements.get(key).map(|times| {
            let before = times.range(..=time).next_back();
            let after = times.range(time.saturating_add(1)..).next();
            [before, after].map(|it| it.map(|(_, &index)| index))
        });
        near.into_iter().flatten().flatten()
    }
}

/// Returns the time of the first event of a lifetime.
pub(crate) fn first_seen(start: Start) -> u64 {
    match start {
        Start::At(at) | Start::Before(at) => at,
        Start::Unbounded => 0,
    }
}

/// Joins a lifetime with that of the same element in another recording. `None` if they are of two
/// elements: one ended before the other. Times that differ by up to `slack_ns` may be the same.
pub(crate) fn join_lifetimes(
    a: (Start, End),
    b: (Start, End),
    slack_ns: u64,
) -> Option<(Start, End)> {
    let ended_before = |first: End, (start, end): (Start, End)| {
        let End::At(ended) = first else {
            return false;
        };
        let until = ended.saturating_add(slack_ns);
        let last_seen = match end {
            End::At(at) | End::After(at) => at,
            End::Open => 0,
        };
        first_seen(start) > until || last_seen > until
    };
    if ended_before(a.1, b) || ended_before(b.1, a) {
        return None;
    }
    let start = match (a.0, b.0) {
        (Start::At(a), Start::At(b)) => Start::At(a.min(b)),
        // What was seen before is not loaded again while it is alive.
        (Start::At(loaded), Start::Before(seen)) | (Start::Before(seen), Start::At(loaded)) => {
            match seen.saturating_add(slack_ns) < loaded {
                true => Start::Before(seen),
                false => Start::At(loaded),
            }
        }
        (known @ Start::At(_), Start::Unbounded) | (Start::Unbounded, known @ Start::At(_)) => {
            known
        }
        (Start::Before(a), Start::Before(b)) => Start::Before(a.min(b)),
        (seen @ Start::Before(_), _) | (_, seen) => seen,
    };
    let end = match (a.1, b.1) {
        (End::At(a), End::At(b)) => End::At(a.min(b)),
        (known @ End::At(_), _) | (_, known @ End::At(_)) => known,
        (End::After(a), End::After(b)) => End::After(a.max(b)),
        (seen @ End::After(_), _) | (_, seen) => seen,
    };
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_of_one_element_are_joined() {
        let join = |a, b| join_lifetimes(a, b, 2);
        // Loaded in one recording, unloaded in another.
        let loaded = (Start::At(10), End::Open);
        let unloaded = (Start::Before(50), End::At(50));
        let whole = (Start::At(10), End::At(50));
        assert_eq!(join(loaded, unloaded), Some(whole));
        assert_eq!(join(unloaded, loaded), Some(whole));
        assert_eq!(join(whole, (Start::Before(52), End::At(52))), Some(whole));
        // Listed at the end of one, and at the start of another.
        let at_end = (Start::Before(40), End::After(40));
        let at_start = (Start::Before(60), End::Open);
        assert_eq!(
            join(at_end, at_start),
            Some((Start::Before(40), End::After(40)))
        );
    }

    #[test]
    fn what_ended_is_not_seen_again() {
        let join = |a, b| join_lifetimes(a, b, 2);
        let whole = (Start::At(10), End::At(50));
        assert_eq!(join(whole, (Start::At(60), End::Open)), None);
        assert_eq!(join((Start::Before(60), End::Open), whole), None);
        assert_eq!(join(whole, (Start::Before(70), End::At(70))), None);
    }

    #[test]
    fn the_nearest_elements_are_found() {
        let known = Known::of([("a", 10, 1), ("a", 20, 2), ("b", 15, 3)].into_iter());
        let near = |key, time| known.near(&key, time).collect::<Vec<i32>>();
        assert_eq!(near("a", 15), [1, 2]);
        assert_eq!(near("a", 20), [2]);
        assert_eq!(near("b", 0), [3]);
        assert!(near("c", 0).is_empty());
    }
}
