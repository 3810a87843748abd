//! Stacks to frames: each distinct stack is resolved once for each span of time in which the answer is the same.

use std::ops::Range;
use std::sync::Arc;

use chronosym_types::hash::HashMap;
use rustc_hash::FxHashMap;

use crate::answers::Answers;
use crate::evidence::{CallerProof, NameReason};
use crate::frame::Frame;
use crate::frames::{FrameBuilder, When};
use crate::functions::{Binary, Function, FunctionTable};
use crate::ids::{FrameId, ProcessIndex, StackId};
use crate::resolve::{ALWAYS, AddressAt, Location, meet};
use crate::samples::SampleClass;
use crate::stacks::Walked;
use crate::symbol_source::SymbolSource;
use crate::terms::Position;
use crate::timeline::Timeline;

/// A resolved stack of one [`Resolver`]: the node of its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResolvedStack(u32);

impl ResolvedStack {
    /// The position among all nodes, dense from 0; a caller comes before what it calls.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

const ROOT: u32 = u32::MAX;

/// An address of a process: how it came to be in a stack and what proves that, and whether a time is known.
type AddressKey = (ProcessIndex, Walked, Position, bool);

/// Resolves stacks and keeps what it has resolved: frames, functions and binaries, each once, by number.
pub struct Resolver {
    timeline: Arc<Timeline>,
    symbols: Option<Arc<dyn SymbolSource>>,
    functions: FunctionTable,
    frames: Vec<Frame>,
    /// What ids of another resolver lead to.
    nothing: Frame,
    /// How many frames each of those stands for that stand for several.
    standing_for: FxHashMap<FrameId, u32>,
    /// (frame, caller)
    nodes: Vec<(FrameId, u32)>,
    node_index: FxHashMap<(FrameId, u32), u32>,
    by_address: HashMap<AddressKey, Answers<Range<u32>>>,
    by_stack: FxHashMap<(ProcessIndex, StackId, Position, bool), Answers<u32>>,
    /// What was located before its frames were made.
    located: HashMap<(ProcessIndex, u64, Position), Location>,
    path: Vec<(StackId, Walked)>,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver")
            .field("frames", &self.frames.len())
            .field("stacks", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// A resolver with nothing resolved yet.
    pub fn new(timeline: &Arc<Timeline>, symbols: Option<Arc<dyn SymbolSource>>) -> Self {
        Resolver {
            timeline: Arc::clone(timeline),
            symbols,
            functions: FunctionTable::default(),
            frames: Vec::new(),
            nothing: Frame::bare(0, Function::nothing(), NameReason::InvalidAddress),
            standing_for: FxHashMap::default(),
            nodes: Vec::new(),
            node_index: FxHashMap::default(),
            by_address: HashMap::default(),
            by_stack: FxHashMap::default(),
            located: HashMap::default(),
            path: Vec::new(),
        }
    }

    /// The stack of a sample, and for which times it is the answer; `None` for a sample of another timeline.
    pub fn resolve(
        &mut self,
        class: &SampleClass,
        time_ns: u64,
    ) -> Option<(ResolvedStack, Range<u64>)> {
        let process = self.timeline.thread_view(class.thread)?.process;
        let position = class.kind.leaf_position();
        self.resolve_stack(process, class.stack, When::At(time_ns), position)
    }

    /// An interned stack of a process, and for which times it is the answer; `position` says what its innermost address is.
    /// `None` for a stack that the timeline does not have.
    ///
    /// Without a time, an address where several stood is a frame with the reason [`NameReason::Ambiguous`].
    pub fn resolve_stack(
        &mut self,
        process: ProcessIndex,
        stack: StackId,
        when: When,
        position: Position,
    ) -> Option<(ResolvedStack, Range<u64>)> {
        let (time, timed) = time_of(when);
        // Up to a prefix that is known already, then down again.
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let of = |is_leaf: bool| if is_leaf { position } else { Position::Return };
        let mut known = (ROOT, ALWAYS);
        let mut next = Some(stack);
        while let Some(node) = next {
            let answers = self
                .by_stack
                .get(&(process, node, of(path.is_empty()), timed));
            if let Some((valid, node)) = answers.and_then(|a| a.at(time)) {
                known = (*node, valid.clone());
                break;
            }
            let Some((frame, caller)) = self.timeline.stacks.split(node) else {
                break;
            };
            path.push((node, frame));
            next = caller;
        }
        while let Some((node, frame)) = path.pop() {
            let own = of(path.is_empty());
            let position = match frame.proof {
                Some(CallerProof::Signal) => Position::Exact,
                _ => own,
            };
            let at = AddressAt::new(process, frame.address, time, position);
            known = self.push(known, at, frame.proof, timed);
            self.by_stack
                .entry((process, node, own, timed))
                .or_default()
                .keep(time, known.1.clone(), known.0);
        }
        self.path = path;
        (known.0 != ROOT).then_some((ResolvedStack(known.0), known.1))
    }

    /// As [`Resolver::resolve_stack`], of a stack that is not interned: its addresses, innermost first. `None` if there is none.
    pub fn resolve_addresses(
        &mut self,
        process: ProcessIndex,
        leaf_first: &[u64],
        when: When,
        position: Position,
    ) -> Option<(ResolvedStack, Range<u64>)> {
        let (time, timed) = time_of(when);
        let mut known = (ROOT, ALWAYS);
        for (depth, &address) in leaf_first.iter().enumerate().rev() {
            let position = if depth == 0 {
                position
            } else {
                Position::Return
            };
            let at = AddressAt::new(process, address, time, position);
            known = self.push(known, at, None, timed);
        }
        (known.0 != ROOT).then_some((ResolvedStack(known.0), known.1))
    }

    /// What stands at an address that was called from a resolved stack.
    fn push(
        &mut self,
        (mut top, callers): (u32, Range<u64>),
        at: AddressAt,
        proof: Option<CallerProof>,
        timed: bool,
    ) -> (u32, Range<u64>) {
        let (valid, frames) = self.frames_at(at, proof, timed);
        // Frames come innermost first; the tree grows from the outermost.
        for frame in frames.rev() {
            top = self.node(FrameId(frame), top);
        }
        (top, meet(&callers, &valid))
    }

    fn frames_at(
        &mut self,
        at: AddressAt,
        proof: Option<CallerProof>,
        timed: bool,
    ) -> (Range<u64>, Range<u32>) {
        let walked = Walked {
            address: at.address,
            proof,
        };
        let key = (at.process, walked, at.position, timed);
        let answers = self.by_address.get(&key);
        if let Some((valid, frames)) = answers.and_then(|a| a.at(at.time)) {
            return (valid.clone(), frames.clone());
        }
        let first = self.frames.len() as u32;
        let valid = self.make_frames(at, timed);
        let frames = first..self.frames.len() as u32;
        for frame in &mut self.frames[first as usize..] {
            frame.proof = proof;
        }
        let answers = self.by_address.entry(key).or_default();
        answers.keep(at.time, valid.clone(), frames.clone());
        (valid, frames)
    }

    /// Appends the frames at an address, and gives the times for which they hold.
    fn make_frames(&mut self, mut at: AddressAt, timed: bool) -> Range<u64> {
        let timeline = Arc::clone(&self.timeline);
        let key = (at.process, at.address, at.position);
        let mut builder = FrameBuilder {
            timeline: &timeline,
            symbols: self.symbols.as_deref(),
            functions: &mut self.functions,
        };
        if timed {
            let located = self.located.remove(&key);
            let location = located.filter(|location| location.valid.contains(&at.time));
            let location = location.unwrap_or_else(|| timeline.locate(at));
            return builder.frames(at, location, &mut self.frames);
        }
        let lives = timeline.lives_of(at.process, at.address, at.position);
        if lives.len() > 1 {
            let frame = builder.nothing(at.address, NameReason::Ambiguous);
            self.frames.push(frame);
        } else {
            at.time = lives.first().map_or(ALWAYS.end - 1, |life| life.from);
            builder.frames(at, timeline.locate(at), &mut self.frames);
        }
        ALWAYS
    }

    /// What stands at an address at a time, kept for when its frames are made.
    pub(crate) fn locate(&mut self, at: AddressAt) -> &Location {
        let located = self.located.entry((at.process, at.address, at.position));
        let located = located.or_insert_with(|| self.timeline.locate(at));
        if !located.valid.contains(&at.time) {
            *located = self.timeline.locate(at);
        }
        located
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

    /// The stack that is a frame called from another.
    pub fn calling(&mut self, caller: Option<ResolvedStack>, frame: FrameId) -> ResolvedStack {
        ResolvedStack(self.node(frame, caller.map_or(ROOT, |caller| caller.0)))
    }

    /// A new frame that stands for so many, of which one is `first`.
    pub fn add_standing_for(
        &mut self,
        label: &str,
        binary: Option<&Arc<Binary>>,
        first: FrameId,
        frames: u32,
    ) -> FrameId {
        let function = self.functions.standing_for(label, binary);
        let address = self.frame(first).address;
        self.frames
            .push(Frame::bare(address, function, NameReason::NoName));
        let id = FrameId(self.frames.len() as u32 - 1);
        self.standing_for.insert(id, frames);
        id
    }

    /// How many frames of the stacks as they were a frame stands for, where one frame was made of several.
    pub fn stands_for(&self, frame: FrameId) -> Option<u32> {
        self.standing_for.get(&frame).copied()
    }

    /// The innermost frame of a stack. A stack that only another resolver has is taken to be the frame at address 0, where nothing
    /// is.
    pub fn leaf(&self, stack: ResolvedStack) -> FrameId {
        let node = self.nodes.get(stack.index());
        node.map_or(FrameId(u32::MAX), |&(frame, _)| frame)
    }

    /// The stack without its innermost frame; nothing of a stack of another resolver.
    pub fn caller(&self, stack: ResolvedStack) -> Option<ResolvedStack> {
        let &(_, caller) = self.nodes.get(stack.index())?;
        (caller != ROOT).then_some(ResolvedStack(caller))
    }

    /// The frames of a stack, innermost first; none of a stack of another resolver.
    pub fn stack(&self, stack: ResolvedStack) -> impl Iterator<Item = FrameId> {
        let callers = std::iter::successors(Some(stack), |&s| self.caller(s));
        callers.map_while(|s| Some(self.nodes.get(s.index())?.0))
    }

    /// A frame. One that only another resolver has is taken to be at address 0, where nothing is.
    pub fn frame(&self, frame: FrameId) -> &Frame {
        self.frames.get(frame.index()).unwrap_or(&self.nothing)
    }

    /// All frames so far, by [`FrameId`].
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The ids of all frames so far.
    pub fn frame_ids(&self) -> impl Iterator<Item = FrameId> + use<> {
        (0..self.frames.len() as u32).map(FrameId)
    }

    /// All functions so far, by [`FunctionId`](crate::FunctionId).
    pub fn functions(&self) -> &[Arc<Function>] {
        self.functions.functions()
    }

    /// All modules and images so far that functions are of, by [`BinaryId`](crate::BinaryId).
    pub fn binaries(&self) -> &[Arc<Binary>] {
        self.functions.binaries()
    }

    /// The timeline that answers come from.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Where names and lines beyond the trace come from.
    pub fn symbols(&self) -> Option<&Arc<dyn SymbolSource>> {
        self.symbols.as_ref()
    }
}

/// The time that answers are kept for, and whether it is one.
fn time_of(when: When) -> (u64, bool) {
    match when {
        When::At(time) => (time.min(ALWAYS.end - 1), true),
        When::Unknown => (0, false),
    }
}
