//! The latest owner of each segment, as runs of segments with one owner.

/// A set of small integers with searches for the nearest member. A tree of 64-bit words: each bit
/// of a level says whether the word below it has any member.
struct BitTree {
    levels: Vec<Vec<u64>>,
}

impl BitTree {
    /// Returns the set of the integers below `len`, which is positive.
    fn full(len: usize) -> Self {
        let mut levels = Vec::new();
        let mut members = len;
        loop {
            let words = members.div_ceil(64);
            let mut level = vec![u64::MAX; words];
            level[words - 1] >>= 64 * words - members;
            levels.push(level);
            if words == 1 {
                return Self { levels };
            }
            members = words;
        }
    }

    fn contains(&self, i: usize) -> bool {
        self.levels[0][i >> 6] >> (i & 63) & 1 == 1
    }

    fn insert(&mut self, mut i: usize) {
        for level in &mut self.levels {
            level[i >> 6] |= 1 << (i & 63);
            i >>= 6;
        }
    }

    fn remove(&mut self, mut i: usize) {
        for level in &mut self.levels {
            level[i >> 6] &= !(1 << (i & 63));
            if level[i >> 6] != 0 {
                return;
            }
            i >>= 6;
        }
    }

    /// Returns the nearest member at or before `i`.
    fn at_or_before(&self, mut i: usize) -> Option<usize> {
        for depth in 0..self.levels.len() {
            let word = self.levels[depth][i >> 6] & (u64::MAX >> (63 - (i & 63)));
            if word != 0 {
                i = (i & !63) | (63 - word.leading_zeros() as usize);
                for level in self.levels[..depth].iter().rev() {
                    i = (i << 6) | (63 - level[i].leading_zeros() as usize);
                }
                return Some(i);
            }
            i = (i >> 6).checked_sub(1)?;
        }
        None
    }

    /// Returns the nearest member at or after `i`.
    fn at_or_after(&self, mut i: usize) -> Option<usize> {
        for depth in 0..self.levels.len() {
            let word = self.levels[depth].get(i >> 6)? & (u64::MAX << (i & 63));
            if word != 0 {
                i = (i & !63) | word.trailing_zeros() as usize;
                for level in self.levels[..depth].iter().rev() {
                    i = (i << 6) | level[i].trailing_zeros() as usize;
                }
                return Some(i);
            }
            i = (i >> 6) + 1;
        }
        None
    }
}

/// Runs of segments, each with its latest owner.
///
/// At first, each segment is a run: most occupants have one segment. An assignment adds at most two
/// runs and joins all those inside, so n assignments take O(n log n) however wide they are.
pub(crate) struct OwnerRuns {
    starts: BitTree,
    owners: Vec<u32>,
}

/// Owner of a run without an occupant.
const UNOWNED: u32 = u32::MAX;

impl OwnerRuns {
    pub(crate) fn new(segments: usize) -> Self {
        let segments = segments.max(1);
        Self {
            starts: BitTree::full(segments),
            owners: vec![UNOWNED; segments],
        }
    }

    /// Assigns the segments `first..=last` to `owner`. Calls `each` with the previous owner of each
    /// run, so perhaps several times with one owner.
    pub(crate) fn assign(
        &mut self,
        first: usize,
        last: usize,
        owner: u32,
        mut each: impl FnMut(u32),
    ) {
        self.split(first);
        if last + 1 < self.owners.len() {
            self.split(last + 1);
        }
        let mut run = first;
        loop {
            if self.owners[run] != UNOWNED {
                each(self.owners[run]);
            }
            if run != first {
                self.starts.remove(run);
            }
            if run == last {
                break;
            }
            match self.starts.at_or_after(run + 1) {
                Some(next) if next <= last => run = next,
                _ => break,
            }
        }
        self.owners[first] = owner;
    }

    #[inline]
    fn split(&mut self, at: usize) {
        if !self.starts.contains(at)
            && let Some(start) = self.starts.at_or_before(at)
        {
            self.owners[at] = self.owners[start];
            self.starts.insert(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_a_vector_of_owners(
            len in 1_usize..9000,
            assignments in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80),
        ) {
            let mut runs = OwnerRuns::new(len);
            let mut model = vec![UNOWNED; len];
            for (owner, (a, b)) in assignments.iter().enumerate() {
                let (a, b) = (a.index(len), b.index(len));
                let (first, last) = (a.min(b), a.max(b));
                let mut replaced = Vec::new();
                runs.assign(first, last, owner as u32, |o| replaced.push(o));
                let mut expected = model[first..=last].to_vec();
                expected.retain(|&o| o != UNOWNED);
                expected.dedup();
                replaced.dedup();
                // A run without owner between two runs of one owner may separate them on one side
                // only.
                expected.sort_unstable();
                expected.dedup();
                replaced.sort_unstable();
                replaced.dedup();
                prop_assert_eq!(replaced, expected);
                model[first..=last].fill(owner as u32);
            }
        }
    }
}
