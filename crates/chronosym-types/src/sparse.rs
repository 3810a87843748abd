//! A vector with holes, whose clones share memory.

use std::ops::{Index, IndexMut};

use crate::Leaves;

/// Values of a leaf.
const LEAF: usize = 64;

/// Up to 64 consecutive values; `values` has no holes.
#[derive(Clone, Debug)]
struct Leaf<T> {
    present: Bits,
    values: Vec<T>,
}

/// Which of 64 consecutive values are present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits(u64);

impl Bits {
    /// Returns the position of a value among those that are present; `at` is below 64.
    #[inline]
    pub fn position(self, at: usize) -> Option<usize> {
        let bit = 1 << at;
        if self.0 & bit == 0 {
            return None;
        }
        // Without a hole below the last value, no bits need to be counted.
        if self.0 & self.0.wrapping_add(1) == 0 {
            return Some(at);
        }
        Some((self.0 & (bit - 1)).count_ones() as usize)
    }

    /// Marks a value as present; `at` is below 64.
    pub fn insert(&mut self, at: usize) {
        self.0 |= 1 << at;
    }

    /// Marks a value as removed; `at` is below 64.
    pub fn remove(&mut self, at: usize) {
        self.0 &= !(1 << at);
    }

    /// Returns the present values, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |at| self.0 >> at & 1 == 1)
    }
}

/// A vector from which values can be removed, and whose indices are never used again.
/// Indexing panics where a value was removed.
///
/// A clone takes constant time for each 16,384 indices. A change after it copies one leaf and one
/// branch. Memory follows the number of values, but for 8 bytes for each 16,384 indices.
#[derive(Clone, Debug)]
pub struct SparseVec<T> {
    leaves: Leaves<Leaf<T>>,
    /// The next index.
    end: usize,
    count: usize,
}

impl<T> Default for SparseVec<T> {
    fn default() -> Self {
        SparseVec {
            leaves: Leaves::default(),
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

    /// Returns the value at an index, unless it was removed.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let leaf = self.leaves.get(index / LEAF)?;
        leaf.values.get(leaf.present.position(index % LEAF)?)
    }

    /// Returns whether there is a value at an index.
    pub fn contains(&self, index: usize) -> bool {
        self.get(index).is_some()
    }

    /// Returns all values in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.leaves.iter().flat_map(|(_, leaf)| &leaf.values)
    }

    /// Returns all values with their indices, in order.
    pub fn indexed(&self) -> impl Iterator<Item = (usize, &T)> {
        self.leaves.iter().flat_map(|(at, leaf)| indexed(at, leaf))
    }

    /// Returns the values that may differ from those of an earlier clone, with their indices: all
    /// in leaves that the two do not share.
    pub fn changes_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (usize, &'a T)> {
        let leaves = self.leaves.changes_since(&earlier.leaves);
        leaves.flat_map(|(at, leaf)| indexed(at, leaf))
    }
}

fn indexed<T>(at: usize, leaf: &Leaf<T>) -> impl Iterator<Item = (usize, &T)> {
    let indices = leaf.present.iter().map(move |index| at * LEAF + index);
    indices.zip(&leaf.values)
}

impl<T: Clone> SparseVec<T> {
    /// Appends a value and returns its index.
    pub fn push(&mut self, value: T) -> usize {
        let index = self.end;
        let leaf = self.leaves.get_or_insert_with(index / LEAF, || {
            // Most processes have a few of everything.
            let capacity = if index == 0 { 4 } else { LEAF - index % LEAF };
            Leaf {
                present: Bits::default(),
                values: Vec::with_capacity(capacity),
            }
        });
        leaf.present.insert(index % LEAF);
        leaf.values.push(value);
        self.end += 1;
        self.count += 1;
        index
    }

    /// Returns the value at an index to be changed, unless it was removed.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let leaf = self.leaves.get_mut(index / LEAF)?;
        leaf.values.get_mut(leaf.present.position(index % LEAF)?)
    }

    /// Removes and returns the value at an index.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        self.get(index)?;
        let leaf = self.leaves.get_mut(index / LEAF)?;
        let value = leaf.values.remove(leaf.present.position(index % LEAF)?);
        leaf.present.remove(index % LEAF);
        self.count -= 1;
        if leaf.values.is_empty() {
            self.leaves.remove(index / LEAF);
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

    #[inline]
    fn index(&self, index: usize) -> &T {
        self.get(index).expect("the value was not removed")
    }
}

impl<T: Clone> IndexMut<usize> for SparseVec<T> {
    #[inline]
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
    fn removed_values_use_no_memory() {
        let mut sparse = SparseVec::default();
        for value in 0..200_000 {
            let index = sparse.push(value);
            if index >= 10 {
                sparse.remove(index - 5);
            }
        }
        assert_eq!(sparse.count(), 10);
        assert_eq!(sparse.leaves.iter().count(), 2);
        assert_eq!((sparse[3], sparse.get(100_000)), (3, None));
    }
}
