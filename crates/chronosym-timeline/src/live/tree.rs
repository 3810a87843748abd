//! A sorted set whose copies share what they have in common: a B+ tree, copied along the path of a change if a snapshot holds it.

use std::sync::Arc;

/// Where an entry stands: the first address of its piece, the instant of its evidence, its raw id.
pub(crate) type Key = (u64, u64, u32);

/// One occupant in one piece of the address space; with id 0 the piece itself, and `to` the end of whatever was forgotten there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) from_known: bool,
    pub(crate) to_known: bool,
}

/// Entries in a leaf and children in a node, at most.
const FULL: usize = 48;

#[derive(Clone)]
enum Node {
    Leaf(Vec<Entry>),
    /// The least key of each child, and the child.
    Inner(Vec<(Key, Arc<Node>)>),
}

/// Cheap to clone: clones share their nodes until one of them changes.
#[derive(Clone)]
pub(crate) struct Tree {
    root: Arc<Node>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self {
            root: Arc::new(Node::Leaf(Vec::new())),
        }
    }

    /// The last entry at or before `key`.
    pub(crate) fn at_or_before(&self, key: Key) -> Option<&Entry> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    return entries
                        .partition_point(|e| e.key <= key)
                        .checked_sub(1)
                        .map(|i| &entries[i]);
                }
                // A child begins with its least key, so whichever begins at or before `key` has an entry there.
                Node::Inner(children) => {
                    node = &children[children
                        .partition_point(|(k, _)| *k <= key)
                        .checked_sub(1)?]
                    .1;
                }
            }
        }
    }

    /// The first entry after `key`.
    pub(crate) fn after(&self, key: Key) -> Option<&Entry> {
        let mut node = &*self.root;
        let mut next: Option<&Node> = None;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let found = entries.get(entries.partition_point(|e| e.key <= key));
                    return found.or_else(|| next.and_then(first));
                }
                Node::Inner(children) => {
                    let child = children
                        .partition_point(|(k, _)| *k <= key)
                        .saturating_sub(1);
                    next = children.get(child + 1).map(|(_, n)| &**n).or(next);
                    node = &children[child].1;
                }
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        memory_bytes(&self.root)
    }

    /// Adds an entry, in place of one with the same key.
    pub(crate) fn insert(&mut self, entry: Entry) {
        if let Some(split) = insert(Arc::make_mut(&mut self.root), entry) {
            let least = least(&self.root);
            let old = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
            self.root = Arc::new(Node::Inner(vec![(least, old), split]));
        }
    }

    pub(crate) fn remove(&mut self, key: Key) {
        remove(Arc::make_mut(&mut self.root), key);
        while let Node::Inner(children) = &*self.root
            && children.len() < 2
        {
            let only = children.first().map(|(_, child)| child.clone());
            self.root = only.unwrap_or_else(|| Arc::new(Node::Leaf(Vec::new())));
        }
    }
}

fn least(node: &Node) -> Key {
    match node {
        Node::Leaf(entries) => entries.first().map_or((0, 0, 0), |e| e.key),
        Node::Inner(children) => children[0].0,
    }
}

fn memory_bytes(node: &Node) -> usize {
    size_of::<Node>()
        + match node {
            Node::Leaf(entries) => entries.capacity() * size_of::<Entry>(),
            Node::Inner(children) => {
                children.capacity() * size_of::<(Key, Arc<Node>)>()
                    + children
                        .iter()
                        .map(|(_, child)| memory_bytes(child))
                        .sum::<usize>()
            }
        }
}

fn first(mut node: &Node) -> Option<&Entry> {
    loop {
        match node {
            Node::Leaf(entries) => return entries.first(),
            Node::Inner(children) => node = &children[0].1,
        }
    }
}

/// Inserts below `node`; if that overflows, gives the upper half away.
fn insert(node: &mut Node, entry: Entry) -> Option<(Key, Arc<Node>)> {
    match node {
        Node::Leaf(entries) => {
            let at = entries.partition_point(|e| e.key < entry.key);
            match entries.get_mut(at) {
                Some(same) if same.key == entry.key => *same = entry,
                _ => entries.insert(at, entry),
            }
            let upper = split(entries)?;
            Some((upper[0].key, Arc::new(Node::Leaf(upper))))
        }
        Node::Inner(children) => {
            let child = children
                .partition_point(|(k, _)| *k <= entry.key)
                .saturating_sub(1);
            let (key, below) = &mut children[child];
            *key = (*key).min(entry.key);
            if let Some(split) = insert(Arc::make_mut(below), entry) {
                children.insert(child + 1, split);
            }
            let upper = split(children)?;
            Some((upper[0].0, Arc::new(Node::Inner(upper))))
        }
    }
}

fn split<T>(items: &mut Vec<T>) -> Option<Vec<T>> {
    (items.len() > FULL).then(|| items.split_off(items.len() / 2))
}

/// Removes below `node`. A child that becomes empty goes; small ones are left as they are.
fn remove(node: &mut Node, key: Key) {
    match node {
        Node::Leaf(entries) => {
            if let Ok(at) = entries.binary_search_by_key(&key, |e| e.key) {
                entries.remove(at);
            }
        }
        Node::Inner(children) => {
            let Some(child) = children.partition_point(|(k, _)| *k <= key).checked_sub(1) else {
                return;
            };
            let below = Arc::make_mut(&mut children[child].1);
            remove(below, key);
            let empty = match below {
                Node::Leaf(entries) => entries.is_empty(),
                Node::Inner(children) => children.is_empty(),
            };
            if empty {
                children.remove(child);
            } else {
                children[child].0 = least(&children[child].1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn entry(key: u64, to: u64) -> Entry {
        Entry {
            key: (key, 0, 0),
            from: 0,
            to,
            from_known: false,
            to_known: false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn is_a_sorted_map_and_its_clones_stay(
            changes in prop::collection::vec((0_u64..3000, prop::bool::weighted(0.6)), 0..8000)
        ) {
            let (mut tree, mut model) = (Tree::new(), BTreeMap::new());
            let (mut old_tree, mut old_model) = (tree.clone(), model.clone());
            for (i, &(key, adds)) in changes.iter().enumerate() {
                if adds {
                    tree.insert(entry(key, i as u64));
                    model.insert(key, i as u64);
                } else {
                    tree.remove((key, 0, 0));
                    model.remove(&key);
                }
                if i % 1000 == 500 {
                    (old_tree, old_model) = (tree.clone(), model.clone());
                }
            }
            for (tree, model) in [(&tree, &model), (&old_tree, &old_model)] {
                for key in 0..3001 {
                    let before = tree.at_or_before((key, 0, 0)).map(|e| (e.key.0, e.to));
                    prop_assert_eq!(before, model.range(..=key).next_back().map(|(k, v)| (*k, *v)));
                    let after = tree.after((key, 0, 0)).map(|e| (e.key.0, e.to));
                    prop_assert_eq!(after, model.range(key + 1..).next().map(|(k, v)| (*k, *v)));
                }
            }
        }
    }
}
