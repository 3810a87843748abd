//! A persistent B+ tree: a change copies the nodes on its path that a snapshot shares.

use std::sync::Arc;

/// Orders entries: first address of the segment, instant of the evidence, raw id.
pub(crate) type Key = (u64, u64, u32);

/// An occupant of a segment of the address space. The entry with id 0 is that of the segment
/// itself; its `to` is the latest end of forgotten occupants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentEntry {
    /// First address of the segment.
    pub(crate) start: u64,
    pub(crate) instant: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) id: u32,
    pub(crate) from_known: bool,
    pub(crate) to_known: bool,
}

impl SegmentEntry {
    pub(crate) fn key(&self) -> Key {
        (self.start, self.instant, self.id)
    }
}

/// Largest number of entries of a leaf and of children of a node.
const FULL: usize = 48;

#[derive(Clone)]
enum Node {
    Leaf(Vec<SegmentEntry>),
    /// The first entry of each child, and the child.
    Inner(Vec<(SegmentEntry, Arc<Node>)>),
}

/// The tree. Clones share nodes until one of them changes.
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

    /// Returns the last entry for which `before` holds and the first for which it does not;
    /// `before` must hold for all entries up to one.
    pub(crate) fn divide(
        &self,
        before: impl Fn(&SegmentEntry) -> bool,
    ) -> (Option<&SegmentEntry>, Option<&SegmentEntry>) {
        let (mut node, mut next) = (&*self.root, None);
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.partition_point(&before);
                    let last = at.checked_sub(1).map(|last| &entries[last]);
                    return (last, entries.get(at).or(next));
                }
                Node::Inner(children) => {
                    let at = children.partition_point(|(first, _)| before(first));
                    next = children.get(at).map(|(first, _)| first).or(next);
                    let Some(last) = at.checked_sub(1) else {
                        return (None, next);
                    };
                    node = &children[last].1;
                }
            }
        }
    }

    /// Returns the last entry at or before `key`.
    pub(crate) fn at_or_before(&self, key: Key) -> Option<&SegmentEntry> {
        self.divide(|e| e.key() <= key).0
    }

    /// Returns the first entry after `key`.
    pub(crate) fn after(&self, key: Key) -> Option<&SegmentEntry> {
        self.divide(|e| e.key() <= key).1
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        memory_bytes(&self.root)
    }

    /// Inserts an entry; replaces one with the same key.
    pub(crate) fn insert(&mut self, entry: SegmentEntry) {
        if let Some(split) = insert(Arc::make_mut(&mut self.root), entry) {
            let old = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Vec::new())));
            let whole = first(&old).into_iter().map(|first| (first, old.clone()));
            self.root = Arc::new(Node::Inner(whole.chain([split]).collect()));
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

fn first(node: &Node) -> Option<SegmentEntry> {
    match node {
        Node::Leaf(entries) => entries.first().copied(),
        Node::Inner(children) => children.first().map(|(first, _)| *first),
    }
}

fn len(node: &Node) -> usize {
    match node {
        Node::Leaf(entries) => entries.len(),
        Node::Inner(children) => children.len(),
    }
}

fn memory_bytes(node: &Node) -> usize {
    size_of::<Node>()
        + match node {
            Node::Leaf(entries) => entries.capacity() * size_of::<SegmentEntry>(),
            Node::Inner(children) => {
                children.capacity() * size_of::<(SegmentEntry, Arc<Node>)>()
                    + children
                        .iter()
                        .map(|(_, child)| memory_bytes(child))
                        .sum::<usize>()
            }
        }
}

/// Inserts below `node`; if that overflows, splits off and returns its upper half.
fn insert(node: &mut Node, entry: SegmentEntry) -> Option<(SegmentEntry, Arc<Node>)> {
    match node {
        Node::Leaf(entries) => {
            let at = entries.partition_point(|e| e.key() < entry.key());
            match entries.get_mut(at) {
                Some(same) if same.key() == entry.key() => *same = entry,
                _ => entries.insert(at, entry),
            }
            let upper = split(entries)?;
            Some((upper[0], Arc::new(Node::Leaf(upper))))
        }
        Node::Inner(children) => {
            let at = children
                .partition_point(|(first, _)| first.key() <= entry.key())
                .saturating_sub(1);
            let (least, below) = &mut children[at];
            if entry.key() <= least.key() {
                *least = entry;
            }
            if let Some(split) = insert(Arc::make_mut(below), entry) {
                children.insert(at + 1, split);
            }
            let upper = split(children)?;
            Some((upper[0].0, Arc::new(Node::Inner(upper))))
        }
    }
}

fn split<T>(items: &mut Vec<T>) -> Option<Vec<T>> {
    (items.len() > FULL).then(|| items.split_off(items.len() / 2))
}

/// Removes below `node`. Drops a child that becomes empty, and merges two small ones.
fn remove(node: &mut Node, key: Key) {
    match node {
        Node::Leaf(entries) => {
            if let Ok(at) = entries.binary_search_by_key(&key, SegmentEntry::key) {
                entries.remove(at);
            }
        }
        Node::Inner(children) => {
            let at = children.partition_point(|(first, _)| first.key() <= key);
            let Some(at) = at.checked_sub(1) else {
                return;
            };
            let (least, below) = &mut children[at];
            remove(Arc::make_mut(below), key);
            match first(below) {
                Some(first) => *least = first,
                None => {
                    children.remove(at);
                    return;
                }
            }
            let at = at.saturating_sub(1);
            if let Some([(_, a), (_, b)]) = children.get(at..at + 2)
                && len(a) + len(b) <= FULL / 2
            {
                let (_, b) = children.remove(at + 1);
                append(Arc::make_mut(&mut children[at].1), Arc::unwrap_or_clone(b));
            }
        }
    }
}

/// Appends the contents of a node to those of another of the same level.
fn append(node: &mut Node, other: Node) {
    match (node, other) {
        (Node::Leaf(entries), Node::Leaf(more)) => entries.extend(more),
        (Node::Inner(children), Node::Inner(more)) => children.extend(more),
        _ => unreachable!("nodes of one level are of one kind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn entry(key: u64, to: u64) -> SegmentEntry {
        SegmentEntry {
            start: key,
            to,
            ..SegmentEntry::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn is_a_sorted_map_and_its_clones_stay(
            changes in prop::collection::vec((0_u64..3000, prop::bool::weighted(0.7)), 0..8000)
        ) {
            let (mut tree, mut model) = (Tree::new(), BTreeMap::new());
            let (mut old_tree, mut old_model) = (tree.clone(), model.clone());
            for (i, &(key, adds)) in changes.iter().enumerate() {
                if adds {
                    tree.insert(entry(key, i as u64));
                    model.insert(key, i as u64);
                } else {
                    // Runs of them, so that nodes become small.
                    for key in key..key + 4 {
                        tree.remove((key, 0, 0));
                        model.remove(&key);
                    }
                }
                if i % 1000 == 500 {
                    (old_tree, old_model) = (tree.clone(), model.clone());
                }
            }
            for (tree, model) in [(&tree, &model), (&old_tree, &old_model)] {
                prop_assert!(memory_bytes(&tree.root) <= 4096 + model.len() * 10 * size_of::<SegmentEntry>());
                for key in 0..3001 {
                    let before = tree.at_or_before((key, 0, 0)).map(|e| (e.start, e.to));
                    prop_assert_eq!(before, model.range(..=key).next_back().map(|(k, v)| (*k, *v)));
                    let after = tree.after((key, 0, 0)).map(|e| (e.start, e.to));
                    prop_assert_eq!(after, model.range(key + 1..).next().map(|(k, v)| (*k, *v)));
                }
            }
        }
    }
}
