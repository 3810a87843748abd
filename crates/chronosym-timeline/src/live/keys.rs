//! The keys of a node of a tree.

use std::ops::{Deref, DerefMut};

/// Largest number of keys of a node.
pub(crate) const FULL: usize = 32;

/// At most [`FULL`] keys in ascending order.
pub(crate) trait Keys<K>: Clone + Default + DerefMut<Target = [K]> {
    /// Returns the number of keys for which `before` holds; it must hold for all keys up to one.
    fn rank(&self, before: impl Fn(&K) -> bool) -> usize;

    fn insert(&mut self, at: usize, key: K);

    fn remove(&mut self, at: usize);

    /// Removes and returns the keys from a position on.
    fn split_off(&mut self, at: usize) -> Self;

    /// Appends the keys of another node.
    fn append(&mut self, other: &Self);

    /// Returns the bytes beyond their own size.
    fn memory_bytes(&self) -> usize;
}

impl<K: Copy> Keys<K> for Vec<K> {
    fn rank(&self, before: impl Fn(&K) -> bool) -> usize {
        self.partition_point(before)
    }

    fn insert(&mut self, at: usize, key: K) {
        self.insert(at, key);
    }

    fn remove(&mut self, at: usize) {
        self.remove(at);
    }

    fn split_off(&mut self, at: usize) -> Self {
        self.split_off(at)
    }

    fn append(&mut self, other: &Self) {
        self.extend_from_slice(other);
    }

    fn memory_bytes(&self) -> usize {
        self.capacity() * size_of::<K>()
    }
}

/// Addresses within the node itself, which spares a search a load that waits for another one.
#[derive(Clone)]
pub(crate) struct Addresses {
    len: usize,
    /// Those from `len` on are `u64::MAX`.
    all: [u64; FULL],
}

/// Addresses of a cache line.
const LINE: usize = 8;

impl Default for Addresses {
    fn default() -> Self {
        Self {
            len: 0,
            all: [u64::MAX; FULL],
        }
    }
}

impl Deref for Addresses {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.all[..self.len]
    }
}

impl DerefMut for Addresses {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.all[..self.len]
    }
}

impl Keys<u64> for Addresses {
    /// Compares one address of each line, which loads all lines at once, then all of one line.
    #[inline(always)]
    fn rank(&self, before: impl Fn(&u64) -> bool) -> usize {
        let lines = (1..FULL / LINE).filter(|line| before(&self.all[line * LINE]));
        let from = lines.count() * LINE;
        let line = &self.all[from.min(FULL - LINE)..][..LINE];
        let rank = from + line.iter().filter(|address| before(address)).count();
        rank.min(self.len)
    }

    fn insert(&mut self, at: usize, key: u64) {
        self.len += 1;
        self[at..].rotate_right(1);
        self[at] = key;
    }

    fn remove(&mut self, at: usize) {
        self[at..].rotate_left(1);
        self.len -= 1;
        self.all[self.len] = u64::MAX;
    }

    fn split_off(&mut self, at: usize) -> Self {
        let mut upper = Self {
            len: self.len - at,
            ..Self::default()
        };
        upper.copy_from_slice(&self[at..]);
        self[at..].fill(u64::MAX);
        self.len = at;
        upper
    }

    fn append(&mut self, other: &Self) {
        let len = self.len;
        self.len += other.len;
        self[len..].copy_from_slice(other);
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}
