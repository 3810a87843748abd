//! Resolves stacks: each distinct stack once for each range of time in which the answer is the
//! same.

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use chronosym_types::TreeIndex;
use chronosym_types::hash::HashMap;
use rustc_hash::FxHashMap;

use crate::answers::Answers;
use crate::budget::{Budget, Share};
use crate::changes::Changes;
use crate::evidence::{CallerProof, NameReason};
use crate::frame::Frame;
use crate::frame_table::{FrameTable, TableFrame};
use crate::frames::{FrameBuilder, When};
use crate::functions::{Binary, Function, FunctionTable};
use crate::ids::{BodyIndex, FrameId, ModuleIndex, ProcessIndex, ResolvedStack, StackId};
use crate::inlinee::Inlinee;
use crate::limits::LimitReached;
use crate::resolve::{ALWAYS, AddressAt, Location, meet};
use crate::samples::SampleClass;
use crate::stack_cache::StackCache;
use crate::stacks::Walked;
use crate::symbol_source::SymbolSource;
use crate::terms::Position;
use crate::timeline::Timeline;

const ROOT: u32 = u32::MAX;

/// Bytes of a frame, with its node and its row in outputs.
const FRAME: u64 = size_of::<Frame>() as u64 + 120;
/// Bytes of an address in the caches of addresses and locations.
const ADDRESS: u64 = 260;
/// Label of the frame that replaces those beyond the memory budget.
const LEFT_OUT: &str = "[left out: --max-memory]";

/// An address of a process: its position and proof, and whether a time is given.
type AddressKey = (ProcessIndex, Walked, Position, bool);

/// Resolves stacks, and stores frames, functions and binaries, each once.
pub struct Resolver {
    timeline: Arc<Timeline>,
    symbols: Option<Arc<dyn SymbolSource>>,
    functions: FunctionTable,
    pub(crate) frames: Vec<Frame>,
    /// The frame for ids of another resolver.
    nothing: Frame,
    /// Number of frames that each collapsed frame represents.
    collapsed: FxHashMap<FrameId, u32>,
    /// (frame, caller)
    nodes: Vec<(FrameId, u32)>,
    node_index: TreeIndex<(FrameId, u32)>,
    by_address: HashMap<AddressKey, Answers<CachedFrames>>,
    by_stack: StackCache,
    /// Locations whose frames are not built yet.
    located: HashMap<(ProcessIndex, u64, Position), Location>,
    path: Vec<(StackId, Walked, Position)>,
    /// How often the timeline was replaced.
    epoch: u32,
    changes: Changes,
    /// The budget of frames, and the frame that replaces those beyond it.
    budget: Budget,
    left_out: Option<FrameId>,
    pub(crate) table: FrameTable,
    /// The number in the table of each of the first frames.
    pub(crate) table_frames: Vec<TableFrame>,
}

/// The frames of an address, and when they were last known to hold.
#[derive(Clone, Copy)]
struct CachedFrames {
    first: u32,
    end: u32,
    epoch: u32,
}

/// The part of a [`Resolver`] that finds cached frames of addresses.
#[derive(Clone, Copy)]
pub(crate) struct FrameCache<'r> {
    pub timeline: &'r Timeline,
    by_address: &'r HashMap<AddressKey, Answers<CachedFrames>>,
    epoch: u32,
}

impl FrameCache<'_> {
    #[inline]
    pub fn frames(&self, at: AddressAt) -> Option<Range<u32>> {
        let key = (at.process, at.address.into(), at.position, true);
        let (_, frames) = self.by_address.get(&key)?.at(at.time)?;
        (frames.epoch == self.epoch).then_some(frames.first..frames.end)
    }
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
    /// Creates a resolver with an empty cache.
    pub fn new(timeline: &Arc<Timeline>, symbols: Option<Arc<dyn SymbolSource>>) -> Self {
        Resolver {
            timeline: Arc::clone(timeline),
            symbols,
            functions: FunctionTable::default(),
            frames: Vec::new(),
            nothing: Frame::bare(0, Function::nothing(), NameReason::InvalidAddress),
            collapsed: FxHashMap::default(),
            nodes: Vec::new(),
            node_index: TreeIndex::default(),
            by_address: HashMap::default(),
            by_stack: StackCache::default(),
            located: HashMap::default(),
            path: Vec::new(),
            epoch: 0,
            changes: Changes::default(),
            budget: timeline.budget,
            left_out: None,
            table: FrameTable::default(),
            table_frames: Vec::new(),
        }
    }

    /// Returns the stack of a sample and the times for which it is valid; `None` for a sample of
    /// another timeline.
    pub fn resolve(
        &mut self,
        class: &SampleClass,
        time_ns: u64,
    ) -> Option<(ResolvedStack, Range<u64>)> {
        let process = self.timeline.thread_view(class.thread)?.process;
        let position = class.kind.leaf_position();
        self.resolve_stack(process, class.stack, When::At(time_ns), position)
    }

    /// Returns an interned stack of a process and the times for which it is valid; `position` is
    /// that of the innermost address. `None` for a stack of another timeline.
    ///
    /// Without a time, an address that several bodies occupied is a frame with the reason
    /// [`NameReason::Ambiguous`].
    pub fn resolve_stack(
        &mut self,
        process: ProcessIndex,
        stack: StackId,
        when: When,
        position: Position,
    ) -> Option<(ResolvedStack, Range<u64>)> {
        let (time, timed) = time_of(when);
        // Up to a cached prefix, then down again.
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let mut top = (ROOT, ALWAYS);
        let mut next = Some((stack, position));
        while let Some((node, position)) = next {
            if let Some(cached) = self.by_stack.at(node, (process, position, timed), time) {
                top = cached;
                break;
            }
            let Some((frame, caller)) = self.timeline.stacks.split(node) else {
                break;
            };
            path.push((node, frame, position));
            next = caller.map(|caller| (caller, self.position_of(caller, frame.address)));
        }
        // If the budget is used up, only the whole stack is kept.
        let has_room = self.budget.has_room(Share::Frames);
        while let Some((node, frame, own)) = path.pop() {
            let position = match frame.proof {
                Some(CallerProof::Signal | CallerProof::BranchRecord) => Position::Exact,
                _ => own,
            };
            let at = AddressAt::new(process, frame.address, time, position);
            top = self.push(top, at, frame.proof, timed);
            if !has_room && !path.is_empty() {
                continue;
            }
            let key = (process, own, timed);
            self.by_stack.keep(node, key, time, top.1.clone(), top.0);
        }
        self.path = path;
        (top.0 != ROOT).then_some((ResolvedStack(top.0), top.1))
    }

    /// Resolves a stack that is not interned: its addresses, innermost first. `None` for an empty
    /// stack.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Method};
    /// use chronosym_core::{Action, Options, Position, Resolver, Session, When};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(0).process(42);
    /// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
    /// let timeline = session.finish();
    /// let process = timeline.find_process(42, None).unwrap();
    ///
    /// // A stack that is no sample of the timeline.
    /// let mut resolver = Resolver::new(&timeline, None);
    /// let (stack, _) = resolver
    ///     .resolve_addresses(process, &[0x1010, 0x9000], When::At(100), Position::Exact)
    ///     .unwrap();
    /// let leaf = resolver.leaf(stack);
    /// assert_eq!(resolver.frame(leaf).name(), Ok("Ns.Type.Run"));
    /// ```
    pub fn resolve_addresses(
        &mut self,
        process: ProcessIndex,
        leaf_first: &[u64],
        when: When,
        position: Position,
    ) -> Option<(ResolvedStack, Range<u64>)> {
        let (time, timed) = time_of(when);
        let mut top = (ROOT, ALWAYS);
        for (depth, &address) in leaf_first.iter().enumerate().rev() {
            let position = match depth.checked_sub(1) {
                None => position,
                Some(callee) => self.timeline.caller_position(leaf_first[callee], address),
            };
            let at = AddressAt::new(process, address, time, position);
            top = self.push(top, at, None, timed);
        }
        (top.0 != ROOT).then_some((ResolvedStack(top.0), top.1))
    }

    /// Resolves an address to the ids of its frames, innermost first, as [`Timeline::frames`] does.
    pub fn resolve_address(
        &mut self,
        at: AddressAt,
    ) -> impl Iterator<Item = FrameId> + Clone + use<> {
        let (_, frames) = self.frames_at(at, None, true);
        frames.map(FrameId)
    }

    /// Returns the position of the innermost frame of a stack that called, or was interrupted by, a
    /// callee.
    pub(crate) fn position_of(&self, stack: StackId, callee: u64) -> Position {
        let frame = self.timeline.stacks.split(stack);
        frame.map_or(Position::Return, |(frame, _)| {
            self.timeline.caller_position(callee, frame.address)
        })
    }

    /// Appends the frames of an address to the stack of its callers.
    fn push(
        &mut self,
        (mut top, callers): (u32, Range<u64>),
        at: AddressAt,
        proof: Option<CallerProof>,
        timed: bool,
    ) -> (u32, Range<u64>) {
        let (valid, frames) = self.frames_at(at, proof, timed);
        if self
            .left_out
            .is_some_and(|id| frames == (id.0..id.0 + 1) && self.leaf_of(top) == Some(id))
        {
            return (top, meet(&callers, &valid));
        }
        // Frames are innermost first; the tree grows from the outermost.
        for frame in frames.rev() {
            top = self.node(FrameId(frame), top);
        }
        (top, meet(&callers, &valid))
    }

    pub(crate) fn frames_at(
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
        let mut before = None;
        if let Some((valid, frames)) = answers.and_then(|a| a.at(at.time)) {
            if frames.epoch == self.epoch {
                return (valid.clone(), frames.first..frames.end);
            }
            before = Some(*frames);
        }
        if before.is_none() && !self.budget.has_room(Share::Frames) {
            let FrameId(id) = self.left_out();
            return (ALWAYS, id..id + 1);
        }
        let (valid, frames) = match before.filter(|_| timed).and_then(|it| self.confirm(at, it)) {
            Some(confirmed) => confirmed,
            None => self.add_frames(at, proof, timed, before),
        };
        let answers = self.by_address.entry(key).or_default();
        if before.is_some() {
            answers.remove(at.time);
        }
        let cached = CachedFrames {
            first: frames.start,
            end: frames.end,
            epoch: self.epoch,
        };
        answers.keep(at.time, valid.clone(), cached);
        (valid, frames)
    }

    /// Builds the frames at an address. Those of an earlier timeline are reused if they are the
    /// same.
    fn add_frames(
        &mut self,
        at: AddressAt,
        proof: Option<CallerProof>,
        timed: bool,
        before: Option<CachedFrames>,
    ) -> (Range<u64>, Range<u32>) {
        let first = self.frames.len();
        let functions = self.functions.memory_bytes();
        let valid = self.make_frames(at, timed);
        let made = (self.frames.len() - first) as u64 * FRAME + ADDRESS;
        let functions = self.functions.memory_bytes() - functions;
        self.budget.charge(made + functions as u64);
        for frame in &mut self.frames[first..] {
            frame.proof = proof;
        }
        if let Some(CachedFrames {
            first: from, end, ..
        }) = before
            && self.frames[from as usize..end as usize] == self.frames[first..]
        {
            self.frames.truncate(first);
            return (valid, from..end);
        }
        (valid, first as u32..self.frames.len() as u32)
    }

    /// Returns the frame that replaces all frames beyond the budget ([`Frame::is_left_out`]).
    fn left_out(&mut self) -> FrameId {
        *self.left_out.get_or_insert_with(|| {
            let function = self.functions.left_out(LEFT_OUT);
            self.frames
                .push(Frame::bare(0, function, NameReason::LimitReached));
            FrameId(self.frames.len() as u32 - 1)
        })
    }

    fn leaf_of(&self, node: u32) -> Option<FrameId> {
        self.nodes.get(node as usize).map(|node| node.0)
    }

    /// Returns the limit that frames exceeded ([`Frame::is_left_out`]), if any did.
    pub fn limit(&self) -> Option<LimitReached> {
        self.left_out
            .map(|_| LimitReached::Memory(self.budget.bytes()))
    }

    /// Returns the budget that remains for results derived from the frames.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Returns the frames of an earlier timeline, if they hold in this one, and the times for which
    /// they do.
    fn confirm(&self, at: AddressAt, before: CachedFrames) -> Option<(Range<u64>, Range<u32>)> {
        let [frame] = &self.frames[before.first as usize..before.end as usize] else {
            return None;
        };
        let location = self.timeline.locate(at);
        let holds = self
            .changes
            .holds(before.epoch, frame, &location, at.process);
        holds.then_some((location.valid, before.first..before.end))
    }

    /// Replaces the timeline by a later one of the same live session.
    ///
    /// Ids of frames, functions, binaries and stacks stay valid, and only results that may have
    /// changed are resolved again. After a change to a timeline of another session, no earlier
    /// result is used.
    pub fn advance_to(&mut self, timeline: &Arc<Timeline>) {
        if Arc::ptr_eq(&self.timeline, timeline) {
            return;
        }
        self.epoch += 1;
        let before = std::mem::replace(&mut self.timeline, Arc::clone(timeline));
        if self.changes.add(self.epoch, &before, timeline) {
            self.functions.forget_sources();
        }
        self.functions.forget_snapshot();
        self.by_stack.clear();
        self.located.clear();
    }

    /// Drops the cache of resolved stacks: every stack has been resolved.
    pub(crate) fn drop_stack_cache(&mut self) {
        self.by_stack = StackCache::default();
    }

    pub(crate) fn cache(&self) -> FrameCache<'_> {
        FrameCache {
            timeline: &self.timeline,
            by_address: &self.by_address,
            epoch: self.epoch,
        }
    }

    /// Appends the frames at an address, and returns the times for which they are valid.
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
        let lifetimes = timeline.lifetimes_of(at.process, at.address, at.position);
        if lifetimes.len() > 1 {
            let frame = builder.nothing(at.address, NameReason::Ambiguous);
            self.frames.push(frame);
        } else {
            at.time = lifetimes
                .first()
                .map_or(ALWAYS.end - 1, |lifetime| lifetime.from);
            builder.frames(at, timeline.locate(at), &mut self.frames);
        }
        ALWAYS
    }

    /// Returns the nodes of the inline tree of a body, the method itself first; none without a
    /// tree.
    pub fn inlinees(&mut self, process: ProcessIndex, body: BodyIndex) -> Vec<Inlinee> {
        let timeline = Arc::clone(&self.timeline);
        let mut builder = FrameBuilder {
            timeline: &timeline,
            symbols: self.symbols.as_deref(),
            functions: &mut self.functions,
        };
        builder.inlinees(process, body)
    }

    /// Looks up the code at an address and time, and caches it until its frames are built. `None`
    /// if it is cached.
    pub(crate) fn locate(&mut self, at: AddressAt) -> Option<&Location> {
        match self.located.entry((at.process, at.address, at.position)) {
            Entry::Occupied(cached) if cached.get().valid.contains(&at.time) => None,
            entry => Some(entry.insert_entry(self.timeline.locate(at)).into_mut()),
        }
    }

    fn node(&mut self, frame: FrameId, caller: u32) -> u32 {
        let node = (frame, caller);
        let get = |at| self.nodes.get(at as usize).copied();
        self.node_index.find(&node, caller, get).unwrap_or_else(|| {
            let next = self.nodes.len() as u32;
            self.node_index.insert(node, caller, next);
            self.nodes.push(node);
            next
        })
    }

    /// Returns the stack of a frame and its caller.
    pub fn calling(&mut self, caller: Option<ResolvedStack>, frame: FrameId) -> ResolvedStack {
        ResolvedStack(self.node(frame, caller.map_or(ROOT, |caller| caller.0)))
    }

    /// Adds a frame that represents `frames` collapsed ones, of which `first` is one.
    pub fn add_collapsed(
        &mut self,
        label: &str,
        binary: Option<&Arc<Binary>>,
        first: FrameId,
        frames: u32,
    ) -> FrameId {
        let function = self.functions.collapsed(label, binary);
        let address = self.frame(first).address;
        self.frames
            .push(Frame::bare(address, function, NameReason::NoName));
        let id = FrameId(self.frames.len() as u32 - 1);
        self.collapsed.insert(id, frames);
        id
    }

    /// Adds a frame without code, for a group of stacks.
    pub fn add_group(&mut self, label: &str) -> FrameId {
        let function = self.functions.collapsed(label, None);
        let frame = Frame::bare(0, function, NameReason::NoName);
        self.frames.push(frame);
        FrameId(self.frames.len() as u32 - 1)
    }

    /// Adds a frame of a method that may be inlined into another frame, which is that of a body: its
    /// name is a guess, and its module is one of the body's process.
    pub fn add_candidate_inlinee(
        &mut self,
        into: FrameId,
        name: &str,
        module: Option<ModuleIndex>,
    ) -> FrameId {
        let timeline = Arc::clone(&self.timeline);
        let into = self.frame(into).clone();
        let mut builder = FrameBuilder {
            timeline: &timeline,
            symbols: self.symbols.as_deref(),
            functions: &mut self.functions,
        };
        self.frames
            .push(builder.candidate_inlinee(&into, name, module));
        FrameId(self.frames.len() as u32 - 1)
    }

    /// Returns the number of original frames that a collapsed frame represents.
    pub fn stands_for(&self, frame: FrameId) -> Option<u32> {
        self.collapsed.get(&frame).copied()
    }

    /// Returns the innermost frame of a stack. For a stack of another resolver it is a frame at
    /// address 0 without code.
    pub fn leaf(&self, stack: ResolvedStack) -> FrameId {
        let node = self.nodes.get(stack.index());
        node.map_or(FrameId(u32::MAX), |&(frame, _)| frame)
    }

    /// Returns the stack without its innermost frame; `None` for a stack of another resolver.
    pub fn caller(&self, stack: ResolvedStack) -> Option<ResolvedStack> {
        let &(_, caller) = self.nodes.get(stack.index())?;
        (caller != ROOT).then_some(ResolvedStack(caller))
    }

    /// Returns all stacks so far; a caller precedes its callees.
    pub fn stacks(
        &self,
    ) -> impl DoubleEndedIterator<Item = ResolvedStack> + ExactSizeIterator + use<> {
        (0..self.nodes.len() as u32).map(ResolvedStack)
    }

    /// Returns numbers for all stacks, by [`ResolvedStack::index`]: the sum of the numbers of the
    /// stack itself and of all that it called. Stacks of another resolver are ignored.
    pub fn totals(&self, numbers: impl IntoIterator<Item = (ResolvedStack, u64)>) -> Vec<u64> {
        let mut totals = vec![0_u64; self.nodes.len()];
        for (stack, number) in numbers {
            if let Some(total) = totals.get_mut(stack.index()) {
                *total = total.saturating_add(number);
            }
        }
        for (index, &(_, caller)) in self.nodes.iter().enumerate().rev() {
            let number = totals[index];
            if let Some(total) = totals.get_mut(caller as usize) {
                *total = total.saturating_add(number);
            }
        }
        totals
    }

    /// Returns the frames of a stack, innermost first; none for a stack of another resolver.
    pub fn stack(&self, stack: ResolvedStack) -> impl Iterator<Item = FrameId> {
        let callers = std::iter::successors(Some(stack), |&s| self.caller(s));
        callers.map_while(|s| Some(self.nodes.get(s.index())?.0))
    }

    /// Returns a frame. For an id of another resolver it is a frame at address 0 without code.
    pub fn frame(&self, frame: FrameId) -> &Frame {
        self.frames.get(frame.index()).unwrap_or(&self.nothing)
    }

    /// Returns all frames so far, by [`FrameId`].
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns the ids of all frames so far.
    pub fn frame_ids(&self) -> impl Iterator<Item = FrameId> + use<> {
        (0..self.frames.len() as u32).map(FrameId)
    }

    /// Returns all functions so far, by [`FunctionId`](crate::FunctionId).
    pub fn functions(&self) -> &[Arc<Function>] {
        self.functions.functions()
    }

    /// Returns all binaries so far, by [`BinaryId`](crate::BinaryId).
    pub fn binaries(&self) -> &[Arc<Binary>] {
        self.functions.binaries()
    }

    /// Returns the timeline.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Returns the source of names and lines beyond the trace.
    pub fn symbols(&self) -> Option<&Arc<dyn SymbolSource>> {
        self.symbols.as_ref()
    }
}

/// Returns the key of a time in the caches, and whether a time is given.
fn time_of(when: When) -> (u64, bool) {
    match when {
        When::At(time) => (time.min(ALWAYS.end - 1), true),
        When::Unknown => (0, false),
    }
}
