//! Who was the latest to occupy each segment, kept as runs of segments with one owner.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "places of lists that are sorted here"
)]

/// A set of small integers that finds the nearest member at or before, or at or after, a position.
/// A tree of 64-bit words: each bit of a level says whether the word below it has any member.
struct BitTree {
    levels: Vec<Vec<u64>>,
}

impl BitTree {
    fn new(len: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = len.max(1);
        loop {
            words = words.div_ceil(64);
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
        }
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

    /// The nearest member at or before `i`.
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

    /// The nearest member at or after `i`.
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

/// Runs of segments, each with its latest owner (`None`: nobody yet).
///
/// Giving a run away adds at most two runs and removes all those inside, so n gifts cost O(n log n) however wide they are.
pub(crate) struct Pieces {
    begins: BitTree,
    owners: Vec<u32>,
}

/// The owner of a run that nobody has occupied.
const NOBODY: u32 = u32::MAX;

impl Pieces {
    pub(crate) fn new(segments: usize) -> Self {
        let mut begins = BitTree::new(segments);
        begins.insert(0);
        Self {
            begins,
            owners: vec![NOBODY; segments.max(1)],
        }
    }

    /// Gives the segments `first..=last` to `owner`, and tells `each` whose they were: once a run, so perhaps more than once an owner.
    pub(crate) fn give(
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
        let mut run = Some(first);
        while let Some(begin) = run.filter(|&begin| begin <= last) {
            if self.owners[begin] != NOBODY {
                each(self.owners[begin]);
            }
            if begin != first {
                self.begins.remove(begin);
            }
            run = self.begins.at_or_after(begin + 1);
        }
        self.owners[first] = owner;
    }

    fn split(&mut self, at: usize) {
        if let Some(begin) = self.begins.at_or_before(at)
            && begin != at
        {
            self.owners[at] = self.owners[begin];
            self.begins.insert(at);
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
            gifts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80),
        ) {
            let mut pieces = Pieces::new(len);
            let mut model = vec![NOBODY; len];
            for (owner, (a, b)) in gifts.iter().enumerate() {
                let (a, b) = (a.index(len), b.index(len));
                let (first, last) = (a.min(b), a.max(b));
                let mut given = Vec::new();
                pieces.give(first, last, owner as u32, |o| given.push(o));
                let mut expected = model[first..=last].to_vec();
                expected.retain(|&o| o != NOBODY);
                expected.dedup();
                given.dedup();
                // A run of nobody between two runs of one owner may separate them on one side only.
                expected.sort_unstable();
                expected.dedup();
                given.sort_unstable();
                given.dedup();
                prop_assert_eq!(given, expected);
                model[first..=last].fill(owner as u32);
            }
        }
    }
}
