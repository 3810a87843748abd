//! Samples with their stacks resolved.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::frame::{Frame, Position};
use crate::process::{ProcessIndex, ThreadIndex};
use crate::samples::{SampleClass, SampleKind, Weight};
use crate::stacks::StackId;
use crate::symbol_source::SymbolSource;
use crate::timeline::Timeline;

/// A resolved stack of one [`Resolver`]: the node of its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResolvedStack(u32);

/// A frame of one [`Resolver`], dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(u32);

impl FrameId {
    /// The position in [`Resolver::frames`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

const ROOT: u32 = u32::MAX;

/// Answers with the times for which they hold; nearly always there is just one.
type Answers<T> = Vec<(Range<u64>, T)>;

/// Resolves stacks, each distinct one once for each span of time in which the answer is the same.
pub struct Resolver<'t> {
    timeline: &'t Timeline,
    symbols: Option<&'t dyn SymbolSource>,
    frames: Vec<Frame>,
    /// (frame, caller)
    nodes: Vec<(FrameId, u32)>,
    node_index: FxHashMap<(FrameId, u32), u32>,
    by_address: FxHashMap<(ProcessIndex, u64, Position), Answers<Range<u32>>>,
    by_stack: FxHashMap<(ProcessIndex, StackId, Position), Answers<u32>>,
    path: Vec<StackId>,
}

impl<'t> Resolver<'t> {
    /// A resolver with nothing resolved yet.
    pub fn new(timeline: &'t Timeline, symbols: Option<&'t dyn SymbolSource>) -> Self {
        Resolver {
            timeline,
            symbols,
            frames: Vec::new(),
            nodes: Vec::new(),
            node_index: FxHashMap::default(),
            by_address: FxHashMap::default(),
            by_stack: FxHashMap::default(),
            path: Vec::new(),
        }
    }

    /// The stack of a sample, and for which times it is the answer.
    pub fn resolve(&mut self, class: &SampleClass, time_ns: u64) -> (ResolvedStack, Range<u64>) {
        let process = self.timeline.thread(class.thread).process;
        let position = if class.kind.leaf_is_address() {
            Position::Exact
        } else {
            Position::Return
        };
        self.resolve_stack(process, class.stack, time_ns, position)
    }

    /// A stack of a process at a time; `position` says what its innermost address is.
    pub fn resolve_stack(
        &mut self,
        process: ProcessIndex,
        stack: StackId,
        time_ns: u64,
        position: Position,
    ) -> (ResolvedStack, Range<u64>) {
        // Up to a prefix that is known already, then down again.
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let mut known = (ROOT, 0..u64::MAX);
        let mut at = Some(stack);
        while let Some(node) = at {
            let position = if path.is_empty() {
                position
            } else {
                Position::Return
            };
            if let Some(hit) = self.cached(process, node, position, time_ns) {
                known = hit;
                break;
            }
            path.push(node);
            at = self.timeline.stacks.caller(node);
        }
        while let Some(node) = path.pop() {
            let position = if path.is_empty() {
                position
            } else {
                Position::Return
            };
            let address = self.timeline.stacks.address(node);
            let (valid, frames) = self.frames_at(process, address, time_ns, position);
            let mut top = known.0;
            // Frames come innermost first; the tree grows from the outermost.
            for frame in frames.rev() {
                top = self.node(FrameId(frame), top);
            }
            known = (
                top,
                known.1.start.max(valid.start)..known.1.end.min(valid.end),
            );
            self.by_stack
                .entry((process, node, position))
                .or_default()
                .push((known.1.clone(), known.0));
        }
        self.path = path;
        (ResolvedStack(known.0), known.1)
    }

    fn cached(
        &self,
        process: ProcessIndex,
        node: StackId,
        position: Position,
        time: u64,
    ) -> Option<(u32, Range<u64>)> {
        let answers = self.by_stack.get(&(process, node, position))?;
        answers
            .iter()
            .find(|(valid, _)| holds(valid, time))
            .map(|(valid, node)| (*node, valid.clone()))
    }

    fn frames_at(
        &mut self,
        process: ProcessIndex,
        address: u64,
        time: u64,
        position: Position,
    ) -> (Range<u64>, Range<u32>) {
        let answers = self
            .by_address
            .entry((process, address, position))
            .or_default();
        if let Some((valid, frames)) = answers.iter().find(|(valid, _)| holds(valid, time)) {
            return (valid.clone(), frames.clone());
        }
        let expansion = self
            .timeline
            .expand(process, address, time, position, self.symbols);
        let first = self.frames.len() as u32;
        self.frames.extend(expansion.frames);
        let answer = (expansion.valid, first..self.frames.len() as u32);
        answers.push(answer.clone());
        answer
    }

    fn node(&mut self, frame: FrameId, caller: u32) -> u32 {
        let next = self.nodes.len() as u32;
        *self
            .node_index
            .entry((frame, caller))
            .or_insert_with_key(|&key| {
                self.nodes.push(key);
                next
            })
    }

    /// The innermost frame of a stack.
    pub fn leaf(&self, stack: ResolvedStack) -> FrameId {
        self.nodes[stack.0 as usize].0
    }

    /// The stack without its innermost frame.
    pub fn caller(&self, stack: ResolvedStack) -> Option<ResolvedStack> {
        let caller = self.nodes[stack.0 as usize].1;
        (caller != ROOT).then_some(ResolvedStack(caller))
    }

    /// The frames of a stack, innermost first.
    pub fn stack(&self, stack: ResolvedStack) -> impl Iterator<Item = FrameId> {
        std::iter::successors(Some(stack), |&s| self.caller(s)).map(|s| self.leaf(s))
    }

    /// A frame.
    pub fn frame(&self, frame: FrameId) -> &Frame {
        &self.frames[frame.index()]
    }

    /// All frames so far.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The timeline that answers come from.
    pub fn timeline(&self) -> &'t Timeline {
        self.timeline
    }
}

/// An answer for `u64::MAX`, the end of time, is asked for when no time is given.
fn holds(valid: &Range<u64>, time: u64) -> bool {
    valid.contains(&time) || (time == u64::MAX && valid.end == u64::MAX)
}

/// Samples of one thread with one resolved stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileEntry {
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: ResolvedStack,
    /// What the samples say of the thread.
    pub kind: SampleKind,
    /// How many samples.
    pub samples: u64,
}

/// Samples, counted by thread and resolved stack.
pub struct Profile<'t> {
    /// The stacks' frames.
    pub resolver: Resolver<'t>,
    /// In no particular order.
    pub entries: Vec<ProfileEntry>,
    /// Distance of two samples in ns, where it is known.
    pub sample_interval_ns: Option<u64>,
}

impl Profile<'_> {
    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.entries.iter().map(|e| e.samples).sum()
    }

    /// Whether the samples say where processors were busy, and not just where threads stood.
    pub fn is_cpu(&self) -> bool {
        self.entries.iter().any(|e| e.kind == SampleKind::Cpu)
    }
}

impl Timeline {
    /// Counts the samples that pass `filter` by resolved stack.
    pub fn profile<'t>(
        &'t self,
        filter: &Filter,
        symbols: Option<&'t dyn SymbolSource>,
    ) -> Profile<'t> {
        if let Some(symbols) = symbols {
            self.prepare_symbols(filter, symbols);
        }
        let mut resolver = Resolver::new(self, symbols);
        let passing = filter.classes(self);
        // For each class the answers so far; nearly always there is just one.
        let mut answers: Vec<Answers<usize>> = vec![Vec::new(); self.samples.classes().len()];
        let mut entries: Vec<ProfileEntry> = Vec::new();
        let mut index: FxHashMap<(ThreadIndex, ResolvedStack, SampleKind), usize> =
            FxHashMap::default();
        for (class, time) in self.samples.iter() {
            let at = class as usize;
            if !passing[at] || !filter.has_time(time) {
                continue;
            }
            if let Some((_, entry)) = answers[at].iter().find(|(valid, _)| holds(valid, time)) {
                entries[*entry].samples += 1;
                continue;
            }
            let class = self.samples.classes()[at];
            let (stack, valid) = resolver.resolve(&class, time);
            let entry = *index
                .entry((class.thread, stack, class.kind))
                .or_insert_with(|| {
                    entries.push(ProfileEntry {
                        thread: class.thread,
                        stack,
                        kind: class.kind,
                        samples: 0,
                    });
                    entries.len() - 1
                });
            entries[entry].samples += 1;
            answers[at].push((valid, entry));
        }
        Profile {
            resolver,
            entries,
            sample_interval_ns: self.facts.sample_interval_ns,
        }
    }

    /// Calls `each` for every sample that passes `filter`, in the order of time: (class, time in ns).
    pub fn for_each_sample(&self, filter: &Filter, mut each: impl FnMut(&SampleClass, u64)) {
        self.for_each_weighed_sample(filter, |class, time, _| each(class, time));
    }

    /// As [`Timeline::for_each_sample`], with what each sample stands for.
    pub fn for_each_weighed_sample(
        &self,
        filter: &Filter,
        mut each: impl FnMut(&SampleClass, u64, Weight),
    ) {
        let passing = filter.classes(self);
        let mut samples: Vec<(u64, u32, u32)> = self
            .samples
            .rows()
            .filter(|&(class, time, _)| passing[class as usize] && filter.has_time(time))
            .map(|(class, time, weight)| (time, class, weight))
            .collect();
        // Stable: samples of one time keep the order in which they came.
        samples.sort_by_key(|&(time, ..)| time);
        for (time, class, weight) in samples {
            let class = &self.samples.classes()[class as usize];
            each(class, time, self.samples.weight(weight));
        }
    }
}
