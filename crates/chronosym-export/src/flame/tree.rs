//! The call tree of a series, by what a flame graph draws: rows of one kind of code.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use chronosym::{Certainty, Frame, ResolvedStack, ThreadIndex};
use rustc_hash::FxHashMap;

use crate::kind::CodeKind;
use crate::series::Series;
use crate::tables::Table;

/// How boxes are coloured; the style has a class of each name.
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

/// In a tree of more nodes than this…
const MANY: usize = 50_000;
/// …boxes below this part of the whole are joined with those beside them: none of them could be seen.
const LEAST: u64 = 20_000;

/// What boxes are of.
pub(super) struct FlameBox {
    pub name: String,
    /// Of [`KINDS`].
    pub kind: u8,
    pub details: Vec<String>,
}

#[derive(Clone, Copy)]
pub(super) struct Node {
    pub frame: u32,
    parent: u32,
    pub own: u64,
    pub total: u64,
}

const ROOT: u32 = u32::MAX;

/// Boxes, and the tree in preorder.
pub(super) struct Tree {
    pub frames: Vec<FlameBox>,
    /// (depth, node): callers before callees, siblings by name.
    pub nodes: Vec<(usize, Node)>,
}

/// What a box is of, by number.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Of {
    Place(String, u8),
    Row { row: u32, kind: u8, is_guess: bool },
    Rest,
}

/// What its frames have in common, and what not.
#[derive(Default)]
struct Facts<'s> {
    tiers: BTreeSet<&'s str>,
    /// (file, first line, last line)
    lines: Option<(&'s str, u32, u32)>,
    sources: BTreeSet<(&'s str, &'s str)>,
    reasons: BTreeSet<&'s str>,
}

impl<'s> Facts<'s> {
    fn add(&mut self, frame: &'s Frame) {
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

    fn words(&self, module: Option<&str>) -> Vec<String> {
        let list = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(", ");
        let mut words = Vec::new();
        words.extend(module.map(|module| format!("module {module}")));
        if !self.tiers.is_empty() {
            words.push(format!("tier {}", list(&self.tiers)));
        }
        if let Some((file, first, last)) = self.lines {
            let file = chronosym::file_name(file);
            words.push(match first == last {
                true => format!("{file}:{first}"),
                false => format!("{file}:{first}–{last}"),
            });
        }
        if !self.sources.is_empty() {
            let sources = self
                .sources
                .iter()
                .map(|(e, c)| format!("{e} {c}").trim_end().to_owned());
            words.push(format!(
                "known by {}",
                sources.collect::<Vec<_>>().join(", ")
            ));
        }
        if !self.reasons.is_empty() {
            words.push(format!("no name: {}", list(&self.reasons)));
        }
        words
    }
}

impl Tree {
    pub fn new(series: &Series) -> Tree {
        let resolver = &series.resolver;
        let rows = series.rows();
        let mut boxes: Table<Of> = Table::starting_with(Of::Rest);
        let mut facts: FxHashMap<usize, Facts<'_>> = FxHashMap::default();
        let of_frame: Vec<u32> = resolver
            .frames()
            .iter()
            .map(|frame| {
                let kind = if frame.inlined && frame.name().is_ok() {
                    INLINED
                } else {
                    CodeKind::of(frame) as u8
                };
                let id = boxes.id(Of::Row {
                    row: rows.of[frame.function.id().index()],
                    kind,
                    is_guess: frame.certainty == Some(Certainty::Approximate),
                });
                facts.entry(id).or_default().add(frame);
                id as u32
            })
            .collect();

        let mut nodes: Vec<Node> = Vec::new();
        let mut index: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut node = |frame: u32, parent: u32| -> u32 {
            *index.entry((frame, parent)).or_insert_with(|| {
                nodes.push(Node {
                    frame,
                    parent,
                    own: 0,
                    total: 0,
                });
                nodes.len() as u32 - 1
            })
        };
        let mut roots: FxHashMap<ThreadIndex, u32> = FxHashMap::default();
        let mut known: FxHashMap<(u32, ResolvedStack), u32> = FxHashMap::default();
        let mut own: Vec<(u32, u64)> = Vec::new();
        let mut path = Vec::new();
        for total in series.stacks() {
            let root = *roots.entry(total.thread).or_insert_with(|| {
                let (process, thread) = series.places(total.thread);
                let process = node(boxes.id(Of::Place(process, PROCESS)) as u32, ROOT);
                node(boxes.id(Of::Place(thread, THREAD)) as u32, process)
            });
            let (mut at, mut top) = (Some(total.stack), root);
            while let Some(stack) = at {
                if let Some(&found) = known.get(&(root, stack)) {
                    top = found;
                    break;
                }
                path.push(stack);
                at = resolver.caller(stack);
            }
            while let Some(stack) = path.pop() {
                top = node(of_frame[resolver.leaf(stack).index()], top);
                known.insert((root, stack), top);
            }
            own.push((top, total.weight));
        }
        for (node, weight) in own {
            nodes[node as usize].own = nodes[node as usize].own.saturating_add(weight);
        }
        let frame = |(id, of): (usize, &Of)| match of {
            Of::Place(name, kind) => FlameBox {
                name: name.clone(),
                kind: *kind,
                details: Vec::new(),
            },
            Of::Row {
                row,
                kind,
                is_guess,
            } => {
                let row = &rows.rows[*row as usize];
                let guess = if *is_guess { "~" } else { "" };
                let module = row.function.binary().map(|binary| binary.name());
                FlameBox {
                    name: format!("{guess}{row}{}", row.signature),
                    kind: *kind,
                    details: facts
                        .get(&id)
                        .map_or(Vec::new(), |facts| facts.words(module)),
                }
            }
            Of::Rest => FlameBox {
                name: "(branches too small to be seen)".to_owned(),
                kind: REST,
                details: Vec::new(),
            },
        };
        let frames: Vec<FlameBox> = boxes.rows.iter().enumerate().map(frame).collect();
        let nodes = preorder(nodes, &frames);
        Tree { frames, nodes }
    }

    /// The weight of all.
    pub fn total(&self) -> u64 {
        let roots = self.nodes.iter().filter(|(depth, _)| *depth == 0);
        roots.fold(0, |sum: u64, (_, node)| sum.saturating_add(node.total))
    }
}

/// Adds up the totals, and puts callers before callees.
fn preorder(mut nodes: Vec<Node>, frames: &[FlameBox]) -> Vec<(usize, Node)> {
    for node in &mut nodes {
        node.total = node.own;
    }
    // A callee always comes after its caller.
    let mut whole = 0u64;
    for index in (0..nodes.len()).rev() {
        let node = nodes[index];
        match nodes.get_mut(node.parent as usize) {
            Some(parent) => parent.total = parent.total.saturating_add(node.total),
            None => whole = whole.saturating_add(node.total),
        }
    }
    let least = if nodes.len() > MANY { whole / LEAST } else { 0 };
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    let mut open: Vec<(usize, Node)> = Vec::new();
    let mut small = vec![0u64; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        if node.parent == ROOT {
            open.push((
                0,
                Node {
                    parent: index as u32,
                    ..*node
                },
            ));
        } else if node.total < least {
            let small = &mut small[node.parent as usize];
            *small = small.saturating_add(node.total);
        } else {
            children[node.parent as usize].push(index as u32);
        }
    }
    let mut rank: Vec<u32> = (0..frames.len() as u32).collect();
    rank.sort_by_key(|&frame| &frames[frame as usize].name);
    let mut place = vec![0u32; frames.len()];
    rank.iter()
        .zip(0..)
        .for_each(|(&frame, at)| place[frame as usize] = at);
    open.sort_by_key(|(_, node)| Reverse(place[node.frame as usize]));
    let mut out = Vec::with_capacity(nodes.len());
    // While a node waits, its parent is its own index.
    while let Some((depth, node)) = open.pop() {
        let index = node.parent as usize;
        out.push((depth, node));
        if small[index] > 0 {
            let rest = Node {
                frame: 0,
                parent: ROOT,
                own: small[index],
                total: small[index],
            };
            out.push((depth + 1, rest));
        }
        let below = &mut children[index];
        below.sort_by_key(|&child| Reverse(place[nodes[child as usize].frame as usize]));
        open.extend(below.iter().map(|&child| {
            (
                depth + 1,
                Node {
                    parent: child,
                    ..nodes[child as usize]
                },
            )
        }));
    }
    out
}
