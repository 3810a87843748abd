//! The call tree of a profile: processes, threads, frames, by label.

use chronosym::{Frame, Profile};
use rustc_hash::FxHashMap;

/// What makes up the nodes of a [`CallTree`].
#[derive(Clone, Copy, Debug)]
pub struct TreeOptions {
    /// A node for each thread below its process.
    pub threads: bool,
    /// Frames of different source lines are different nodes.
    pub lines: bool,
    /// Lines stand with the names of their files.
    pub files: bool,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions {
            threads: true,
            lines: false,
            files: false,
        }
    }
}

/// Names a node of a [`CallTree`].
pub type NodeIndex = u32;

/// One node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub label: u32,
    pub parent: Option<NodeIndex>,
    /// Samples whose innermost frame this is.
    pub own: u64,
}

/// The samples of a profile, joined by what their frames are called.
#[derive(Debug, Default)]
pub struct CallTree {
    pub(crate) labels: Vec<Box<str>>,
    pub(crate) nodes: Vec<Node>,
    label_index: FxHashMap<Box<str>, u32>,
    node_index: FxHashMap<(u32, Option<NodeIndex>), NodeIndex>,
}

impl CallTree {
    /// The tree of a profile.
    pub fn new(profile: &Profile<'_>, options: TreeOptions) -> Self {
        let mut tree = CallTree::default();
        let timeline = profile.resolver.timeline();
        let mut frame_labels: Vec<Option<u32>> = vec![None; profile.resolver.frames().len()];
        // Resolved stack → node, for the thread of the entry before: entries of a thread share their callers.
        let mut roots: FxHashMap<chronosym::ThreadIndex, NodeIndex> = FxHashMap::default();
        let mut known: FxHashMap<(NodeIndex, chronosym::ResolvedStack), NodeIndex> =
            FxHashMap::default();
        let mut path = Vec::new();
        let mut text = String::new();
        for entry in &profile.entries {
            let root = *roots.entry(entry.thread).or_insert_with(|| {
                let thread = timeline.thread_view(entry.thread);
                let process = timeline.process_view(thread.process);
                let label = process.label();
                let label = tree_label(&mut tree.labels, &mut tree.label_index, &label);
                let mut root = tree.node(label, None);
                if options.threads {
                    let label = format!("{} ({})", thread.name.unwrap_or("thread"), thread.tid);
                    let label = tree_label(&mut tree.labels, &mut tree.label_index, &label);
                    root = tree.node(label, Some(root));
                }
                root
            });
            path.clear();
            let mut node = root;
            let mut at = Some(entry.stack);
            while let Some(stack) = at {
                if let Some(&found) = known.get(&(root, stack)) {
                    node = found;
                    break;
                }
                path.push(stack);
                at = profile.resolver.caller(stack);
            }
            while let Some(stack) = path.pop() {
                let frame = profile.resolver.leaf(stack);
                let label = *frame_labels[frame.index()].get_or_insert_with(|| {
                    text.clear();
                    push_label(profile.resolver.frame(frame), options, &mut text);
                    tree_label(&mut tree.labels, &mut tree.label_index, &text)
                });
                node = tree.node(label, Some(node));
                known.insert((root, stack), node);
            }
            tree.nodes[node as usize].own += entry.samples;
        }
        tree
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&mut self, label: u32, parent: Option<NodeIndex>) -> NodeIndex {
        let next = self.nodes.len() as NodeIndex;
        *self.node_index.entry((label, parent)).or_insert_with(|| {
            self.nodes.push(Node {
                label,
                parent,
                own: 0,
            });
            next
        })
    }

    pub(crate) fn label(&self, node: NodeIndex) -> &str {
        &self.labels[self.nodes[node as usize].label as usize]
    }

    /// Samples in each node and below it.
    pub(crate) fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|n| n.own).collect();
        // A child always comes after its parent.
        for index in (0..self.nodes.len()).rev() {
            if let Some(parent) = self.nodes[index].parent {
                totals[parent as usize] += totals[index];
            }
        }
        totals
    }
}

fn tree_label(labels: &mut Vec<Box<str>>, index: &mut FxHashMap<Box<str>, u32>, text: &str) -> u32 {
    if let Some(&known) = index.get(text) {
        return known;
    }
    let id = labels.len() as u32;
    labels.push(text.into());
    index.insert(text.into(), id);
    id
}

fn push_label(frame: &Frame, options: TreeOptions, out: &mut String) {
    use std::fmt::Write;
    frame.push_label(out);
    if let Some(line) = frame.line.as_ref().filter(|_| options.lines) {
        if options.files {
            let _ = write!(out, "  {}", chronosym::file_name(&line.file));
        }
        let _ = write!(out, ":{}", line.line);
    }
}
