//! An index of trees whose nodes are numbered as they are added.

use std::hash::Hash;

use crate::hash::HashMap;

/// Finds nodes of trees by their properties, among which their parent is.
///
/// Nodes are numbered from 0, a parent before its children. Most are added directly after their
/// parent, where they are found without the index: it has only the others.
///
/// # Examples
///
/// ```
/// use chronosym_types::TreeIndex;
///
/// // (name, parent)
/// let mut nodes: Vec<(char, u32)> = Vec::new();
/// let mut index = TreeIndex::default();
/// let mut add = |name, parent| {
///     let node = (name, parent);
///     index.find(&node, parent, |at| nodes.get(at as usize).copied()).unwrap_or_else(|| {
///         index.insert(node, parent, nodes.len() as u32);
///         nodes.push(node);
///         nodes.len() as u32 - 1
///     })
/// };
/// let root = add('a', u32::MAX);
/// assert_eq!([add('b', root), add('c', root), add('b', root)], [1, 2, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct TreeIndex<N>(HashMap<N, u32>);

impl<N> Default for TreeIndex<N> {
    fn default() -> Self {
        TreeIndex(HashMap::default())
    }
}

impl<N> TreeIndex<N> {
    /// Returns the number of nodes that the index has: those that do not directly follow their
    /// parents.
    pub fn indexed(&self) -> usize {
        self.0.len()
    }
}

impl<N: Eq + Hash> TreeIndex<N> {
    /// Returns the number of a node; `None` if it has not been added. `parent` is the number of its
    /// parent, `u32::MAX` for a root; `get` returns the node of a number, `None` beyond the last.
    #[inline]
    pub fn find(&self, node: &N, parent: u32, get: impl FnOnce(u32) -> Option<N>) -> Option<u32> {
        let after = parent.wrapping_add(1);
        // The last node has no children yet.
        match get(after)? == *node {
            true => Some(after),
            false => self.0.get(node).copied(),
        }
    }

    /// Adds a node that was not found, with the number after the last one's.
    #[inline]
    pub fn insert(&mut self, node: N, parent: u32, number: u32) {
        if number != parent.wrapping_add(1) {
            self.0.insert(node, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nodes_are_found_as_in_a_map_of_all(adds in prop::collection::vec((0..4u8, any::<prop::sample::Index>()), 0..200)) {
            let mut nodes = Vec::new();
            let mut index = TreeIndex::default();
            let mut naive = std::collections::HashMap::new();
            for (name, parent) in adds {
                let parent = match parent.index(nodes.len() + 1) {
                    0 => u32::MAX,
                    number => number as u32 - 1,
                };
                let node = (name, parent);
                let found = index.find(&node, parent, |at| nodes.get(at as usize).copied());
                prop_assert_eq!(found, naive.get(&node).copied());
                if found.is_none() {
                    let number = nodes.len() as u32;
                    index.insert(node, parent, number);
                    naive.insert(node, number);
                    nodes.push(node);
                }
            }
        }
    }
}
