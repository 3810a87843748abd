//! A vector in shared chunks: copies are cheap, and a writer copies only the chunks that it
//! modifies afterwards.

use std::ops::Index;
use std::sync::Arc;

const BITS: usize = 9;
const CHUNK: usize = 1 << BITS;

/// A vector that grows while copies of it are read.
#[derive(Clone, Debug)]
pub struct Chunked<T> {
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Chunked {
            chunks: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Chunked<T> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the vector is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index >> BITS)?.get(index & (CHUNK - 1))
    }

    /// Returns the value at an index and those before it in its chunk; none beyond the end.
    pub fn up_to(&self, index: usize) -> &[T] {
        let chunk = self.chunks.get(index >> BITS);
        let values = chunk.and_then(|chunk| chunk.get(..=index & (CHUNK - 1)));
        values.unwrap_or_default()
    }

    /// Iterates over all values in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<T: Clone> Chunked<T> {
    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len & (CHUNK - 1) == 0 {
            // Most processes have few values of any kind.
            let capacity = if self.len == 0 { 4 } else { CHUNK };
            self.chunks.push(Arc::new(Vec::with_capacity(capacity)));
        }
        if let Some(last) = self.chunks.last_mut() {
            Arc::make_mut(last).push(value);
        }
        self.len += 1;
    }

    /// Keeps the values of which `keep` is true.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        if self.iter().all(&keep) {
            return;
        }
        let mut kept = Chunked::default();
        self.iter()
            .filter(|item| keep(item))
            .for_each(|item| kept.push(item.clone()));
        *self = kept;
    }
}

impl<T> Index<usize> for Chunked<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.chunks[index >> BITS][index & (CHUNK - 1)]
    }
}

impl<T: Clone> std::ops::IndexMut<usize> for Chunked<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.chunks[index >> BITS])[index & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_not_affected_by_later_changes() {
        let mut all = Chunked::default();
        for i in 0..2_000 {
            all.push(i);
        }
        let copy = all.clone();
        all[5] = 99;
        all.push(2_000);
        assert_eq!((copy[5], copy.len(), copy.get(2_000)), (5, 2_000, None));
        assert_eq!((all[5], all.len(), all[2_000]), (99, 2_001, 2_000));
        assert!(copy.iter().copied().eq(0..2_000));
    }

    #[test]
    fn values_are_kept_or_dropped() {
        let mut all = Chunked::default();
        (0..2_000).for_each(|i| all.push(i));
        all.retain(|item| item % 2 == 0);
        assert!(all.iter().copied().eq((0..2_000).step_by(2)));
        assert_eq!((all.len(), all[3]), (1_000, 6));
    }
}
