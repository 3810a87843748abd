//! The distinct stacks of a report: a tree of frames, and the properties that frames share.

use std::sync::Arc;

use chronosym_core::{Certainty, Evidence, Frame, FrameId, LineReason, NameReason, ResolvedStack};
use chronosym_types::hash::RandomState;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::columns::{Columns, deltas};
use crate::call_tree::{DRAWN_NODE, node_limit};
use crate::function_groups::FunctionGroups;
use crate::rare::RareStacks;
use crate::series::Series;
use crate::tables::Numbered;

/// A function of a report: its group and, if lines are separated, file from 1 and line.
type ReportFunction = (u32, u32, u32);

/// The function that replaces frames beyond the limit.
const LEFT_OUT: ReportFunction = (u32::MAX, 0, 0);

/// The properties that frames of one function and line share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FrameFacts {
    pub tier: &'static str,
    pub evidence: Option<Evidence>,
    pub certainty: Option<Certainty>,
    pub name_reason: Option<NameReason>,
    pub line_reason: Option<LineReason>,
    pub inlined: bool,
    pub after_loss: bool,
}

/// A frame of a report: an index of [`Calls::functions`], file from 1 and line, facts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ReportFrame {
    function: u32,
    file: u32,
    line: u32,
    facts: u32,
}

/// A frame and its caller.
type Node = (u32, Option<u32>);

pub(super) struct Calls<'s> {
    series: &'s Series,
    pub groups: FunctionGroups,
    /// The functions that are on stacks.
    pub functions: Numbered<ReportFunction>,
    pub files: Numbered<Arc<str>>,
    pub facts: Numbered<FrameFacts>,
    /// With the address of the first frame of each, and that frame.
    frames: IndexMap<ReportFrame, (u64, FrameId), RandomState>,
    frame_of: FxHashMap<FrameId, u32>,
    nodes: Numbered<Node>,
    node_of: FxHashMap<ResolvedStack, u32>,
    max_nodes: usize,
    rare: Option<RareStacks>,
    /// The number of stacks whose innermost frames were left out.
    pub cut: u64,
}

impl<'s> Calls<'s> {
    pub fn new(series: &'s Series, max_nodes: u32) -> Self {
        let (max_nodes, _) = node_limit(&series.resolver, DRAWN_NODE, Some(max_nodes));
        Self::within(series, series.groups(), max_nodes)
    }

    fn within(series: &'s Series, groups: FunctionGroups, max_nodes: usize) -> Self {
        Calls {
            series,
            groups,
            functions: Numbered::default(),
            files: Numbered::default(),
            facts: Numbered::default(),
            frames: IndexMap::default(),
            frame_of: FxHashMap::default(),
            nodes: Numbered::default(),
            node_of: FxHashMap::default(),
            max_nodes,
            rare: None,
            cut: 0,
        }
    }

    /// Starts again without the stacks with the fewest samples.
    pub fn without_rare(self) -> Self {
        let samples = (self.series.samples.iter()).map(|sample| (sample.stack, 1));
        Calls {
            rare: RareStacks::new(&self.series.resolver, samples, self.max_nodes),
            ..Calls::within(self.series, self.groups, self.max_nodes)
        }
    }

    /// Returns the node of a stack.
    pub fn node(&mut self, stack: ResolvedStack) -> u32 {
        let resolver = &self.series.resolver;
        let (mut path, mut node, mut at) = (Vec::new(), None, Some(stack));
        while let Some(stack) = at {
            if let Some(&known) = self.node_of.get(&stack) {
                node = Some(known);
                break;
            }
            path.push(stack);
            at = resolver.caller(stack);
        }
        while let Some(at) = path.pop() {
            let index = match self.rare.as_ref().is_some_and(|rare| rare.contains(at)) {
                true => None,
                false => self.index(resolver.leaf(at), node),
            };
            let Some(index) = index else {
                let index = self.left_out_below(node);
                self.node_of.insert(stack, index);
                return index;
            };
            self.node_of.insert(at, index);
            node = Some(index);
        }
        node.unwrap_or_default()
    }

    /// Returns the node of a frame below another; `None` if there is no room for it.
    fn index(&mut self, frame: FrameId, caller: Option<u32>) -> Option<u32> {
        let key = (self.frame(frame), caller);
        let index = match self.nodes.len() < self.max_nodes {
            true => Some(self.nodes.insert_full(key).0),
            false => self.nodes.get_index_of(&key),
        };
        index.map(|index| index as u32)
    }

    /// Returns the node of the frames that are left out below `node`.
    fn left_out_below(&mut self, node: Option<u32>) -> u32 {
        self.cut += 1;
        let rest = self.left_out();
        match node {
            Some(node) if self.nodes[node as usize].0 == rest => node,
            _ => self.nodes.insert_full((rest, node)).0 as u32,
        }
    }

    /// Returns the node of each stack.
    pub fn into_nodes(self) -> FxHashMap<ResolvedStack, u32> {
        self.node_of
    }

    fn left_out(&mut self) -> u32 {
        let function = self.functions.insert_full(LEFT_OUT).0 as u32;
        let facts = FrameFacts {
            tier: "",
            evidence: None,
            certainty: None,
            name_reason: Some(NameReason::LimitReached),
            line_reason: None,
            inlined: false,
            after_loss: false,
        };
        let facts = self.facts.insert_full(facts).0 as u32;
        let (file, line) = (0, 0);
        let frame = ReportFrame {
            function,
            file,
            line,
            facts,
        };
        let first = self.series.resolver.frame_ids().next();
        let entry = self.frames.entry(frame);
        let index = entry.index() as u32;
        // A stack was left out, so there is a frame.
        if let Some(first) = first {
            entry.or_insert((0, first));
        }
        index
    }

    fn frame(&mut self, id: FrameId) -> u32 {
        if let Some(&known) = self.frame_of.get(&id) {
            return known;
        }
        let frame = self.series.resolver.frame(id);
        let group = self.groups.of_frame(frame) as u32;
        let (file, line) = match &frame.line {
            Ok(at) => (
                self.files.insert_full(Arc::clone(&at.file)).0 as u32 + 1,
                at.line,
            ),
            Err(_) => (0, 0),
        };
        let at = match self.series.granularity.lines {
            true => (group, file, line),
            false => (group, 0, 0),
        };
        let function = self.functions.insert_full(at).0 as u32;
        let facts = self.facts.insert_full(facts_of(frame)).0 as u32;
        let merged = ReportFrame {
            function,
            file,
            line,
            facts,
        };
        let entry = self.frames.entry(merged);
        let index = entry.index() as u32;
        entry.or_insert((frame.address, id));
        self.frame_of.insert(id, index);
        index
    }

    /// Returns the group of each function and its line, 0 unless lines are separated; `None` for
    /// frames that were left out.
    pub fn function_groups(&self) -> impl Iterator<Item = Option<(usize, u32)>> {
        let functions = self.functions.iter();
        functions.map(|&at| (at != LEFT_OUT).then_some((at.0 as usize, at.2)))
    }

    /// One frame of each function.
    pub fn example_of_functions(&self) -> Vec<&'s Frame> {
        let resolver = &self.series.resolver;
        let mut examples: Vec<Option<&Frame>> = vec![None; self.functions.len()];
        for (frame, (_, id)) in &self.frames {
            examples[frame.function as usize].get_or_insert(resolver.frame(*id));
        }
        // Every function has a frame.
        examples.into_iter().flatten().collect()
    }

    /// One frame of each file.
    pub fn example_of_files(&self) -> Vec<&'s Frame> {
        let resolver = &self.series.resolver;
        let mut examples: Vec<Option<&Frame>> = vec![None; self.files.len()];
        for (frame, (_, id)) in self.frames.iter().filter(|(frame, _)| frame.file > 0) {
            examples[frame.file as usize - 1].get_or_insert(resolver.frame(*id));
        }
        examples.into_iter().flatten().collect()
    }

    /// Adds the frames and the tree, callers before callees, to `columns`. Returns the place of
    /// each node in that order.
    pub fn write(&self, columns: &mut Columns) -> Vec<u32> {
        let of_frame = |part: fn(&ReportFrame) -> u32| {
            let frames = self.frames.keys();
            frames.map(move |frame| u64::from(part(frame)))
        };
        columns.add("frame.function", of_frame(|frame| frame.function));
        columns.add("frame.file", of_frame(|frame| frame.file));
        columns.add("frame.line", of_frame(|frame| frame.line));
        columns.add("frame.facts", of_frame(|frame| frame.facts));
        // In halves: numbers of JavaScript have 53 bits.
        let addresses = || self.frames.values().map(|(address, _)| address);
        columns.add("frame.address.high", addresses().map(|at| at >> 32));
        columns.add("frame.address.low", addresses().map(|at| at & 0xffff_ffff));
        let (order, depths) = self.preorder();
        let mut place = vec![0; order.len()];
        for (&node, at) in order.iter().zip(0..) {
            place[node as usize] = at;
        }
        columns.add(
            "stack.depth",
            deltas(depths.iter().map(|&depth| u64::from(depth))),
        );
        let frames = order
            .iter()
            .map(|&node| u64::from(self.nodes[node as usize].0));
        columns.add("stack.frame", frames);
        place
    }

    /// Returns the nodes in preorder, with their depths.
    fn preorder(&self) -> (Vec<u32>, Vec<u32>) {
        // Linked lists of children: the last child, and for each node the sibling before it.
        let mut last_child = vec![u32::MAX; self.nodes.len() + 1];
        let mut before = vec![u32::MAX; self.nodes.len()];
        for (index, (_, caller)) in self.nodes.iter().enumerate() {
            let parent = caller.map_or(self.nodes.len(), |caller| caller as usize);
            before[index] = std::mem::replace(&mut last_child[parent], index as u32);
        }
        let (mut order, mut depths) = (Vec::new(), Vec::new());
        let mut work = Vec::new();
        let push_children = |parent: usize, depth: u32, work: &mut Vec<(u32, u32)>| {
            let mut child = last_child[parent];
            while child != u32::MAX {
                work.push((child, depth));
                child = before[child as usize];
            }
        };
        push_children(self.nodes.len(), 0, &mut work);
        while let Some((node, depth)) = work.pop() {
            order.push(node);
            depths.push(depth);
            push_children(node as usize, depth + 1, &mut work);
        }
        (order, depths)
    }
}

fn facts_of(frame: &Frame) -> FrameFacts {
    FrameFacts {
        tier: frame.tier.map_or("", |tier| tier.name()),
        evidence: frame.evidence,
        certainty: frame.certainty,
        name_reason: frame.name_reason(),
        line_reason: frame.line_reason(),
        inlined: frame.inlined,
        after_loss: frame.after_loss,
    }
}
