//! The bodies of each method, in layers that copies share.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::body::BodyIndex;
use crate::few::Few;

/// A method of a runtime: its CLR instance and MethodID.
pub(crate) type MethodKey = (u16, u64);

type Layer = FxHashMap<MethodKey, Few<BodyIndex>>;

/// Layers are not joined to more methods than this: copying many at once would take a writer long.
const LARGEST: usize = 1 << 16;

/// Method → its bodies. What comes after a copy was made goes to a layer of its own, and layers of like size are joined: there
/// are few, and each body is moved a few times only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Methods {
    /// Oldest first, each more than twice as large as the next, or as large as may be.
    old: Vec<Arc<Layer>>,
    new: Layer,
}

impl Methods {
    pub(crate) fn push(&mut self, method: MethodKey, body: BodyIndex) {
        self.new.entry(method).or_default().push(body);
    }

    /// The bodies of a method, in the order in which they were told of.
    pub(crate) fn of(&self, method: MethodKey) -> impl DoubleEndedIterator<Item = BodyIndex> + '_ {
        let layers = self.old.iter().map(AsRef::as_ref).chain([&self.new]);
        layers
            .filter_map(move |layer| layer.get(&method))
            .flat_map(Few::as_slice)
            .copied()
    }

    /// A copy that later changes do not reach.
    pub(crate) fn snapshot(&mut self) -> Self {
        if !self.new.is_empty() {
            self.old.push(Arc::new(std::mem::take(&mut self.new)));
        }
        while let [.., larger, last] = &self.old[..]
            && larger.len() <= 2 * last.len()
            && larger.len() + last.len() <= LARGEST
        {
            let last = self.old.pop().map(Arc::unwrap_or_clone);
            let larger = self.old.pop().map(Arc::unwrap_or_clone);
            let (mut joined, last) = (larger.unwrap_or_default(), last.unwrap_or_default());
            for (method, bodies) in last {
                let known = joined.entry(method).or_default();
                bodies.as_slice().iter().for_each(|&body| known.push(body));
            }
            self.old.push(Arc::new(joined));
        }
        Methods {
            old: self.old.clone(),
            new: Layer::default(),
        }
    }

    /// Drops the bodies that are not to be kept. Takes as long as there are bodies.
    pub(crate) fn retain(&mut self, keep: impl Fn(BodyIndex) -> bool) {
        for layer in &mut self.old {
            retain(Arc::make_mut(layer), &keep);
        }
        retain(&mut self.new, &keep);
        self.old.retain(|layer| !layer.is_empty());
    }
}

fn retain(layer: &mut Layer, keep: &impl Fn(BodyIndex) -> bool) {
    layer.retain(|_, bodies| {
        if !bodies.as_slice().iter().all(|&body| keep(body)) {
            bodies.retain(|&body| keep(body));
        }
        !bodies.as_slice().is_empty()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_stay_in_order_and_copies_as_they_were() {
        let mut methods = Methods::default();
        let mut copies = Vec::new();
        for body in 0..1000 {
            methods.push((0, u64::from(body % 7)), BodyIndex(body));
            if body % 10 == 9 {
                copies.push((body, methods.snapshot()));
                assert!(methods.old.len() <= 10, "{} layers", methods.old.len());
            }
        }
        let of = |methods: &Methods, method| -> Vec<u32> {
            methods.of((0, method)).map(|body| body.0).collect()
        };
        for (last, copy) in &copies {
            for method in 0..7 {
                let all = (0..=*last).filter(|body| u64::from(body % 7) == method);
                assert_eq!(of(copy, method), all.collect::<Vec<u32>>());
            }
        }
        assert_eq!(methods.of((0, 3)).next_back(), Some(BodyIndex(997)));
        methods.retain(|body| body.0 >= 990 && body.0 % 7 != 3);
        assert_eq!(of(&methods, 2), [996]);
        assert!(of(&methods, 3).is_empty());
        assert_eq!(of(&copies[0].1, 3), [3]);
    }
}
