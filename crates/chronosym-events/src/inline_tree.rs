//! Inline trees: the calls that the JIT inlined into a body, from the chunks of
//! JittedMethodRichDebugInfo events.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "the counts of the header are compared with the bytes first, and children with the nodes"
)]

use crate::RichDebugInfo;

/// Why the chunks of an inline tree could not be joined or parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InlineTreeError {
    /// A chunk is missing, or belongs to another body than the chunk before.
    #[error("chunk {found} of an inline tree where chunk {expected} is expected")]
    MissingChunk {
        /// The number of the expected chunk.
        expected: u32,
        /// The number of the chunk.
        found: u32,
    },
    /// The joined chunks are shorter than their nodes and mappings.
    #[error("inline tree of {found} bytes where {needed} are needed")]
    Short {
        /// Bytes that nodes and mappings need.
        needed: u64,
        /// The length in bytes.
        found: usize,
    },
    /// The joined chunks are longer than any real tree.
    #[error("inline tree of more than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

/// The method or a call that was inlined into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InlineNode {
    /// The method's id.
    pub method_id: u64,
    /// IL offset of the call in the parent; meaningless for the root. .NET 10 leaves most of them
    /// uninitialized.
    pub il_offset: u32,
    /// Index of the node that it is inlined into; `None` for the root, and for unreachable nodes.
    pub parent: Option<u32>,
}

/// The IL of a native offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InlineMapping {
    /// Bytes from the start of the body.
    pub native_offset: u32,
    /// IL offset in the node's method; −1 no mapping, −2 prolog, −3 epilog.
    pub il_offset: i32,
    /// Index of the node.
    pub node: u32,
}

/// The inline tree of one body.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InlineTree {
    nodes: Box<[InlineNode]>,
    mappings: Box<[InlineMapping]>,
    faults: u32,
}

const HEADER: usize = 8;
const NODE: usize = 20;
const MAPPING: usize = 13;

impl InlineTree {
    /// Parses joined chunks: u32 node count, u32 mapping count, nodes of 20 bytes, mappings of 13.
    ///
    /// Links that are out of range or lead to a node with a parent (cycles) are dropped, as are
    /// mappings of nodes that do not exist; [`InlineTree::faults`] counts them.
    ///
    /// # Errors
    /// [`InlineTreeError::Short`] when the bytes are shorter than the nodes and mappings.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_events::InlineTree;
    /// # use chronosym_support::payload::inline_tree;
    /// # let nodes = [(1, 0, 1, 0), (2, 7, 0, 0)];
    /// # let mappings = [(3, 1, 0x10)];
    /// # let bytes = inline_tree(&nodes, &mappings);
    ///
    /// // Method 2 was inlined into method 1.
    /// let tree = InlineTree::parse(&bytes)?;
    /// let mapping = tree.mapping_at(0x14).unwrap();
    /// let inlinee = tree.nodes()[mapping.node as usize];
    /// assert_eq!((inlinee.method_id, inlinee.parent), (2, Some(0)));
    /// # Ok::<(), chronosym_events::InlineTreeError>(())
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, InlineTreeError> {
        let short = |needed| InlineTreeError::Short {
            needed,
            found: bytes.len(),
        };
        let header = bytes.get(..HEADER).ok_or(short(HEADER as u64))?;
        let (node_count, mapping_count) = (u32_at(header, 0), u32_at(header, 4));
        let needed = HEADER as u64
            + u64::from(node_count) * NODE as u64
            + u64::from(mapping_count) * MAPPING as u64;
        if needed > bytes.len() as u64 {
            return Err(short(needed));
        }
        let (nodes, rest) = bytes[HEADER..].split_at(node_count as usize * NODE);
        let mut tree = Self {
            faults: 0,
            ..Self::default()
        };
        tree.link(nodes);
        let mut mappings: Vec<_> = rest[..mapping_count as usize * MAPPING]
            .chunks_exact(MAPPING)
            .map(|m| InlineMapping {
                il_offset: u32_at(m, 0) as i32,
                node: u32_at(m, 4),
                native_offset: u32_at(m, 8),
            })
            .collect();
        mappings.retain(|m| m.node < node_count);
        tree.faults = tree
            .faults
            .saturating_add(mapping_count - mappings.len() as u32);
        mappings.sort_by_key(|m| m.native_offset);
        tree.mappings = mappings.into();
        Ok(tree)
    }

    /// Sets the parents of nodes by walking children and siblings from the root.
    fn link(&mut self, raw: &[u8]) {
        let raw: Vec<_> = raw.chunks_exact(NODE).collect();
        let mut nodes: Vec<_> = raw
            .iter()
            .map(|n| InlineNode {
                method_id: u64_at(n, 0),
                il_offset: u32_at(n, 8),
                parent: None,
            })
            .collect();
        let mut open: Vec<u32> = if nodes.is_empty() {
            Vec::new()
        } else {
            vec![0]
        };
        let mut reached = open.len();
        while let Some(parent) = open.pop() {
            let mut next = u32_at(raw[parent as usize], 12);
            while next != 0 {
                match nodes.get_mut(next as usize) {
                    Some(node) if node.parent.is_none() => node.parent = Some(parent),
                    _ => {
                        self.faults = self.faults.saturating_add(1);
                        break;
                    }
                }
                reached += 1;
                open.push(next);
                next = u32_at(raw[next as usize], 16);
            }
        }
        let unreached = u32::try_from(nodes.len() - reached).unwrap_or(u32::MAX);
        self.faults = self.faults.saturating_add(unreached);
        self.nodes = nodes.into();
    }

    /// Creates a tree of (method id, IL offset of the call, parent) nodes, (native offset, IL
    /// offset, node) mappings by native offset, and a number of faults. `None` if a parent or a
    /// node does not exist, or mappings are not in order.
    pub fn new(
        nodes: Vec<(u64, u32, Option<u32>)>,
        mappings: Vec<(u32, i32, u32)>,
        faults: u32,
    ) -> Option<Self> {
        let exists = |node: u32| (node as usize) < nodes.len();
        let is_valid = mappings.is_sorted_by_key(|mapping| mapping.0)
            && mappings.iter().all(|mapping| exists(mapping.2))
            && nodes.iter().all(|node| node.2.is_none_or(exists));
        let node = |&(method_id, il_offset, parent): &_| InlineNode {
            method_id,
            il_offset,
            parent,
        };
        let mapping = |&(native_offset, il_offset, node): &_| InlineMapping {
            native_offset,
            il_offset,
            node,
        };
        is_valid.then(|| Self {
            nodes: nodes.iter().map(node).collect(),
            mappings: mappings.iter().map(mapping).collect(),
            faults,
        })
    }

    /// Returns the nodes; the first one is the method itself.
    pub fn nodes(&self) -> &[InlineNode] {
        &self.nodes
    }

    /// Returns the mappings by native offset.
    pub fn mappings(&self) -> &[InlineMapping] {
        &self.mappings
    }

    /// Returns the number of invalid links and mappings, and of nodes unreachable from the root.
    pub fn faults(&self) -> u32 {
        self.faults
    }

    /// Returns the mapping that covers a native offset: the last one at or before it.
    pub fn mapping_at(&self, native_offset: u32) -> Option<&InlineMapping> {
        let after = self
            .mappings
            .partition_point(|m| m.native_offset <= native_offset);
        self.mappings.get(after.checked_sub(1)?)
    }
}

/// Joins the chunks of inline trees; one per thread, on which the chunks of a body are consecutive.
#[derive(Clone, Debug, Default)]
pub struct RichDebugChunks {
    body: Option<(u16, u64, u64)>,
    bytes: Vec<u8>,
    next: u32,
}

impl RichDebugChunks {
    /// The limit on the length of a tree in bytes; real ones have some kilobytes.
    pub const LIMIT: usize = 64 << 20;

    /// Adds a chunk; the last one of a body returns the tree.
    ///
    /// # Errors
    /// [`InlineTreeError`] when a chunk is missing, or the chunks are not a tree. The next first
    /// chunk starts over.
    pub fn push(
        &mut self,
        chunk: &RichDebugInfo<'_>,
    ) -> Result<Option<InlineTree>, InlineTreeError> {
        let body = Some((
            chunk.clr_instance_id,
            chunk.method_id,
            chunk.native_code_version,
        ));
        let index = chunk.chunk_index();
        if index == 0 {
            self.clear();
            self.body = body;
        }
        if self.body != body || index != self.next {
            let expected = self.next;
            self.clear();
            return Err(InlineTreeError::MissingChunk {
                expected,
                found: index,
            });
        }
        if self.bytes.len() + chunk.data.len() > Self::LIMIT {
            self.clear();
            return Err(InlineTreeError::TooLong { limit: Self::LIMIT });
        }
        self.bytes.extend_from_slice(chunk.data);
        self.next += 1;
        if !chunk.is_last() {
            return Ok(None);
        }
        let tree = InlineTree::parse(&self.bytes);
        self.clear();
        tree.map(Some)
    }

    fn clear(&mut self) {
        self.body = None;
        self.bytes.clear();
        self.next = 0;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
