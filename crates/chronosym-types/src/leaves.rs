//! The tree under [`SparseVec`](crate::SparseVec): numbered leaves that clones share.

use std::sync::Arc;

const BRANCH_BITS: usize = 8;
const BRANCH: usize = 1 << BRANCH_BITS;

type Branch<L> = Vec<Option<Arc<L>>>;

/// Leaves with numbers. A clone takes constant time for each 256 numbers; a change after it copies
/// one leaf and one branch. Memory follows the leaves, but for 8 bytes for each 256 numbers.
#[derive(Clone, Debug)]
pub struct Leaves<L> {
    branches: Vec<Arc<Branch<L>>>,
}

impl<L> Default for Leaves<L> {
    fn default() -> Self {
        let branches = Vec::new();
        Leaves { branches }
    }
}

impl<L> Leaves<L> {
    /// Returns the leaf with a number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&Arc<L>> {
        let branch = self.branches.get(number >> BRANCH_BITS)?;
        branch.get(number & (BRANCH - 1))?.as_ref()
    }

    /// Returns all leaves with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Arc<L>)> {
        let branches = self.branches.iter().enumerate();
        branches.flat_map(|(at, branch)| numbered(at, branch))
    }

    /// Returns the leaves that an earlier clone does not share, with their numbers.
    pub fn changes_since<'a>(
        &'a self,
        earlier: &'a Self,
    ) -> impl Iterator<Item = (usize, &'a Arc<L>)> {
        let changed = self.branches.iter().enumerate().filter(|(at, branch)| {
            let before = earlier.branches.get(*at);
            before.is_none_or(|before| !Arc::ptr_eq(before, branch))
        });
        let leaves = changed.flat_map(|(at, branch)| numbered(at, branch));
        leaves.filter(|&(number, leaf)| {
            let before = earlier.get(number);
            before.is_none_or(|before| !Arc::ptr_eq(before, leaf))
        })
    }

    /// Removes a leaf.
    pub fn remove(&mut self, number: usize) {
        let Some(branch) = self.branches.get_mut(number >> BRANCH_BITS) else {
            return;
        };
        let branch = Arc::make_mut(branch);
        if let Some(leaf) = branch.get_mut(number & (BRANCH - 1)) {
            *leaf = None;
        }
        if branch.iter().all(Option::is_none) {
            *branch = Branch::new();
        }
    }
}

fn numbered<L>(at: usize, branch: &Branch<L>) -> impl Iterator<Item = (usize, &Arc<L>)> {
    let leaves = (at << BRANCH_BITS..).zip(branch);
    leaves.filter_map(|(number, leaf)| Some((number, leaf.as_ref()?)))
}

impl<L: Clone> Leaves<L> {
    /// Returns the leaf with a number to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut L> {
        let branch = Arc::make_mut(self.branches.get_mut(number >> BRANCH_BITS)?);
        let leaf = branch.get_mut(number & (BRANCH - 1))?.as_mut()?;
        Some(Arc::make_mut(leaf))
    }

    /// Returns the leaf with a number to be changed; adds it if there is none.
    #[inline]
    pub fn get_or_insert_with(&mut self, number: usize, new: impl FnOnce() -> L) -> &mut L {
        let at = number >> BRANCH_BITS;
        if at >= self.branches.len() {
            self.branches.resize_with(at + 1, Arc::default);
        }
        let branch = Arc::make_mut(&mut self.branches[at]);
        let at = number & (BRANCH - 1);
        if at >= branch.len() {
            branch.resize_with(at + 1, || None);
        }
        Arc::make_mut(branch[at].get_or_insert_with(|| Arc::new(new())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_leaves_take_no_memory() {
        let mut leaves = Leaves::default();
        for number in 0..4000 {
            *leaves.get_or_insert_with(number, || 0) = number;
            leaves.remove(number.wrapping_sub(2));
        }
        let numbers = leaves.iter().map(|(number, leaf)| (number, **leaf));
        assert_eq!(numbers.collect::<Vec<_>>(), [(3998, 3998), (3999, 3999)]);
        let empty = leaves.branches.iter().filter(|branch| branch.is_empty());
        assert_eq!(empty.count(), 15);
    }
}
