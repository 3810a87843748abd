//! The data of a flame graph: one call tree, or two that are compared.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use chronosym_core::{Frame, Profile};
use chronosym_types::hash::RandomState;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::call_tree::{CallTree, Identity, frames, widen};
use crate::header::title;
use crate::kind::CodeKind;
use crate::weight::{WeightUnit, add};

/// The colours of boxes: classes of the style sheet.
pub(super) const KINDS: [&str; 11] = [
    "managed",
    "framework",
    "runtime",
    "native",
    "kernel",
    "stub",
    "unnamed",
    "inlined",
    "process",
    "thread",
    "rest",
];
const INLINED: u8 = 7;
const PROCESS: u8 = 8;
const THREAD: u8 = 9;
const REST: u8 = 10;

/// The colours of boxes of two trees: classes from much less to much more.
const CHANGES: [&str; 7] = ["less3", "less2", "less1", "same", "more1", "more2", "more3"];

/// Number of nodes of a large graph.
const MANY: usize = 50_000;
/// In a large graph, boxes narrower than this fraction of the whole are merged with their siblings:
/// they would be invisible.
const LEAST: u64 = 20_000;
/// The weight of each of two trees, of which percentages are compared.
const WHOLE: u64 = 1_000_000_000;

/// A function, process or thread that boxes show.
pub(super) struct FlameBox {
    pub name: String,
    /// An index of [`KINDS`].
    pub kind: u8,
    pub details: Vec<String>,
}

/// The weight in each of two trees; a single tree is the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weights {
    pub before: u64,
    pub after: u64,
}

impl Weights {
    fn add(&mut self, other: Weights) {
        add(&mut self.before, other.before);
        add(&mut self.after, other.after);
    }

    /// Returns the weight that the width of a box shows.
    pub fn sum(self) -> u64 {
        self.before.saturating_add(self.after)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Node {
    /// The index of its [`FlameBox`].
    pub of: u32,
    parent: Option<u32>,
    pub own: Weights,
    pub total: Weights,
}

impl Node {
    fn new(of: u32, parent: Option<u32>, own: Weights) -> Self {
        let total = own;
        Node {
            of,
            parent,
            own,
            total,
        }
    }
}

/// Boxes, and the tree in preorder.
pub(super) struct Graph {
    pub title: String,
    /// The unit of weights; `None` if percentages of two trees are compared.
    pub unit: Option<WeightUnit>,
    pub boxes: Vec<FlameBox>,
    /// Depth and node: callers precede callees, siblings are sorted by name.
    pub nodes: Vec<(usize, Node)>,
}

impl Graph {
    /// Returns the graph of one profile.
    pub fn of(profile: &Profile, tree: &CallTree) -> Self {
        let node = |node: &crate::call_tree::Node| {
            let (before, after) = (0, node.own);
            Node::new(node.label, node.parent, Weights { before, after })
        };
        let kinds = profile.entries.iter().map(|entry| entry.kind);
        let weight = tree.unit.total(profile);
        Graph::new(
            title(kinds, profile.samples(), tree.unit, weight),
            Some(tree.unit),
            boxes(profile, tree),
            tree.nodes.iter().map(node).collect(),
        )
    }

    /// Returns the graph of two profiles: their percentages by function name. Processes and threads
    /// are left out, because their ids differ.
    pub fn between(before: (&Profile, &CallTree), after: (&Profile, &CallTree)) -> Self {
        type Boxes = IndexMap<String, FlameBox, RandomState>;
        type Nodes = IndexMap<(u32, Option<u32>), Weights, FxBuildHasher>;
        let (mut boxes, mut nodes) = (Boxes::default(), Nodes::default());
        // The details of a box are those of the second profile, if it is in both.
        for (is_after, (profile, tree)) in [(true, after), (false, before)] {
            let of_label = self::boxes(profile, tree).into_iter().map(|flame| {
                let entry = boxes.entry(flame.name.clone());
                let index = entry.index() as u32;
                entry.or_insert(flame);
                index
            });
            let of_label: Vec<u32> = of_label.collect();
            let whole = tree
                .nodes
                .iter()
                .fold(0, |sum: u64, node| sum.saturating_add(node.own));
            let share = |own: u64| {
                let share = u128::from(own) * u128::from(WHOLE) / u128::from(whole.max(1));
                // At most `WHOLE`.
                share as u64
            };
            let mut of_node: Vec<Option<u32>> = Vec::with_capacity(tree.nodes.len());
            for node in &tree.nodes {
                let parent = node.parent.and_then(|parent| of_node[parent as usize]);
                let of = of_label[node.label as usize];
                let is_process_or_thread = matches!(boxes[of as usize].kind, PROCESS | THREAD);
                of_node.push((!is_process_or_thread).then(|| {
                    let entry = nodes.entry((of, parent));
                    let (index, share) = (entry.index() as u32, share(node.own));
                    let own = entry.or_default();
                    add(
                        if is_after {
                            &mut own.after
                        } else {
                            &mut own.before
                        },
                        share,
                    );
                    index
                }));
            }
        }
        let what = after.1.unit.as_str();
        let title = format!("shares of {what}, before and after: blue is less, red is more");
        let nodes = nodes.into_iter();
        let nodes = nodes.map(|((of, parent), own)| Node::new(of, parent, own));
        Graph::new(title, None, boxes.into_values().collect(), nodes.collect())
    }

    fn new(
        title: String,
        unit: Option<WeightUnit>,
        mut boxes: Vec<FlameBox>,
        nodes: Vec<Node>,
    ) -> Self {
        boxes.push(FlameBox {
            name: "(branches too small to show)".to_owned(),
            kind: REST,
            details: Vec::new(),
        });
        Graph {
            title,
            unit,
            nodes: preorder(nodes, &boxes),
            boxes,
        }
    }

    /// Returns the weight of all roots.
    pub fn total(&self) -> Weights {
        let mut total = Weights::default();
        let roots = self.nodes.iter().filter(|(depth, _)| *depth == 0);
        roots.for_each(|(_, node)| total.add(node.total));
        total
    }

    /// Returns a weight and its percentage as text.
    pub fn amount(&self, weight: Weights, whole: Weights) -> String {
        match self.unit {
            Some(unit) => unit.amount(weight.sum(), whole.sum()),
            None => {
                let percent = |share: u64| share as f64 * 100.0 / WHOLE as f64;
                let (before, after) = (percent(weight.before), percent(weight.after));
                format!("{before:.1} % → {after:.1} %")
            }
        }
    }

    /// Returns the class that colours a node: the kind of its code or, for two profiles, the change
    /// of its percentage.
    pub fn class(&self, node: &Node) -> &'static str {
        if self.unit.is_some() {
            return KINDS[self.boxes[node.of as usize].kind as usize];
        }
        let Weights { before, after } = node.total;
        let sum = node.total.sum().max(1) as f64;
        let change = (after as f64 - before as f64) / sum;
        // The script computes the same.
        CHANGES[((change * 3.0).round() + 3.0) as usize]
    }
}

/// Returns a box for each label of a tree.
fn boxes(profile: &Profile, tree: &CallTree) -> Vec<FlameBox> {
    let mut facts: Vec<BoxDetails<'_>> = Vec::new();
    facts.resize_with(tree.labels.len(), BoxDetails::default);
    let resolver = &profile.resolver;
    for (id, label) in resolver.frame_ids().zip(&tree.frame_labels) {
        if let Some(label) = label {
            let facts = &mut facts[*label as usize];
            facts.add(resolver.frame(id));
            if let Some(frames) = resolver.stands_for(id) {
                widen(&mut facts.stands_for, frames);
            }
        }
    }
    let labels = tree.labels.iter().zip(facts);
    labels
        .map(|((identity, label), facts)| FlameBox {
            name: label.in_full(),
            kind: match identity {
                Identity::Process(_) => PROCESS,
                Identity::Thread(_) => THREAD,
                Identity::Rest => REST,
                Identity::Function(..) => facts.kind(),
            },
            details: facts.words(),
        })
        .collect()
}

/// The properties shared by the frames of a box.
#[derive(Default)]
struct BoxDetails<'s> {
    module: Option<&'s str>,
    kind: Option<CodeKind>,
    inlined: u32,
    frames: u32,
    tiers: BTreeSet<&'s str>,
    /// File, first line, last line.
    lines: Option<(&'s str, u32, u32)>,
    sources: BTreeSet<(&'s str, &'s str)>,
    reasons: BTreeSet<&'s str>,
    /// The minimum and maximum number of frames that one of them represents.
    stands_for: Option<(u32, u32)>,
}

impl<'s> BoxDetails<'s> {
    fn add(&mut self, frame: &'s Frame) {
        self.module = self.module.or(frame.module());
        self.kind.get_or_insert_with(|| CodeKind::of(frame));
        self.inlined += u32::from(frame.inlined);
        self.frames += 1;
        self.tiers.extend(frame.tier.map(|tier| tier.name()));
        if let Ok(line) = &frame.line {
            let (_, first, last) = self.lines.get_or_insert((&line.file, line.line, line.line));
            (*first, *last) = ((*first).min(line.line), (*last).max(line.line));
        }
        if let Some(evidence) = frame.evidence {
            let certainty = frame.certainty.map_or("", |certainty| certainty.as_str());
            self.sources.insert((evidence.as_str(), certainty));
        }
        self.reasons
            .extend(frame.name().err().map(|reason| reason.as_str()));
    }

    fn kind(&self) -> u8 {
        match self.kind {
            Some(CodeKind::Unnamed) | None => CodeKind::Unnamed as u8,
            Some(_) if self.inlined == self.frames => INLINED,
            Some(kind) => kind as u8,
        }
    }

    fn words(&self) -> Vec<String> {
        let list = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(", ");
        let mut words = Vec::new();
        words.extend(self.stands_for.map(frames));
        words.extend(self.module.map(|module| format!("module {module}")));
        if !self.tiers.is_empty() {
            words.push(format!("tier {}", list(&self.tiers)));
        }
        if self.inlined > 0 {
            let part = if self.inlined < self.frames {
                " in part"
            } else {
                ""
            };
            words.push(format!("inlined{part}"));
        }
        if let Some((file, first, last)) = self.lines {
            let file = chronosym_core::file_name(file);
            words.push(match first == last {
                true => format!("{file}:{first}"),
                false => format!("{file}:{first}–{last}"),
            });
        }
        if !self.sources.is_empty() {
            let sources = self.sources.iter();
            let sources = sources.map(|(e, c)| format!("{e} {c}").trim_end().to_owned());
            let sources = sources.collect::<Vec<_>>().join(", ");
            words.push(format!("named from {sources}"));
        }
        if !self.reasons.is_empty() {
            words.push(format!("no name: {}", list(&self.reasons)));
        }
        words
    }
}

/// Adds up the totals, and sorts callers before callees.
fn preorder(mut nodes: Vec<Node>, boxes: &[FlameBox]) -> Vec<(usize, Node)> {
    nodes.iter_mut().for_each(|node| node.total = node.own);
    // A callee always follows its caller.
    let mut whole = 0;
    for index in (0..nodes.len()).rev() {
        let Node { parent, total, .. } = nodes[index];
        match parent {
            Some(parent) => nodes[parent as usize].total.add(total),
            None => add(&mut whole, total.sum()),
        }
    }
    let least = if nodes.len() > MANY { whole / LEAST } else { 0 };
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    let mut small = vec![Weights::default(); nodes.len()];
    let mut open: Vec<(usize, u32)> = Vec::new();
    for (index, node) in (0..).zip(&nodes) {
        match node.parent {
            None => open.push((0, index)),
            Some(parent) if node.total.sum() < least => small[parent as usize].add(node.total),
            Some(parent) => children[parent as usize].push(index),
        }
    }
    let mut rank: Vec<u32> = (0..boxes.len() as u32).collect();
    rank.sort_by_key(|&flame| &boxes[flame as usize].name);
    let mut rank_of = vec![0u32; boxes.len()];
    let ranked = rank.iter().zip(0..);
    ranked.for_each(|(&flame, at)| rank_of[flame as usize] = at);
    // The last is taken first.
    let by_name = |&index: &u32| Reverse(rank_of[nodes[index as usize].of as usize]);
    open.sort_by_key(|(_, index)| by_name(index));
    let mut out = Vec::with_capacity(nodes.len());
    while let Some((depth, index)) = open.pop() {
        out.push((depth, nodes[index as usize]));
        let rest = small[index as usize];
        if rest.sum() > 0 {
            let of = boxes.len() as u32 - 1;
            out.push((depth + 1, Node::new(of, Some(index), rest)));
        }
        let below = &mut children[index as usize];
        below.sort_by_key(by_name);
        open.extend(below.iter().map(|&child| (depth + 1, child)));
    }
    out
}
