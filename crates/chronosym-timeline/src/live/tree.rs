//! A persistent B+ tree: a change copies the nodes on its path that a snapshot shares.

use std::sync::Arc;

use super::keys::{Addresses, FULL, Keys};

/// A key of a tree, which may have fields besides those that order it.
pub(crate) trait Key: Copy {
    type Order: Ord;
    /// The keys of a node.
    type Keys: Keys<Self>;

    fn order(&self) -> Self::Order;
}

impl Key for u64 {
    type Order = u64;
    type Keys = Addresses;

    fn order(&self) -> u64 {
        *self
    }
}

/// Keys are apart from values: a search reads few cache lines.
#[derive(Clone)]
#[repr(C)] // The lines that a search reads are adjacent.
struct Node<K: Key, V> {
    below: Below<K, V>,
    keys: K::Keys,
}

#[derive(Clone)]
enum Below<K: Key, V> {
    Values(Vec<V>),
    /// The key of a child is its first one.
    Children(Vec<Arc<Node<K, V>>>),
}

/// A key and its value.
pub(crate) type Entry<'t, K, V> = (&'t K, &'t V);

/// The entries on both sides of a position.
pub(crate) type Divided<'t, K, V> = (Option<Entry<'t, K, V>>, Option<Entry<'t, K, V>>);

/// The tree. Clones share nodes until one of them changes.
#[derive(Clone)]
pub(crate) struct Tree<K: Key, V> {
    root: Arc<Node<K, V>>,
}

impl<K: Key, V> Tree<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            root: Arc::new(Node {
                keys: K::Keys::default(),
                below: Below::Values(Vec::new()),
            }),
        }
    }

    /// Returns the last entry for which `before` holds and the first for which it does not;
    /// `before` must hold for all keys up to one.
    pub(crate) fn divide(&self, before: impl Fn(&K) -> bool) -> Divided<'_, K, V> {
        let (mut node, mut next) = (&*self.root, None);
        loop {
            let at = node.keys.rank(&before);
            match &node.below {
                Below::Values(_) => {
                    let last = at.checked_sub(1).and_then(|last| node.entry(last));
                    return (last, node.entry(at).or_else(|| next.and_then(Node::first)));
                }
                Below::Children(children) => {
                    next = children.get(at).map(|child| &**child).or(next);
                    let Some(last) = at.checked_sub(1) else {
                        return (None, next.and_then(Node::first));
                    };
                    node = &children[last];
                }
            }
        }
    }

    /// Returns the last entry for which `before` holds, as [`Self::divide`].
    #[inline]
    pub(crate) fn last(&self, before: impl Fn(&K) -> bool) -> Option<Entry<'_, K, V>> {
        let mut node = &*self.root;
        loop {
            let last = node.keys.rank(&before).checked_sub(1)?;
            match &node.below {
                Below::Values(values) => return Some((&node.keys[last], &values[last])),
                Below::Children(children) => node = &children[last],
            }
        }
    }

    /// Returns the first entry after a key.
    pub(crate) fn after(&self, order: &K::Order) -> Option<Entry<'_, K, V>> {
        self.divide(|key| key.order() <= *order).1
    }

    /// Returns the bytes of the nodes, and of values beyond their own size.
    pub(crate) fn memory_bytes(&self, of_value: &impl Fn(&V) -> usize) -> usize {
        self.root.memory_bytes(of_value)
    }
}

impl<K: Key, V: Clone> Tree<K, V> {
    /// Returns the value of a key to be changed.
    pub(crate) fn get_mut(&mut self, order: &K::Order) -> Option<&mut V> {
        let mut node = Arc::make_mut(&mut self.root);
        loop {
            let last = node.keys.rank(|key| key.order() <= *order);
            let last = last.checked_sub(1)?;
            match &mut node.below {
                Below::Values(values) => {
                    return (node.keys[last].order() == *order).then(|| &mut values[last]);
                }
                Below::Children(children) => node = Arc::make_mut(&mut children[last]),
            }
        }
    }

    /// Inserts an entry; replaces one with a key of the same order.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if let Some((upper_key, upper)) = Arc::make_mut(&mut self.root).insert(key, value) {
            let mut keys = K::Keys::default();
            keys.insert(0, self.root.keys[0]);
            keys.insert(1, upper_key);
            self.root = Arc::new(Node {
                keys,
                below: Below::Children(vec![self.root.clone(), upper]),
            });
        }
    }

    pub(crate) fn remove(&mut self, order: &K::Order) {
        Arc::make_mut(&mut self.root).remove(order);
        while let Below::Children(children) = &self.root.below
            && children.len() < 2
        {
            self.root = children
                .first()
                .cloned()
                .unwrap_or_else(|| Tree::new().root);
        }
    }
}

impl<K: Key, V: Clone> FromIterator<(K, V)> for Tree<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut tree = Self::new();
        for (key, value) in entries {
            tree.insert(key, value);
        }
        tree
    }
}

impl<K: Key, V> Node<K, V> {
    fn entry(&self, at: usize) -> Option<Entry<'_, K, V>> {
        match &self.below {
            Below::Values(values) => Some((self.keys.get(at)?, &values[at])),
            Below::Children(_) => None,
        }
    }

    fn first(&self) -> Option<Entry<'_, K, V>> {
        match &self.below {
            Below::Values(_) => self.entry(0),
            Below::Children(children) => children.first()?.first(),
        }
    }

    fn memory_bytes(&self, of_value: &impl Fn(&V) -> usize) -> usize {
        let own = size_of::<Self>() + self.keys.memory_bytes();
        own + match &self.below {
            Below::Values(values) => {
                values.capacity() * size_of::<V>() + values.iter().map(of_value).sum::<usize>()
            }
            Below::Children(children) => {
                let below = children.iter().map(|child| child.memory_bytes(of_value));
                children.capacity() * size_of::<Arc<Self>>() + below.sum::<usize>()
            }
        }
    }
}

impl<K: Key, V: Clone> Node<K, V> {
    /// Inserts below; if that overflows, splits off and returns the upper part.
    fn insert(&mut self, key: K, value: V) -> Option<(K, Arc<Self>)> {
        let Node { keys, below } = self;
        let (upper_keys, below) = match below {
            Below::Values(values) => {
                let at = keys.rank(|it| it.order() < key.order());
                if keys.get(at).is_some_and(|it| it.order() == key.order()) {
                    (keys[at], values[at]) = (key, value);
                    return None;
                }
                let (keys, values) = add::<K, _>(keys, values, at, (key, value))?;
                (keys, Below::Values(values))
            }
            Below::Children(children) => {
                let at = keys.rank(|it| it.order() <= key.order());
                let at = at.saturating_sub(1);
                if key.order() <= keys[at].order() {
                    keys[at] = key;
                }
                let upper = Arc::make_mut(&mut children[at]).insert(key, value)?;
                let (keys, children) = add::<K, _>(keys, children, at + 1, upper)?;
                (keys, Below::Children(children))
            }
        };
        let upper = Node {
            keys: upper_keys,
            below,
        };
        Some((upper.keys[0], Arc::new(upper)))
    }

    /// Removes below. Drops a child that becomes empty, and merges two small ones.
    fn remove(&mut self, order: &K::Order) {
        let Node { keys, below } = self;
        let at = keys.rank(|key| key.order() <= *order);
        let Some(at) = at.checked_sub(1) else {
            return;
        };
        match below {
            Below::Values(values) => {
                if keys[at].order() == *order {
                    keys.remove(at);
                    values.remove(at);
                }
            }
            Below::Children(children) => {
                let child = Arc::make_mut(&mut children[at]);
                child.remove(order);
                let Some(&first) = child.keys.first() else {
                    keys.remove(at);
                    children.remove(at);
                    return;
                };
                keys[at] = first;
                let at = at.saturating_sub(1);
                if let Some([a, b]) = children.get(at..at + 2)
                    && a.keys.len() + b.keys.len() <= FULL / 2
                {
                    keys.remove(at + 1);
                    let upper = Arc::unwrap_or_clone(children.remove(at + 1));
                    Arc::make_mut(&mut children[at]).append(upper);
                }
            }
        }
    }

    /// Appends the contents of another node of the same level.
    fn append(&mut self, other: Self) {
        self.keys.append(&other.keys);
        match (&mut self.below, other.below) {
            (Below::Values(values), Below::Values(more)) => values.extend(more),
            (Below::Children(children), Below::Children(more)) => children.extend(more),
            _ => unreachable!("nodes of one level are of one kind"),
        }
    }
}

/// Adds an entry to a node at a position; if the node is full, splits off and returns its upper
/// part. A node stays full if keys come in ascending order.
fn add<K: Key, T>(
    keys: &mut K::Keys,
    items: &mut Vec<T>,
    at: usize,
    (key, item): (K, T),
) -> Option<(K::Keys, Vec<T>)> {
    if keys.len() < FULL {
        keys.insert(at, key);
        items.insert(at, item);
        return None;
    }
    let middle = if at == FULL { FULL } else { FULL / 2 };
    let mut upper = (keys.split_off(middle), items.split_off(middle));
    if at < middle {
        keys.insert(at, key);
        items.insert(at, item);
    } else {
        upper.0.insert(at - middle, key);
        upper.1.insert(at - middle, item);
    }
    Some(upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

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
                    tree.insert(key, i);
                    model.insert(key, i);
                } else {
                    // Runs of them, so that nodes become small.
                    for key in key..key + 4 {
                        tree.remove(&key);
                        model.remove(&key);
                    }
                }
                if let (Some(value), Some(expected)) = (tree.get_mut(&(key / 2)), model.get_mut(&(key / 2))) {
                    (*value, *expected) = (i, i);
                }
                if i % 1000 == 500 {
                    (old_tree, old_model) = (tree.clone(), model.clone());
                }
            }
            for (tree, model) in [(&tree, &model), (&old_tree, &old_model)] {
                prop_assert!(tree.memory_bytes(&|_| 0) <= 4096 + model.len() * 10 * size_of::<(u64, usize)>());
                for key in 0..3001 {
                    let before = tree.last(|it| *it <= key);
                    prop_assert_eq!(before, model.range(..=key).next_back());
                    let after = tree.after(&key);
                    prop_assert_eq!(after, model.range(key + 1..).next());
                    prop_assert_eq!(tree.divide(|it| *it <= key), (before, after));
                }
            }
        }
    }

    #[test]
    fn ascending_keys_fill_nodes() {
        let mut tree = Tree::new();
        (0..10_000_u64).for_each(|key| tree.insert(key, key));
        let bytes = tree.memory_bytes(&|_| 0);
        assert!(bytes < 10_000 * 19, "{bytes}");
    }
}
