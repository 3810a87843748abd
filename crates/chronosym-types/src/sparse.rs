//! A vector with holes, whose clones share memory.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

const LEAF_BITS: usize = 6;
const LEAF: usize = 1 << LEAF_BITS;
const BRANCH_BITS: usize = 8;
const BRANCH: usize = 1 << BRANCH_BITS;

/// Up to 64 consecutive values; `values` has no holes, `present` says which they are.
#[derive(Clone, Debug)]
struct Leaf<T> {
    present: u64,
    values: Vec<T>,
}

impl<T> Leaf<T> {
    /// The position in `values` of the value at an index of this leaf.
    fn position(&self, index: usize) -> Option<usize> {
        let bit = 1 << (index % LEAF);
        // Without a hole below the last value, no bits need to be counted.
        if self.present & self.present.wrapping_add(1) == 0 {
            return (self.present & bit != 0).then_some(index % LEAF);
        }
        let before = (self.present & (bit - 1)).count_ones();
        (self.present & bit != 0).then_some(before as usize)
    }
}

type Branch<T> = Vec<Option<Arc<Leaf<T>>>>;

/// A vector from which values can be removed, and whose indices are never used again.
/// Indexing panics where a value was removed.
///
/// A clone takes constant time for each 16,384 indices. A change after it copies one leaf and one branch. Memory follows
/// the number of values, but for 8 bytes for each 16,384 indices.
#[derive(Clone, Debug)]
pub struct SparseVec<T> {
    branches: Vec<Arc<Branch<T>>>,
    /// The next index.
    end: usize,
    count: usize,
}

impl<T> Default for SparseVec<T> {
    fn default() -> Self {
        SparseVec {
            branches: Vec::new(),
            end: 0,
            count: 0,
        }
    }
}

impl<T> SparseVec<T> {
    /// Returns the index of the next value, which is larger than any index so far.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn leaf(&self, index: usize) -> Option<&Arc<Leaf<T>>> {
        let branch = self.branches.get(index >> (LEAF_BITS + BRANCH_BITS))?;
        branch.get(index >> LEAF_BITS & (BRANCH - 1))?.as_ref()
    }

    /// Returns the value at an index, unless it was removed.
    pub fn get(&self, index: usize) -> Option<&T> {
        let leaf = self.leaf(index)?;
        leaf.values.get(leaf.position(index)?)
    }

    /// Returns whether there is a value at an index.
    pub fn contains(&self, index: usize) -> bool {
        self.get(index).is_some()
    }

    /// Returns all values in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.leaves().flat_map(|(_, leaf)| &leaf.values)
    }

    /// Returns all values with their indices, in order.
    pub fn indexed(&self) -> impl Iterator<Item = (usize, &T)> {
        self.leaves().flat_map(|(first, leaf)| indexed(first, leaf))
    }

    /// The leaves with their first indices.
    fn leaves(&self) -> impl Iterator<Item = (usize, &Arc<Leaf<T>>)> {
        let branches = self.branches.iter().enumerate();
        branches.flat_map(|(at, branch)| {
            let leaves = branch.iter().enumerate();
            leaves.filter_map(move |(leaf, it)| {
                Some((((at << BRANCH_BITS) | leaf) << LEAF_BITS, it.as_ref()?))
            })
        })
    }

    /// Returns the values that may differ from those of an earlier clone, with their indices: all in
    /// leaves that the two do not share.
    pub fn changes_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (usize, &'a T)> {
        let changed = self.branches.iter().enumerate().filter(|(at, branch)| {
            let before = earlier.branches.get(*at);
            before.is_none_or(|before| !Arc::ptr_eq(before, branch))
        });
        let leaves = changed.flat_map(|(at, branch)| {
            let leaves = branch.iter().enumerate();
            leaves.filter_map(move |(leaf, it)| {
                Some((((at << BRANCH_BITS) | leaf) << LEAF_BITS, it.as_ref()?))
            })
        });
        let changed = leaves.filter(|&(first, leaf)| {
            let before = earlier.leaf(first);
            before.is_none_or(|before| !Arc::ptr_eq(before, leaf))
        });
        changed.flat_map(|(first, leaf)| indexed(first, leaf))
    }
}

fn indexed<T>(first: usize, leaf: &Leaf<T>) -> impl Iterator<Item = (usize, &T)> {
    let present = leaf.present;
    let indices = (0..LEAF).filter(move |bit| present >> bit & 1 == 1);
    indices.map(move |bit| first + bit).zip(&leaf.values)
}

impl<T: Clone> SparseVec<T> {
    /// Appends a value and returns its index.
    pub fn push(&mut self, value: T) -> usize {
        let index = self.end;
        let branch = index >> (LEAF_BITS + BRANCH_BITS);
        if branch == self.branches.len() {
            self.branches.push(Arc::default());
        }
        let branch = Arc::make_mut(&mut self.branches[branch]);
        let at = index >> LEAF_BITS & (BRANCH - 1);
        // A leaf whose values were all removed is not there, and neither are those before it in an empty branch.
        if at >= branch.len() {
            branch.resize_with(at + 1, || None);
        }
        let leaf = branch[at].get_or_insert_with(|| {
            // Most processes have a few of everything.
            let capacity = if index == 0 { 4 } else { LEAF - index % LEAF };
            Arc::new(Leaf {
                present: 0,
                values: Vec::with_capacity(capacity),
            })
        });
        let leaf = Arc::make_mut(leaf);
        leaf.present |= 1 << (index % LEAF);
        leaf.values.push(value);
        self.end += 1;
        self.count += 1;
        index
    }

    /// Returns the value at an index to be changed, unless it was removed.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let branch = self.branches.get_mut(index >> (LEAF_BITS + BRANCH_BITS))?;
        let branch = Arc::make_mut(branch);
        let leaf = branch
            .get_mut(index >> LEAF_BITS & (BRANCH - 1))?
            .as_mut()?;
        let position = leaf.position(index)?;
        Arc::make_mut(leaf).values.get_mut(position)
    }

    /// Removes and returns the value at an index.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        let branch = self.branches.get_mut(index >> (LEAF_BITS + BRANCH_BITS))?;
        let at = index >> LEAF_BITS & (BRANCH - 1);
        let position = branch.get(at)?.as_ref()?.position(index)?;
        let branch = Arc::make_mut(branch);
        let leaf = Arc::make_mut(branch.get_mut(at)?.as_mut()?);
        leaf.present &= !(1 << (index % LEAF));
        let value = leaf.values.remove(position);
        self.count -= 1;
        if leaf.values.is_empty() {
            branch[at] = None;
            if branch.iter().all(Option::is_none) {
                *branch = Branch::new();
            }
        }
        Some(value)
    }

    /// Removes the values for which `keep` is false; returns how many.
    pub fn retain(&mut self, keep: impl Fn(usize, &T) -> bool) -> usize {
        let gone = self.indexed().filter(|&(index, value)| !keep(index, value));
        let gone: Vec<usize> = gone.map(|(index, _)| index).collect();
        for &index in &gone {
            self.remove(index);
        }
        gone.len()
    }
}

impl<T> FromIterator<T> for SparseVec<T>
where
    T: Clone,
{
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut all = SparseVec::default();
        for value in values {
            all.push(value);
        }
        all
    }
}

impl<T> Index<usize> for SparseVec<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.get(index).expect("the value was not removed")
    }
}

impl<T: Clone> IndexMut<usize> for SparseVec<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("the value was not removed")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_map_whose_clones_stay(
            changes in prop::collection::vec((0_u8..4, 0_usize..400), 0..600),
        ) {
            let (mut sparse, mut model) = (SparseVec::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (step, &(change, at)) in changes.iter().enumerate() {
                match change {
                    0 | 1 => for _ in 0..at % 50 {
                        model.insert(sparse.push(step), step);
                    },
                    2 => for index in at..at + 70 {
                        prop_assert_eq!(sparse.remove(index), model.remove(&index));
                    },
                    _ => if let (Some(value), Some(expected)) = (sparse.get_mut(at), model.get_mut(&at)) {
                        (*value, *expected) = (step, step);
                    },
                }
                if step % 100 == 50 {
                    copies.push((sparse.clone(), model.clone()));
                }
            }
            copies.push((sparse, model));
            for (sparse, model) in &copies {
                prop_assert!(sparse.indexed().map(|(i, v)| (i, *v)).eq(model.iter().map(|(i, v)| (*i, *v))));
                prop_assert!(sparse.iter().eq(model.values()));
                prop_assert_eq!(sparse.count(), model.len());
            }
            for pair in copies.windows(2) {
                let [(old, before), (new, after)] = pair else { unreachable!() };
                let changes: BTreeMap<_, _> = new.changes_since(old).map(|(i, v)| (i, *v)).collect();
                for (index, value) in after {
                    if before.get(index) != Some(value) {
                        prop_assert_eq!(changes.get(index), Some(value));
                    }
                }
            }
        }
    }

    #[test]
    fn removed_values_take_no_memory() {
        let mut sparse = SparseVec::default();
        for value in 0..200_000 {
            let index = sparse.push(value);
            if index >= 10 {
                sparse.remove(index - 5);
            }
        }
        assert_eq!(sparse.count(), 10);
        assert_eq!(sparse.leaves().count(), 2);
        assert!(
            sparse
                .branches
                .iter()
                .filter(|branch| branch.is_empty())
                .count()
                >= 5
        );
        assert_eq!((sparse[3], sparse.get(100_000)), (3, None));
    }
}
