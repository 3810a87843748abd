//! Inline trees: the inlinees of a body and their native ranges (rule 17).

/// Deeper chains are cut: no compiler inlines that deep, but a corrupt trace can claim it.
const DEEPEST: usize = 256;

/// The inline tree of one code body.
#[derive(Clone, Debug, Default)]
pub(crate) struct InlineTree(pub chronosym_events::InlineTree);

/// One frame of a chain of inlinees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InlineFrame {
    pub method_id: u64,
    pub il_offset: Option<u32>,
    pub approximate: bool,
    /// The call offset in the tree; uninitialised in some runtimes.
    pub stated: Option<u32>,
    /// Whether it is the method that contains the others.
    pub is_root: bool,
}

impl InlineTree {
    /// Returns the chain at `native` bytes from the start of the body, innermost first, the method
    /// itself last.
    ///
    /// `calls_are_valid` is false for runtimes that leave call offsets uninitialised: the parent's
    /// own last mapping before the child's first one then replaces them.
    pub(crate) fn chain(&self, native: u32, calls_are_valid: bool) -> Vec<InlineFrame> {
        let Some(here) = self.0.mapping_at(native) else {
            return Vec::new();
        };
        let mut chain = Vec::new();
        let (mut node, mut il, mut approximate, mut stated) =
            (here.node, real(here.il_offset), false, None);
        while let Some(current) = self.0.nodes().get(node as usize) {
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
            stated = real(current.il_offset as i32);
            (il, approximate) = if calls_are_valid {
                (stated, false)
            } else {
                (self.call_before(node, parent), true)
            };
            node = parent;
        }
        chain
    }

    /// Returns the parent's own last mapping before the child's first one.
    fn call_before(&self, child: u32, parent: u32) -> Option<u32> {
        let mappings = self.0.mappings();
        let first = mappings
            .iter()
            .position(|m| self.is_within(m.node, child))?;
        let before = mappings[..first].iter().rev();
        before
            .filter(|m| m.node == parent)
            .find_map(|m| real(m.il_offset))
    }

    fn is_within(&self, node: u32, ancestor: u32) -> bool {
        let mut at = Some(node);
        for _ in 0..DEEPEST {
            match at {
                Some(n) if n == ancestor => return true,
                Some(n) => at = self.0.nodes().get(n as usize).and_then(|node| node.parent),
                None => return false,
            }
        }
        false
    }
}

/// Returns none for special IL offsets (−1 no mapping, −2 prolog, −3 epilog).
fn real(il: i32) -> Option<u32> {
    u32::try_from(il).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> InlineTree {
        // 1 inlines 2 (at IL 5), which inlines 3 (at IL 7).
        let bytes = chronosym_support::payload::inline_tree(
            &[(1, u32::MAX, 1, 0), (2, 5, 2, 0), (3, 7, 0, 0)],
            &[
                (0, 0, 0),
                (5, 0, 8),
                (0, 1, 10),
                (6, 1, 14),
                (0, 2, 16),
                (9, 0, 20),
            ],
        );
        InlineTree(chronosym_events::InlineTree::parse(&bytes).expect("a whole tree"))
    }

    #[test]
    fn rule_17_the_innermost_frame_is_first_and_call_offsets_are_stated_or_inferred() {
        let seen = |native, calls_are_valid| -> Vec<_> {
            let chain = tree().chain(native, calls_are_valid);
            let frame = |f: &InlineFrame| (f.method_id, f.il_offset, f.approximate);
            chain.iter().map(frame).collect()
        };
        let stated = [
            (3, Some(0), false),
            (2, Some(7), false),
            (1, Some(5), false),
        ];
        assert_eq!(seen(17, true), stated);
        assert_eq!(seen(25, true).len(), 1);
        // The mapping before the call.
        let stood_in_for = [(3, Some(0), false), (2, Some(6), true), (1, Some(5), true)];
        assert_eq!(seen(17, false), stood_in_for);
    }
}
