//! The call tree of a profile: processes, threads, functions.

use std::fmt;
use std::sync::Arc;

use chronosym_core::{Frame, ProcessIndex, Profile, ProfileEntry, ResolvedStack, ThreadIndex};
use chronosym_types::hash::RandomState;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use crate::function_groups::{FunctionGroup, FunctionGroups, Label};
use crate::series::thread_label;
use crate::weight::{WeightUnit, add};

/// What makes up the nodes of a [`CallTree`].
#[derive(Clone, Copy, Debug)]
pub struct TreeOptions {
    /// A node for each thread below its process.
    pub threads: bool,
    /// Frames of different source lines are different nodes.
    pub lines: bool,
    /// Lines stand with the names of their files.
    pub files: bool,
    /// Frames without a name in one image are different nodes.
    pub addresses: bool,
    /// What samples are counted in.
    pub unit: WeightUnit,
    /// The most nodes; what would need more stands as one node below its caller. 1,500,000, some 150 MB: a stack that
    /// thousands of threads share is a small file and a tree of any size.
    pub max_nodes: u32,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions {
            threads: true,
            lines: false,
            files: false,
            addresses: false,
            unit: WeightUnit::Samples,
            max_nodes: 1_500_000,
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
    /// What samples come to whose innermost frame this is.
    pub own: u64,
    /// The fewest and the most frames that it stands for, if it stands for several of a stack.
    pub stands_for: Option<(u32, u32)>,
}

/// Widens a range, so that it has this number.
pub(crate) fn widen(range: &mut Option<(u32, u32)>, n: u32) {
    let (least, most) = range.unwrap_or((n, n));
    *range = Some((least.min(n), most.max(n)));
}

/// `3 frames`, or `3 to 5 frames`.
pub(crate) fn frames((least, most): (u32, u32)) -> String {
    match (least, most) {
        (1, 1) => "1 frame".to_owned(),
        _ if least == most => format!("{most} frames"),
        _ => format!("{least} to {most} frames"),
    }
}

/// What a node is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    Process(ProcessIndex),
    Thread(ThreadIndex),
    /// A row of functions, and a line of a file.
    Function(u32, Option<(Option<Arc<str>>, u32)>),
    /// Frames that are left out.
    Rest,
}

/// What a node is called.
#[derive(Debug)]
pub(crate) struct NodeLabel {
    row: Option<Arc<FunctionGroup>>,
    /// A name of its own, or what follows the function's.
    text: Box<str>,
}

impl NodeLabel {
    /// That of a process or thread.
    pub(crate) fn text(text: String) -> Self {
        NodeLabel {
            row: None,
            text: text.into(),
        }
    }

    /// What sets its function apart from others that look alike.
    pub(crate) fn signature(&self) -> &str {
        self.row.as_ref().map_or("", |row| &row.signature)
    }

    /// What it is called, and the source line that follows.
    pub(crate) fn name(&self) -> (Label, &str) {
        match &self.row {
            Some(row) => (row.name(), &self.text),
            None => (Label::plain(self.text.to_string()), ""),
        }
    }

    /// For people, with what sets its function apart from others that look alike, and the source line.
    pub(crate) fn in_full(&self) -> String {
        let (name, place) = self.name();
        format!("{}{}{place}", name.text(), self.signature())
    }
}

impl fmt::Display for NodeLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(row) = &self.row {
            row.fmt(f)?;
        }
        f.write_str(&self.text)
    }
}

/// The samples of a profile, joined by what their frames are of.
#[derive(Debug, Default)]
pub struct CallTree {
    /// What each label is of, and what that is called.
    pub(crate) labels: IndexMap<Identity, NodeLabel, RandomState>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) unit: WeightUnit,
    /// The label of each frame of the profile that is in the tree.
    pub(crate) frame_labels: Vec<Option<u32>>,
    /// Samples whose innermost frames are left out.
    left_out: u64,
    node_index: FxHashMap<(u32, Option<NodeIndex>), NodeIndex>,
}

impl CallTree {
    /// The tree of a profile.
    pub fn new(profile: &Profile, options: TreeOptions) -> Self {
        let mut tree = CallTree {
            unit: options.unit,
            ..CallTree::default()
        };
        let resolver = &profile.resolver;
        let rows = FunctionGroups::new(resolver, options.addresses);
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
        // Resolved stack → node, for the root of the entry before: entries of a thread share their callers.
        let mut known: FxHashMap<ResolvedStack, NodeIndex> = FxHashMap::default();
        let mut known_of = None;
        let mut path = Vec::new();
        for (root, entry) in entries {
            if known_of.replace(root) != Some(root) {
                known.clear();
            }
            path.clear();
            let mut node = root;
            let mut at = Some(entry.stack);
            while let Some(stack) = at {
                if let Some(&found) = known.get(&stack) {
                    node = found;
                    break;
                }
                path.push(stack);
                at = resolver.caller(stack);
            }
            while let Some(stack) = path.pop() {
                let frame = resolver.leaf(stack);
                let label = *frame_labels[frame.index()]
                    .get_or_insert_with(|| tree.frame_label(resolver.frame(frame), &rows, options));
                if tree.nodes.len() >= options.max_nodes as usize
                    && !tree.node_index.contains_key(&(label, Some(node)))
                {
                    let rest = tree.label(Identity::Rest, || {
                        NodeLabel::text("[frames left out]".into())
                    });
                    node = tree.node(rest, Some(node));
                    tree.left_out += entry.samples;
                    break;
                }
                node = tree.node(label, Some(node));
                if let Some(frames) = resolver.stands_for(frame) {
                    widen(&mut tree.nodes[node as usize].stands_for, frames);
                }
                known.insert(stack, node);
            }
            add(
                &mut tree.nodes[node as usize].own,
                options.unit.weight(entry),
            );
        }
        tree.frame_labels = frame_labels;
        tree
    }

    /// Samples whose innermost frames were left out, because the tree would have had more nodes than
    /// [`TreeOptions::max_nodes`].
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The node of a thread, or of its process.
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

    fn frame_label(&mut self, frame: &Frame, rows: &FunctionGroups, options: TreeOptions) -> u32 {
        let row = rows.of[frame.function.id().index()];
        let line = frame.line.as_ref().ok().filter(|_| options.lines);
        let file = |file: &Arc<str>| options.files.then(|| Arc::clone(file));
        let place = line.map(|line| (file(&line.file), line.line));
        let text = match &place {
            None => String::new(),
            Some((None, line)) => format!(":{line}"),
            Some((Some(file), line)) => format!("  {}:{line}", chronosym_core::file_name(file)),
        };
        let row_of = &rows.rows[row as usize];
        self.label(Identity::Function(row, place), || NodeLabel {
            row: Some(Arc::clone(row_of)),
            text: text.into(),
        })
    }

    fn label(&mut self, identity: Identity, make: impl FnOnce() -> NodeLabel) -> u32 {
        let label = self.labels.entry(identity);
        let index = label.index() as u32;
        label.or_insert_with(make);
        index
    }

    fn node(&mut self, label: u32, parent: Option<NodeIndex>) -> NodeIndex {
        let next = self.nodes.len() as NodeIndex;
        *self.node_index.entry((label, parent)).or_insert_with(|| {
            self.nodes.push(Node {
                label,
                parent,
                own: 0,
                stands_for: None,
            });
            next
        })
    }

    /// What each node and those below it come to.
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
