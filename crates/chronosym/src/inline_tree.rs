//! Inline trees: which methods the compiler inlined into a body, and where (rule 17).

/// Deeper chains are cut: no compiler inlines that deep, but a damaged trace can say so.
const DEEPEST: usize = 256;

/// The inline tree of one code body.
#[derive(Clone, Debug, Default)]
pub(crate) struct InlineTree {
    nodes: Vec<Node>,
    /// In native order.
    mappings: Vec<Mapping>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    method_id: u64,
    /// IL offset of the call in the parent.
    call: u32,
    parent: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    native: u32,
    il: u32,
    node: u32,
}

/// One frame of a chain of inlined methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InlineFrame {
    pub method_id: u64,
    pub il_offset: Option<u32>,
    pub approximate: bool,
    /// What the tree says of where it calls the frame before; to be checked where that may be uninitialised.
    pub stated: Option<u32>,
    /// The method itself, into which the others are inlined.
    pub is_root: bool,
}

impl InlineTree {
    /// `nodes`: (method id, IL offset of the call, first child, next sibling), 0 for none; node 0 is the method itself.
    /// `mappings`: (IL offset, node, native offset).
    pub(crate) fn new(
        nodes: impl Iterator<Item = (u64, u32, u32, u32)>,
        mappings: impl Iterator<Item = (u32, u32, u32)>,
    ) -> Self {
        let links: Vec<_> = nodes.collect();
        let mut nodes: Vec<_> = links
            .iter()
            .map(|&(method_id, call, _, _)| Node {
                method_id,
                call,
                parent: None,
            })
            .collect();
        // Links may be damaged: each node gets at most one parent, and each is visited once.
        let mut seen = vec![false; links.len()];
        let mut open = vec![0usize];
        if let Some(root) = seen.first_mut() {
            *root = true;
        }
        while let Some(parent) = open.pop() {
            let Some(&(_, _, first, _)) = links.get(parent) else {
                continue;
            };
            let mut child = first as usize;
            while child != 0 && child < links.len() && !seen[child] {
                seen[child] = true;
                nodes[child].parent = Some(parent as u32);
                open.push(child);
                child = links[child].3 as usize;
            }
        }
        let count = nodes.len() as u32;
        let mut mappings: Vec<_> = mappings
            .filter(|&(_, node, _)| node < count)
            .map(|(il, node, native)| Mapping { native, il, node })
            .collect();
        mappings.sort_by_key(|m| m.native);
        InlineTree { nodes, mappings }
    }

    /// Parses the joined bytes of the event: u32 node count, u32 mapping count, then nodes of 20 and mappings of 13 bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (counts, rest) = bytes.split_at_checked(8)?;
        let u32_at =
            |b: &[u8], at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let nodes_size = (u32_at(counts, 0) as usize).checked_mul(20)?;
        let mappings_size = (u32_at(counts, 4) as usize).checked_mul(13)?;
        let (nodes, rest) = rest.split_at_checked(nodes_size)?;
        let mappings = rest.get(..mappings_size)?;
        let method_id = |b: &[u8]| u64::from(u32_at(b, 0)) | u64::from(u32_at(b, 4)) << 32;
        Some(InlineTree::new(
            nodes
                .chunks_exact(20)
                .map(|b| (method_id(b), u32_at(b, 8), u32_at(b, 12), u32_at(b, 16))),
            mappings
                .chunks_exact(13)
                .map(|b| (u32_at(b, 0), u32_at(b, 4), u32_at(b, 8))),
        ))
    }

    /// The chain at `native` bytes from the start of the body, innermost first, the method itself last.
    ///
    /// `calls_are_valid` is false for runtimes that leave the call offsets uninitialised: the parent's own last mapping
    /// before the child's first one then takes their place.
    pub(crate) fn chain(&self, native: u32, calls_are_valid: bool) -> Vec<InlineFrame> {
        let upto = self.mappings.partition_point(|m| m.native <= native);
        let Some(here) = self.mappings[..upto].last() else {
            return Vec::new();
        };
        let mut chain = Vec::new();
        let (mut node, mut il, mut approximate, mut stated) =
            (here.node, real(here.il), false, None);
        loop {
            let current = self.nodes[node as usize];
            chain.push(InlineFrame {
                method_id: current.method_id,
                il_offset: il,
                approximate,
                stated,
                is_root: node == 0,
            });
            let Some(parent) = current.parent.filter(|_| chain.len() < DEEPEST) else {
                break;
            };
            stated = real(current.call);
            (il, approximate) = if calls_are_valid {
                (stated, false)
            } else {
                (self.call_before(node, parent), true)
            };
            node = parent;
        }
        chain
    }

    /// The parent's own last mapping before the child's first one.
    fn call_before(&self, child: u32, parent: u32) -> Option<u32> {
        let first = self
            .mappings
            .iter()
            .position(|m| self.is_within(m.node, child))?;
        let before = self.mappings[..first].iter().rev();
        before.filter(|m| m.node == parent).find_map(|m| real(m.il))
    }

    fn is_within(&self, node: u32, ancestor: u32) -> bool {
        let mut at = Some(node);
        for _ in 0..DEEPEST {
            match at {
                Some(n) if n == ancestor => return true,
                Some(n) => at = self.nodes[n as usize].parent,
                None => return false,
            }
        }
        false
    }
}

/// Special IL offsets (−1 no mapping, −2 prolog, −3 epilog) are none.
fn real(il: u32) -> Option<u32> {
    ((il as i32) >= 0).then_some(il)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> InlineTree {
        // 1 inlines 2 (at IL 5), which inlines 3 (at IL 7).
        InlineTree::new(
            [(1, u32::MAX, 1, 0), (2, 5, 2, 0), (3, 7, 0, 0)].into_iter(),
            [
                (0, 0, 0),
                (5, 0, 8),
                (0, 1, 10),
                (6, 1, 14),
                (0, 2, 16),
                (9, 0, 20),
            ]
            .into_iter(),
        )
    }

    #[test]
    fn the_innermost_frame_comes_first() {
        let chain = tree().chain(17, true);
        let seen: Vec<_> = chain
            .iter()
            .map(|f| (f.method_id, f.il_offset, f.approximate))
            .collect();
        assert_eq!(
            seen,
            [
                (3, Some(0), false),
                (2, Some(7), false),
                (1, Some(5), false)
            ]
        );
        assert_eq!(tree().chain(25, true).len(), 1);
    }

    #[test]
    fn without_call_offsets_the_mapping_before_stands_in() {
        let chain = tree().chain(17, false);
        let seen: Vec<_> = chain
            .iter()
            .map(|f| (f.method_id, f.il_offset, f.approximate))
            .collect();
        assert_eq!(
            seen,
            [(3, Some(0), false), (2, Some(6), true), (1, Some(5), true)]
        );
    }

    #[test]
    fn damaged_links_end() {
        let tree = InlineTree::new(
            [(1, 0, 1, 0), (2, 0, 1, 1), (3, 0, 0, 99)].into_iter(),
            [(0, 1, 0), (0, 77, 4)].into_iter(),
        );
        assert_eq!(tree.chain(9, true).len(), 2);
    }
}
