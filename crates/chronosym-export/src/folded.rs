//! Folded stacks: a line for each distinct stack, outermost frame first, then its weight.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::mem;
use std::ops::Range;

use chronosym_types::escape::folded;

use crate::call_tree::{CallTree, Node, NodeIndex, NodeLabel};
use crate::weight::{WeightUnit, add};

/// Writes `process (pid);thread (tid);outermost;…;leaf weight` for every distinct stack, sorted by
/// text.
///
/// Names are escaped by [`folded`]. Time is in µs, rounded to the nearest.
///
/// # Errors
///
/// Errors of writing to `out`.
///
/// # Examples
///
/// ```
/// # use chronosym_core::facts::{At, Method, Process, Sample};
/// # use chronosym_core::{Action, Filter, Options, Session};
/// # let mut session = Session::new(Options::default());
/// # let at = At::new(0).process(42).thread(7);
/// # session.apply(at, Process::new(Action::Load, "app"));
/// # session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
/// # session.apply(at, Method::new(Action::Load, 2, 0x2000, 64).named("Ns.Type", "Main", ""));
/// # session.sample(at.at(100), &[0x1010, 0x2020], Sample::cpu());
/// # let timeline = session.finish();
/// use chronosym_export::{CallTree, TreeOptions, write_folded};
///
/// // A sample of thread 7 in `Run`, called by `Main`.
/// let profile = timeline.profile(&Filter::default(), None);
/// let tree = CallTree::new(&profile, TreeOptions::default());
/// let mut folded = Vec::new();
/// write_folded(&tree, &mut folded)?;
/// assert_eq!(String::from_utf8_lossy(&folded), "app (42);thread (7);Ns.Type.Main;Ns.Type.Run 1\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_folded(tree: &CallTree, out: &mut impl Write) -> io::Result<()> {
    let unit = tree.unit;
    // Labels that are equal after escaping are merged.
    let cleaned = |label: &NodeLabel| folded(&label.to_string()).into_owned();
    let texts: Vec<String> = tree.labels.values().map(cleaned).collect();
    let mut sorted: Vec<(&str, usize)> = texts.iter().map(String::as_str).zip(0..).collect();
    sorted.sort_unstable();
    let mut labels: Vec<&str> = Vec::new();
    let mut ranks = vec![0; texts.len()];
    for (text, index) in sorted {
        if labels.last() != Some(&text) {
            labels.push(text);
        }
        ranks[index] = labels.len() as u32 - 1;
    }
    // Stacks are written while the tree is walked in the order of the labels: all stacks together
    // can be far larger than the tree.
    let mut below = Children::new(tree, &ranks);
    let mut open = Vec::new();
    below.push(&labels, None, &mut open);
    let mut line = String::new();
    while let Some(Pending { start, rank, what }) = open.pop() {
        line.truncate(start.unwrap_or(0));
        if start.is_some() {
            line.push(';');
        }
        line.push_str(labels[rank as usize]);
        match what {
            Output::Stack(weight) if unit == WeightUnit::Time => {
                writeln!(out, "{line} {}", weight.saturating_add(500) / 1_000)?;
            }
            Output::Stack(weight) => writeln!(out, "{line} {weight}")?,
            Output::Callees(of) => below.push(&labels, Some((of, line.len())), &mut open),
        }
    }
    Ok(())
}

/// A line, or several, still to be written.
struct Pending {
    /// Number of bytes shared with the preceding line; `None` for a root.
    start: Option<usize>,
    rank: u32,
    what: Output,
}

enum Output {
    /// The weight of the stack itself.
    Stack(u64),
    /// The stacks of the callees of the nodes in this range of [`Children::nodes`].
    Callees(Range<usize>),
}

impl Pending {
    /// Compares the lines as text: a space follows the innermost label, a semicolon any other.
    fn compare(&self, other: &Self, labels: &[&str]) -> Ordering {
        let [(a, after_a), (b, after_b)] = [self, other].map(|item| {
            let after = match item.what {
                Output::Stack(_) => b' ',
                Output::Callees(_) => b';',
            };
            (labels[item.rank as usize].as_bytes(), after)
        });
        let common = a.len().min(b.len());
        let rest = |text: &[u8], after| text.get(common).copied().unwrap_or(after);
        a[..common]
            .cmp(&b[..common])
            .then_with(|| rest(a, after_a).cmp(&rest(b, after_b)))
            .then(a.len().cmp(&b.len()))
    }
}

struct Children<'t> {
    tree: &'t CallTree,
    ranks: &'t [u32],
    /// Nodes by parent: those of node n from `first[n + 1]`, the roots from `first[0]`.
    sorted: Vec<NodeIndex>,
    first: Vec<usize>,
    /// Nodes whose callees are to be written.
    nodes: Vec<NodeIndex>,
    /// The callees that are being added, and those of them with callees: memory that is reused.
    all: Vec<NodeIndex>,
    groups: Vec<NodeIndex>,
}

impl<'t> Children<'t> {
    fn new(tree: &'t CallTree, ranks: &'t [u32]) -> Self {
        let place = |(index, node): (NodeIndex, &Node)| {
            let parent = node.parent.map_or(0, |parent| parent as usize + 1);
            (parent, ranks[node.label as usize], index)
        };
        let mut places: Vec<_> = (0..).zip(&tree.nodes).map(place).collect();
        places.sort_unstable();
        let mut first = vec![0; tree.nodes.len() + 2];
        for (parent, ..) in &places {
            first[parent + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        Children {
            tree,
            ranks,
            sorted: places.into_iter().map(|(.., node)| node).collect(),
            first,
            nodes: Vec::new(),
            all: Vec::new(),
            groups: Vec::new(),
        }
    }

    fn of(&self, node: Option<NodeIndex>) -> &[NodeIndex] {
        let at = node.map_or(0, |node| node as usize + 1);
        &self.sorted[self.first[at]..self.first[at + 1]]
    }

    /// Adds the callees of the nodes in a range of `nodes`, with the length of their line, or the
    /// roots, to `open`: the first line last.
    fn push(
        &mut self,
        labels: &[&str],
        of: Option<(Range<usize>, usize)>,
        open: &mut Vec<Pending>,
    ) {
        let (of, start) = of.map_or((0..0, None), |(of, start)| (of, Some(start)));
        let rank = |&node: &NodeIndex| self.ranks[self.tree.nodes[node as usize].label as usize];
        let mut all = mem::take(&mut self.all);
        all.clear();
        if start.is_none() {
            all.extend(self.of(None));
        }
        for &node in &self.nodes[of.clone()] {
            all.extend(self.of(Some(node)));
        }
        if of.len() > 1 {
            all.sort_by_key(rank);
        }
        let from = open.len();
        // Nodes of equal labels are one line.
        let mut groups = mem::take(&mut self.groups);
        groups.clear();
        for group in all.chunk_by(|a, b| rank(a) == rank(b)) {
            let mut own = 0;
            for &node in group {
                add(&mut own, self.tree.nodes[node as usize].own);
            }
            let rank = rank(&group[0]);
            if own > 0 {
                open.push(Pending {
                    start,
                    rank,
                    what: Output::Stack(own),
                });
            }
            if group.iter().any(|&node| !self.of(Some(node)).is_empty()) {
                open.push(Pending {
                    start,
                    rank,
                    what: Output::Callees(groups.len()..groups.len() + group.len()),
                });
                groups.extend_from_slice(group);
            }
        }
        open[from..].sort_by(|a, b| b.compare(a, labels));
        // The ranges of lines that are written first are at the end, where they are removed.
        self.nodes.truncate(of.end);
        for item in &mut open[from..] {
            if let Output::Callees(range) = &mut item.what {
                let at = self.nodes.len();
                self.nodes.extend_from_slice(&groups[range.clone()]);
                *range = at..self.nodes.len();
            }
        }
        (self.all, self.groups) = (all, groups);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::Identity;

    /// Returns a tree of paths, each with one sample.
    fn tree(paths: &[&[&'static str]]) -> CallTree {
        let mut tree = CallTree::default();
        for path in paths {
            let mut parent = None;
            for &name in *path {
                let node = tree.nodes.iter().position(|node: &Node| {
                    node.parent == parent && tree.labels[node.label as usize].to_string() == name
                });
                let node = node.unwrap_or_else(|| {
                    let identity = Identity::Function(tree.labels.len() as u32, None);
                    tree.labels
                        .insert(identity, NodeLabel::text(name.to_owned()));
                    tree.nodes.push(Node {
                        label: tree.labels.len() as u32 - 1,
                        parent,
                        own: 0,
                        stands_for: None,
                    });
                    tree.nodes.len() - 1
                });
                parent = Some(node as NodeIndex);
            }
            tree.nodes[parent.expect("not empty") as usize].own += 1;
        }
        tree
    }

    fn written(tree: &CallTree) -> String {
        let mut out = Vec::new();
        write_folded(tree, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    proptest::proptest! {
        #[test]
        fn lines_sort_as_their_text_does(
            paths in proptest::collection::vec(proptest::collection::vec(0..6_usize, 1..6), 1..30),
        ) {
            let names = ["a", "b", "b c", "b!", "x", "b\u{7f}"];
            let paths: Vec<Vec<&str>> = paths
                .iter()
                .map(|path| path.iter().map(|&name| names[name]).collect())
                .collect();
            let mut counts = std::collections::BTreeMap::new();
            for path in &paths {
                let clean: Vec<_> = path.iter().map(|name| folded(name).into_owned()).collect();
                *counts.entry(clean.join(";") + " ").or_insert(0) += 1;
            }
            let lines: String = counts.iter().map(|(path, count)| format!("{path}{count}\n")).collect();
            let slices: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
            proptest::prop_assert_eq!(written(&tree(&slices)), lines);
        }
    }
}
