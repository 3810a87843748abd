//! The call tree of a profile: processes, threads, functions.

use std::fmt;
use std::sync::Arc;

use chronosym_core::{
    Frame, LimitReached, ProcessIndex, Profile, ProfileEntry, Resolver, Share, ThreadIndex,
};
use chronosym_types::TreeIndex;
use chronosym_types::hash::RandomState;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::function_groups::{FunctionGroup, FunctionGroups, Label};
use crate::rare::RareStacks;
use crate::series::thread_label;
use crate::weight::{WeightUnit, add};

/// Which frames share a node of a [`CallTree`].
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug)]
pub struct TreeOptions {
    /// Threads have nodes of their own below their process.
    pub threads: bool,
    /// Frames of one function have a node for each source line.
    pub lines: bool,
    /// Labels state the file with the line.
    pub files: bool,
    /// Unnamed frames of one image have a node for each address.
    pub addresses: bool,
    /// The unit of weights.
    pub unit: WeightUnit,
    /// Whether each node has memory of its own in the output, too: in all but folded stacks.
    pub drawn: bool,
    /// The maximum number of nodes; frames beyond it, first those of the stacks with the fewest
    /// samples, are one node below their caller. By default the memory of the trace limits them: a
    /// small file with a deep stack that thousands of threads share makes a tree of any size.
    pub max_nodes: Option<u32>,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions {
            threads: true,
            lines: false,
            files: false,
            addresses: false,
            unit: WeightUnit::Samples,
            drawn: false,
            max_nodes: None,
        }
    }
}

/// Bytes of a node, with its entries in the index and in the list of callees.
const NODE: u64 = 120;
/// Bytes of a node with its label and its box in a picture.
pub(crate) const DRAWN_NODE: u64 = 800;

/// Returns the number of nodes of `bytes` each that the memory budget and `max_nodes` permit, and
/// which limits them.
pub(crate) fn node_limit(
    resolver: &Resolver,
    bytes: u64,
    max_nodes: Option<u32>,
) -> (usize, LimitReached) {
    let budget = resolver.budget();
    // Ids of nodes are less than 2^32 - 1.
    let by_memory = (budget.left(Share::Outputs) / bytes).min(u64::from(u32::MAX - 1)) as u32;
    match max_nodes.filter(|&max_nodes| max_nodes <= by_memory) {
        Some(most) => (most as usize, LimitReached::TreeNodes(most)),
        None => (by_memory as usize, LimitReached::Memory(budget.bytes())),
    }
}

/// The index of a node of a [`CallTree`].
pub type NodeIndex = u32;

/// A node of a [`CallTree`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub label: u32,
    pub parent: Option<NodeIndex>,
    /// The weight of the samples whose leaf this is.
    pub own: u64,
    /// The minimum and maximum number of frames that it represents, if it represents several.
    pub stands_for: Option<(u32, u32)>,
}

/// Extends a range to contain a number.
pub(crate) fn widen(range: &mut Option<(u32, u32)>, n: u32) {
    let (min, max) = range.unwrap_or((n, n));
    *range = Some((min.min(n), max.max(n)));
}

/// `3 frames`, or `3 to 5 frames`.
pub(crate) fn frames((min, max): (u32, u32)) -> String {
    match (min, max) {
        (1, 1) => "1 frame".to_owned(),
        _ if min == max => format!("{max} frames"),
        _ => format!("{min} to {max} frames"),
    }
}

/// The function, process or thread that a node represents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    Process(ProcessIndex),
    Thread(ThreadIndex),
    /// A group of functions and, where lines have nodes of their own, a line of a file.
    Function(u32, Option<(Option<Arc<str>>, u32)>),
    /// Frames beyond the maximum number of nodes.
    Rest,
}

/// The label of a node.
#[derive(Debug)]
pub(crate) struct NodeLabel {
    group: Option<Arc<FunctionGroup>>,
    /// The whole label, or the part after the function's label.
    text: Box<str>,
}

impl NodeLabel {
    /// Returns the label of a process or thread.
    pub(crate) fn text(text: String) -> Self {
        NodeLabel {
            group: None,
            text: text.into(),
        }
    }

    /// Returns the signature, if another function has the same label.
    pub(crate) fn signature(&self) -> &str {
        self.group.as_ref().map_or("", |group| &group.signature)
    }

    /// Returns the label, and the source line that follows it.
    pub(crate) fn name(&self) -> (Label, &str) {
        match &self.group {
            Some(group) => (group.label(), &self.text),
            None => (Label::plain(self.text.to_string()), ""),
        }
    }

    /// Returns the label as text, with the signature of overloads and the source line.
    pub(crate) fn in_full(&self) -> String {
        let (name, line_text) = self.name();
        format!("{}{}{line_text}", name.text(), self.signature())
    }
}

impl fmt::Display for NodeLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            group.fmt(f)?;
        }
        f.write_str(&self.text)
    }
}

/// The samples of a profile by caller: a node for each distinct path of calls.
#[derive(Debug, Default)]
pub struct CallTree {
    /// The labels, by what they represent.
    pub(crate) labels: IndexMap<Identity, NodeLabel, RandomState>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) unit: WeightUnit,
    /// The label of each frame of the profile that is in the tree.
    pub(crate) frame_labels: Vec<Option<u32>>,
    /// Samples whose innermost frames are beyond the maximum number of nodes.
    left_out: u64,
    limit: Option<LimitReached>,
    node_index: TreeIndex<(u32, Option<NodeIndex>)>,
}

impl CallTree {
    /// Returns the tree of a profile.
    pub fn new(profile: &Profile, options: TreeOptions) -> Self {
        let resolver = &profile.resolver;
        let bytes = if options.drawn { DRAWN_NODE } else { NODE };
        let limit = node_limit(resolver, bytes, options.max_nodes);
        let groups = FunctionGroups::new(resolver, options.addresses);
        let tree = Self::within(limit, profile, &groups, options, None);
        if tree.limit.is_none() {
            return tree;
        }
        // Stacks of one function can share a node, so that all may have room.
        let samples = (profile.entries.iter()).map(|entry| (entry.stack, entry.samples));
        let Some(rare) = RareStacks::new(resolver, samples, limit.0) else {
            return tree;
        };
        drop(tree);
        Self::within(limit, profile, &groups, options, Some(&rare))
    }

    /// Returns the tree with at most so many nodes, without some stacks.
    fn within(
        (max_nodes, limit): (usize, LimitReached),
        profile: &Profile,
        groups: &FunctionGroups,
        options: TreeOptions,
        rare: Option<&RareStacks>,
    ) -> Self {
        let resolver = &profile.resolver;
        let mut tree = CallTree {
            unit: options.unit,
            ..CallTree::default()
        };
        let mut frame_labels: Vec<Option<u32>> = vec![None; resolver.frames().len()];
        let mut roots: FxHashMap<ThreadIndex, Option<NodeIndex>> = FxHashMap::default();
        let root = |entry: &ProfileEntry| {
            let root = roots.entry(entry.thread);
            root.or_insert_with(|| tree.root(profile, entry.thread, options.threads))
                .to_owned()
        };
        let at = profile.entries.iter().map(root).zip(&profile.entries);
        let mut entries: Vec<_> = at
            .filter_map(|(root, entry)| Some((root?, entry)))
            .collect();
        entries.sort_by_key(|(root, _)| *root);
        // By stack, the last root below which it has a node, and the node: the entries of a thread
        // share their callers.
        let mut cache: Vec<Option<(NodeIndex, NodeIndex)>> = vec![None; resolver.stacks().len()];
        let mut path = Vec::new();
        for (root, entry) in entries {
            path.clear();
            let mut node = root;
            let mut at = Some(entry.stack);
            while let Some(stack) = at {
                if let Some((of, cached)) = cache[stack.index()]
                    && of == root
                {
                    node = cached;
                    break;
                }
                path.push(stack);
                at = resolver.caller(stack);
            }
            while let Some(stack) = path.pop() {
                let frame = resolver.leaf(stack);
                let is_rare = rare.is_some_and(|rare| rare.contains(stack));
                let label = (!is_rare).then(|| {
                    *frame_labels[frame.index()].get_or_insert_with(|| {
                        tree.frame_label(resolver.frame(frame), groups, options)
                    })
                });
                let has_room = tree.nodes.len() < max_nodes;
                let next = label.and_then(|label| match has_room {
                    true => Some(tree.node(label, Some(node))),
                    false => tree.find(label, Some(node)),
                });
                let Some(next) = next else {
                    let rest = tree.label(Identity::Rest, || {
                        NodeLabel::text("[frames left out]".into())
                    });
                    node = tree.node(rest, Some(node));
                    tree.left_out += entry.samples;
                    tree.limit = Some(limit);
                    break;
                };
                node = next;
                if let Some(frames) = resolver.stands_for(frame) {
                    widen(&mut tree.nodes[node as usize].stands_for, frames);
                }
                cache[stack.index()] = Some((root, node));
            }
            add(
                &mut tree.nodes[node as usize].own,
                options.unit.weight(entry),
            );
        }
        tree.frame_labels = frame_labels;
        tree
    }

    /// Returns the number of samples whose innermost frames were left out: the tree would have more
    /// than [`TreeOptions::max_nodes`] nodes, or take more than the memory budget.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the limit that left out frames.
    pub fn limit(&self) -> Option<LimitReached> {
        self.limit
    }

    /// Returns the node of a thread or, without threads, of its process.
    fn root(&mut self, profile: &Profile, index: ThreadIndex, threads: bool) -> Option<NodeIndex> {
        let timeline = profile.resolver.timeline();
        let thread = timeline.thread_view(index)?;
        let process = timeline.process_view(thread.process)?;
        let label = self.label(Identity::Process(thread.process), || {
            NodeLabel::text(process.label())
        });
        let root = self.node(label, None);
        if !threads {
            return Some(root);
        }
        let label = self.label(Identity::Thread(index), || {
            NodeLabel::text(thread_label(&thread))
        });
        Some(self.node(label, Some(root)))
    }

    fn frame_label(&mut self, frame: &Frame, groups: &FunctionGroups, options: TreeOptions) -> u32 {
        let group = groups.of[frame.function.id().index()];
        let line = frame.line.as_ref().ok().filter(|_| options.lines);
        let file = |file: &Arc<str>| options.files.then(|| Arc::clone(file));
        let line_text = line.map(|line| (file(&line.file), line.line));
        let text = match &line_text {
            None => String::new(),
            Some((None, line)) => format!(":{line}"),
            Some((Some(file), line)) => format!("  {}:{line}", chronosym_core::file_name(file)),
        };
        let row_of = &groups.all[group as usize];
        self.label(Identity::Function(group, line_text), || NodeLabel {
            group: Some(Arc::clone(row_of)),
            text: text.into(),
        })
    }

    fn label(&mut self, identity: Identity, make: impl FnOnce() -> NodeLabel) -> u32 {
        let label = self.labels.entry(identity);
        let index = label.index() as u32;
        label.or_insert_with(make);
        index
    }

    /// Returns the node of a label below a parent, if there is one.
    fn find(&self, label: u32, parent: Option<NodeIndex>) -> Option<NodeIndex> {
        let get = |at| self.nodes.get(at as usize).map(|it| (it.label, it.parent));
        let before = parent.unwrap_or(u32::MAX);
        self.node_index.find(&(label, parent), before, get)
    }

    fn node(&mut self, label: u32, parent: Option<NodeIndex>) -> NodeIndex {
        self.find(label, parent).unwrap_or_else(|| {
            let next = self.nodes.len() as NodeIndex;
            let before = parent.unwrap_or(u32::MAX);
            self.node_index.insert((label, parent), before, next);
            self.nodes.push(Node {
                label,
                parent,
                own: 0,
                stands_for: None,
            });
            next
        })
    }

    /// Returns the weight of each node with all nodes below it.
    pub(crate) fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|n| n.own).collect();
        // A child always comes after its parent.
        for index in (0..self.nodes.len()).rev() {
            if let Some(parent) = self.nodes[index].parent {
                let total = totals[index];
                add(&mut totals[parent as usize], total);
            }
        }
        totals
    }
}
