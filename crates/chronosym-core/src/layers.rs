//! A multimap in layers that snapshots share.

use std::hash::Hash;
use std::sync::Arc;

use chronosym_types::hash::HashMap;
use smallvec::SmallVec;

/// Nearly every key has one value.
type Values<V> = SmallVec<[V; 1]>;
type Layer<K, V> = HashMap<K, Values<V>>;

/// Layers are not merged beyond this number of keys: a large merge would delay the writer.
const LARGEST: usize = 1 << 16;

/// Number of values of a key in a layer that may be out of order.
const NEWEST: usize = 8;

/// Key → values. Values added after a snapshot go to a new layer, and layers of similar size are
/// merged: there are few layers, and each value moves a few times only.
#[derive(Clone, Debug)]
pub(crate) struct Layers<K, V> {
    /// Oldest first, each more than twice as large as the next, or of maximum size.
    old: Vec<Arc<Layer<K, V>>>,
    new: Layer<K, V>,
}

impl<K, V> Default for Layers<K, V> {
    fn default() -> Self {
        Layers {
            old: Vec::new(),
            new: Layer::default(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Layers<K, V> {
    pub(crate) fn push(&mut self, key: K, value: V) {
        self.new.entry(key).or_default().push(value);
    }

    /// Number of keys; one in several layers counts in each.
    pub(crate) fn len(&self) -> usize {
        self.old.iter().map(|layer| layer.len()).sum::<usize>() + self.new.len()
    }

    /// Returns the values of a key, oldest first.
    pub(crate) fn of(&self, key: K) -> impl DoubleEndedIterator<Item = V> + '_ {
        let layers = self.old.iter().map(AsRef::as_ref).chain([&self.new]);
        layers
            .filter_map(move |layer| layer.get(&key))
            .flat_map(|values| values.as_slice())
            .copied()
    }

    /// Returns the last value of a key for which `is` is true. Values for which it is true come
    /// before those for which it is not, except among the newest of a layer: the older ones are
    /// searched in logarithmic time.
    pub(crate) fn last_where(&self, key: K, is: impl Fn(V) -> bool) -> Option<V> {
        let layers = self.old.iter().map(AsRef::as_ref).chain([&self.new]).rev();
        let mut values = layers.filter_map(|layer| layer.get(&key));
        values.find_map(|values| {
            let (older, newest) = values.split_at(values.len().saturating_sub(NEWEST));
            let newest = newest.iter().rev().find(|&&value| is(value));
            let older = || older[..older.partition_point(|&value| is(value))].last();
            newest.or_else(older).copied()
        })
    }

    /// Returns a copy that later changes do not affect.
    pub(crate) fn snapshot(&mut self) -> Self {
        if !self.new.is_empty() {
            self.old.push(Arc::new(std::mem::take(&mut self.new)));
        }
        self.join_last();
        Layers {
            old: self.old.clone(),
            new: Layer::default(),
        }
    }

    /// Merges the last layers while their sizes are similar.
    fn join_last(&mut self) {
        while let [.., larger, last] = &self.old[..]
            && larger.len() <= 2 * last.len()
            && larger.len() + last.len() <= LARGEST
        {
            let last = self.old.pop().map(Arc::unwrap_or_clone);
            let larger = self.old.pop().map(Arc::unwrap_or_clone);
            let (mut joined, last) = (larger.unwrap_or_default(), last.unwrap_or_default());
            for (key, values) in last {
                joined.entry(key).or_default().extend(values);
            }
            self.old.push(Arc::new(joined));
        }
    }

    /// Returns all values, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = V> {
        let layers = self.old.iter().map(AsRef::as_ref).chain([&self.new]);
        let values = layers.flat_map(HashMap::values);
        values.flat_map(|values| values.as_slice()).copied()
    }

    /// Drops the values for which `keep` is false, in time linear in the number of values. Layers
    /// that lose none stay shared.
    pub(crate) fn retain(&mut self, keep: impl Fn(K, V) -> bool) {
        let stays = |(&key, values): (&K, &Values<V>)| values.iter().all(|&value| keep(key, value));
        for mut layer in std::mem::take(&mut self.old) {
            if !layer.iter().all(stays) {
                retain(Arc::make_mut(&mut layer), &keep);
            }
            if !layer.is_empty() {
                self.old.push(layer);
                self.join_last();
            }
        }
        retain(&mut self.new, &keep);
    }
}

fn retain<K: Copy + Eq + Hash, V: Copy>(layer: &mut Layer<K, V>, keep: &impl Fn(K, V) -> bool) {
    layer.retain(|&key, values| {
        values.retain(|&mut value| keep(key, value));
        !values.is_empty()
    });
    layer.shrink_to(2 * layer.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::BodyIndex;

    #[test]
    fn values_stay_in_order_and_copies_as_they_were() {
        let mut methods = Layers::default();
        let mut copies = Vec::new();
        for body in 0..1000 {
            methods.push((0, u64::from(body % 7)), BodyIndex(body));
            if body % 10 == 9 {
                copies.push((body, methods.snapshot()));
                assert!(methods.old.len() <= 10, "{} layers", methods.old.len());
            }
        }
        let of = |methods: &Layers<(u16, u64), BodyIndex>, method| -> Vec<u32> {
            methods.of((0, method)).map(|body| body.0).collect()
        };
        for (last, copy) in &copies {
            for method in 0..7 {
                let all = (0..=*last).filter(|body| u64::from(body % 7) == method);
                assert_eq!(of(copy, method), all.collect::<Vec<u32>>());
            }
        }
        assert_eq!(methods.of((0, 3)).next_back(), Some(BodyIndex(997)));
        for last in [3, 10, 500, 997] {
            let found = methods.last_where((0, 3), |body| body.0 <= last);
            assert_eq!(found, Some(BodyIndex(last - (last - 3) % 7)), "{last}");
        }
        assert_eq!(methods.last_where((0, 3), |body| body.0 < 3), None);
        methods.retain(|_, body| body.0 >= 990 && body.0 % 7 != 3);
        assert_eq!(of(&methods, 2), [996]);
        assert!(of(&methods, 3).is_empty());
        assert_eq!(of(&copies[0].1, 3), [3]);
    }
}
