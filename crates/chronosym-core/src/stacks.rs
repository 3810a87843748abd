//! Hash-consed stacks: a prefix tree of (caller, address, proof) nodes.

use std::hash::{BuildHasher, Hash, Hasher};

use chronosym_types::hash::RandomState;
use hashbrown::HashTable;

use crate::evidence::CallerProof;
use crate::ids::StackId;
use chronosym_types::{Addresses, Chunked, TreeIndex};

/// A frame of a stack.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Walked {
    /// The address of the leaf, or a return address.
    pub address: u64,
    /// `None` for a frame found by the recorder, and for the leaf.
    pub proof: Option<CallerProof>,
}

impl From<u64> for Walked {
    fn from(address: u64) -> Self {
        Walked {
            address,
            proof: None,
        }
    }
}

const ROOT: u32 = u32::MAX;

/// Maximum number of nodes: ids are less than the root's.
#[cfg(not(test))]
const MAX_NODES: usize = ROOT as usize;
#[cfg(test)]
const MAX_NODES: usize = 1 << 16;

/// A frame and its caller, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    address: u64,
    caller: u32,
    proof: Option<CallerProof>,
}

/// Hashed as two words: every frame of every sample is looked up.
impl Hash for Node {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let proof = self.proof.map_or(0, |proof| proof as u64 + 1);
        state.write_u64(self.address);
        state.write_u64(u64::from(self.caller) | proof << 32);
    }
}

/// All stacks of a session, each distinct prefix stored once.
#[derive(Debug)]
pub struct StackTable {
    nodes: Chunked<Node>,
    /// Maximum number of nodes.
    most: usize,
    index: TreeIndex<Node>,
    /// Stacks interned as a whole, by their addresses, with the hashes of these.
    whole: HashTable<(StackId, u32)>,
    /// The addresses of the stack that is being interned: memory that is reused.
    bytes: Vec<[u8; 8]>,
    hasher: RandomState,
}

impl Default for StackTable {
    fn default() -> Self {
        StackTable {
            nodes: Chunked::default(),
            most: MAX_NODES,
            index: TreeIndex::default(),
            whole: HashTable::default(),
            bytes: Vec::new(),
            hasher: RandomState::default(),
        }
    }
}

/// Hashes the little-endian bytes of the addresses of a stack.
fn hash_of(hasher: &impl BuildHasher, addresses: &[[u8; 8]]) -> u32 {
    let mut hasher = hasher.build_hasher();
    hasher.write(addresses.as_flattened());
    hasher.finish() as u32
}

/// Returns a hash for a table, which uses its lowest and its highest bits.
fn wide(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl StackTable {
    /// Returns the id of a stack; `None` for an empty stack, and for a new one beyond the limit of
    /// nodes.
    pub fn intern(&mut self, leaf_first: impl DoubleEndedIterator<Item = u64>) -> Option<StackId> {
        self.extend(None, leaf_first)
    }

    /// Returns the id of the stack that extends `onto`, whose innermost frame called the outermost
    /// of `leaf_first`.
    pub fn extend(
        &mut self,
        onto: Option<StackId>,
        leaf_first: impl DoubleEndedIterator<Item = u64>,
    ) -> Option<StackId> {
        self.extend_walked(onto, leaf_first.map(Walked::from))
    }

    /// Extends a stack by frames with proofs.
    pub(crate) fn extend_walked(
        &mut self,
        onto: Option<StackId>,
        leaf_first: impl DoubleEndedIterator<Item = Walked>,
    ) -> Option<StackId> {
        let mut top = onto.map_or(ROOT, |id| id.0);
        for Walked { address, proof } in leaf_first.rev() {
            let node = Node {
                address,
                caller: top,
                proof,
            };
            let found = self
                .index
                .find(&node, top, |at| self.nodes.get(at as usize).copied());
            if let Some(found) = found {
                top = found;
                continue;
            }
            if self.is_full() {
                return None;
            }
            let next = self.nodes.len() as u32;
            self.index.insert(node, top, next);
            self.nodes.push(node);
            top = next;
        }
        (top != ROOT).then_some(StackId(top))
    }

    /// As [`StackTable::intern`], for a stack that is likely to recur: a single lookup covers all
    /// frames.
    pub fn intern_whole(
        &mut self,
        leaf_first: impl ExactSizeIterator<Item = impl Into<Walked>> + DoubleEndedIterator + Clone,
    ) -> Option<StackId> {
        let leaf_first = leaf_first.map(Into::into);
        let addresses = leaf_first.clone().map(|frame| frame.address.to_le_bytes());
        self.bytes.clear();
        self.bytes.extend(addresses);
        self.intern_hashed(hash_of(&self.hasher, &self.bytes), leaf_first)
    }

    /// As [`StackTable::intern_whole`], for the addresses of a record.
    pub fn intern_addresses(&mut self, leaf_first: Addresses<'_>) -> Option<StackId> {
        let Some(wide) = leaf_first.wide() else {
            return self.intern_whole(leaf_first.iter());
        };
        let frames = wide.iter().map(|&it| u64::from_le_bytes(it).into());
        self.intern_hashed(hash_of(&self.hasher, wide), frames)
    }

    fn intern_hashed(
        &mut self,
        hash: u32,
        leaf_first: impl ExactSizeIterator<Item = Walked> + DoubleEndedIterator + Clone,
    ) -> Option<StackId> {
        let is_equal = |&(stack, of): &(_, u32)| of == hash && self.is(stack, leaf_first.clone());
        if let Some(&(stack, _)) = self.whole.find(wide(hash), is_equal) {
            return Some(stack);
        }
        let stack = self.extend_walked(None, leaf_first)?;
        self.whole
            .insert_unique(wide(hash), (stack, hash), |&(_, hash)| wide(hash));
        Some(stack)
    }

    /// Returns whether a stack consists of these frames.
    #[inline]
    fn is(&self, stack: StackId, leaf_first: impl Iterator<Item = Walked>) -> bool {
        let mut top = stack.0;
        let mut nodes = [].iter();
        for frame in leaf_first {
            // A caller mostly precedes its callee: then no node is read to find the next one.
            let next = nodes.next_back().or_else(|| {
                nodes = self.nodes.up_to(top as usize).iter();
                nodes.next_back()
            });
            let Some(node) = next.filter(|node| node.address == frame.address) else {
                return false;
            };
            if node.proof != frame.proof {
                return false;
            }
            if node.caller != top.wrapping_sub(1) {
                nodes = [].iter();
            }
            top = node.caller;
        }
        top == ROOT
    }

    /// Returns the innermost frame and its caller; `None` for a stack of another table.
    #[inline]
    pub(crate) fn split(&self, stack: StackId) -> Option<(Walked, Option<StackId>)> {
        let &Node {
            address,
            caller,
            proof,
        } = self.nodes.get(stack.index())?;
        let caller = (caller != ROOT).then_some(StackId(caller));
        Some((Walked { address, proof }, caller))
    }

    /// Returns the stack without its innermost frame.
    pub fn caller(&self, stack: StackId) -> Option<StackId> {
        self.split(stack)?.1
    }

    /// Returns the addresses from the innermost frame outwards; none for a stack of another table.
    pub fn addresses(&self, stack: StackId) -> impl Iterator<Item = u64> {
        let next = |&(_, caller): &(Walked, Option<StackId>)| self.split(caller?);
        std::iter::successors(self.split(stack), next).map(|(frame, _)| frame.address)
    }

    /// Returns whether the limit of nodes is reached.
    pub fn is_full(&self) -> bool {
        self.nodes.len() >= self.most
    }

    /// Sets the maximum number of nodes, at most 2^32 − 1.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most.min(MAX_NODES);
    }

    /// Returns the number of distinct prefixes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of prefixes that are in the index.
    pub(crate) fn indexed(&self) -> usize {
        self.index.indexed()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the table without what only interning needs.
    pub(crate) fn frozen(self) -> Self {
        StackTable {
            nodes: self.nodes,
            ..StackTable::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chronosym_support::growth::{Size, Stopwatch, assert_growth};

    use super::*;

    #[test]
    fn stacks_share_their_callers() {
        let mut table = StackTable::default();
        let a = table.intern([3, 2, 1].into_iter()).unwrap();
        let b = table.intern([4, 2, 1].into_iter()).unwrap();
        assert_eq!(table.len(), 4);
        assert_eq!(table.caller(a), table.caller(b));
        assert_eq!(table.addresses(b).collect::<Vec<_>>(), [4, 2, 1]);
        assert_eq!(table.intern([3, 2, 1].into_iter()), Some(a));
        assert_eq!(table.intern(std::iter::empty()), None);
        let onto = table.intern([2, 1].into_iter());
        assert_eq!(table.extend(onto, [3].into_iter()), Some(a));
        let walked = |addresses: &'static [u64]| addresses.iter().map(|&it| Walked::from(it));
        for (addresses, stack) in [(&[3, 2, 1][..], a), (&[4, 2, 1], b)] {
            assert_eq!(table.intern_whole(walked(addresses)), Some(stack));
            assert_eq!(table.intern_whole(walked(addresses)), Some(stack));
        }
        assert_ne!(table.intern_whole(walked(&[2, 1])), Some(a));
        assert_eq!(table.len(), 4);
        assert_eq!(table.intern_whole(walked(&[])), None);
    }

    #[test]
    fn whole_stacks_differ_in_any_frame() {
        let mut table = StackTable::default();
        let long: Vec<u64> = (1..2_000).collect();
        let mut stacks = vec![long.clone(), long[..1_000].to_vec(), long[1_000..].to_vec()];
        for changed in [0, 1, 511, 512, 513, 1_500, 1_998] {
            let mut other = long.clone();
            other[changed] = 0;
            stacks.push(other);
        }
        let mut intern = |stack: &Vec<u64>| table.intern_whole(stack.iter().copied());
        let ids: Vec<_> = stacks.iter().map(&mut intern).collect();
        let again: Vec<_> = stacks.iter().map(&mut intern).collect();
        assert_eq!(ids, again);
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), stacks.len());
        for (id, stack) in ids.into_iter().zip(&stacks) {
            assert_eq!(table.intern(stack.iter().copied()), id);
            assert!(table.addresses(id.unwrap()).eq(stack.iter().copied()));
        }
    }

    #[test]
    fn no_stacks_can_be_chosen_to_fall_together() {
        // The multiplier of `rustc_hash`, and its inverse: with it, these two-frame stacks have
        // equal hashes.
        const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;
        let inverse = (0..6).fold(FACTOR, |x, _| {
            x.wrapping_mul(2u64.wrapping_sub(FACTOR.wrapping_mul(x)))
        });
        assert_eq!(FACTOR.wrapping_mul(inverse), 1);
        let time = |count: u64| {
            let mut table = StackTable::default();
            let callers: Vec<_> = (0..count)
                .map(|it| table.intern([it].into_iter()))
                .collect();
            let watch = Stopwatch::start();
            for (caller, onto) in (0..count).zip(callers) {
                let address = (1u64 << 60).wrapping_sub(caller).wrapping_mul(inverse);
                assert!(table.extend(onto, [address].into_iter()).is_some());
            }
            watch.used()
        };
        // Colliding stacks took fifteen seconds.
        assert_growth("stacks", 60.0, Duration::from_millis(500), |size| {
            time(if size == Size::Small { 1_500 } else { 24_000 })
        });
    }
}
