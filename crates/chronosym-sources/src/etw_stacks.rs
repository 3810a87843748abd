//! Puts the stacks of ETW events together.
//!
//! Windows logs the stack of an event after the event, in up to two parts (kernel, user), each
//! either as addresses or as a key whose definition comes later still. A part refers to its event
//! by the event's raw time and thread.

use std::collections::VecDeque;

use chronosym_types::hash::HashMap;

use chronosym_core::facts::Sample;
use chronosym_core::{EventTypeId, StackId, StackTable};

/// The parts of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Kernel,
    User,
}

impl Mode {
    fn other(self) -> Self {
        match self {
            Mode::Kernel => Mode::User,
            Mode::User => Mode::Kernel,
        }
    }
}

/// One part of the stack of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Part {
    #[default]
    None,
    /// Its addresses, in the table of fragments.
    Known(StackId),
    /// What the next definition of a key will say.
    Key(u32),
}

/// An event that waits for its stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub raw_time: i64,
    pub time_ns: u64,
    pub id: EventTypeId,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    pub cpu: u16,
    pub sample: Sample,
    /// Where the thread stood, for the case that the part of the stack with it does not come.
    pub ip: Option<u64>,
}

/// Which event a part of a stack belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub raw_time: i64,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    pub cpu: u16,
}

#[derive(Debug)]
struct Entry {
    event: Waiting,
    kernel: Part,
    user: Part,
    match_id: u64,
}

/// An event that has what there is of its stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub event: Waiting,
    pub stack: StackOf,
    /// Whether anything of the stack came: else it is just where the thread stood.
    pub has_stack: bool,
}

/// A stack of its parts: what they are can be known at the end only, when all keys are defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackOf {
    kernel: Part,
    user: Part,
    ip: Option<u64>,
}

impl StackOf {
    /// Leaves out the user part below a kernel part. Whether there was one.
    pub fn drop_callers(&mut self) -> bool {
        let joined = self.kernel != Part::None && self.user != Part::None;
        if joined {
            self.user = Part::None;
        }
        joined
    }
}

/// The use of a key that is not defined yet.
#[derive(Clone, Copy, Debug)]
struct OpenKey {
    of: u32,
    /// No reference has said which part it is.
    guessed: bool,
}

/// In real traces parts come at most 0.4 s after their event.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Processors log at most one event each at a time; more events of one time are damage.
const MAX_AT_ONCE: usize = 4096;
/// Events that wait for stacks, and what is known of stack keys.
#[derive(Debug, Default)]
pub(super) struct StackAssembler {
    /// Whether the kernel is a 64-bit one.
    wide: bool,
    /// By raw time; events of one time as they came.
    waiting: VecDeque<Entry>,
    /// Raw times of the events that wait for the user part of these numbers.
    by_match: HashMap<u64, i64>,
    /// Parts with addresses; keys have their definitions here too.
    fragments: StackTable,
    /// What each use of a key means: a key stands for one thing from the definition before up to
    /// its own.
    uses: Vec<StackId>,
    /// The uses that are not defined yet.
    open_keys: HashMap<(Mode, u64), OpenKey>,
    /// Events that have waited long enough; the source takes them.
    finished: VecDeque<Finished>,
    /// Raw time of the last event that was given up.
    given_up: Option<i64>,
    late_parts: u64,
    /// Parts for which there was no room.
    dropped: u64,
    /// Where the kernel's addresses begin.
    kernel_from: u64,
}

impl StackAssembler {
    pub fn new(wide: bool) -> Self {
        const WIDE: u64 = 0xffff_0000_0000_0000;
        StackAssembler {
            wide,
            kernel_from: if wide { WIDE } else { 0x8000_0000 },
            ..StackAssembler::default()
        }
    }

    /// In a 32-bit address space user mode can have up to 3 GB: the kernel begins where its lowest
    /// image lies.
    pub fn lowest_kernel_image(&mut self, base: u64) {
        if !self.wide {
            self.kernel_from = base;
        }
    }

    /// An event whose stack may come.
    pub fn wait(&mut self, event: Waiting) {
        self.give_up(event.time_ns);
        let entry = Entry {
            event,
            kernel: Part::None,
            user: Part::None,
            match_id: 0,
        };
        // Only damage brings events out of order.
        let in_order = |last: &Entry| last.event.raw_time <= event.raw_time;
        if self.waiting.back().is_none_or(in_order) {
            self.waiting.push_back(entry);
        } else {
            let at = self
                .waiting
                .partition_point(|e| e.event.raw_time <= event.raw_time);
            self.waiting.insert(at, entry);
        }
    }

    /// The event that was added last has a user part to come under this number; 0 is none.
    pub fn expect_match(&mut self, match_id: u64) {
        if let Some(entry) = self.waiting.back_mut().filter(|_| match_id != 0) {
            entry.match_id = match_id;
            self.by_match.insert(match_id, entry.event.raw_time);
        }
    }

    /// Addresses of a part of the stack of an event. Without a mode the addresses tell it.
    pub fn addresses(
        &mut self,
        of: Reference,
        mode: Option<Mode>,
        leaf_first: impl DoubleEndedIterator<Item = u64> + Clone,
    ) {
        let mode = mode.unwrap_or_else(|| self.mode_of(leaf_first.clone().next_back()));
        if let Some((at, mode)) = self.place_or_late(&of, mode)
            && let Some(fragment) = self.fragment(leaf_first)
        {
            self.attach(at, &of, mode, Part::Known(fragment));
        }
    }

    fn fragment(&mut self, leaf_first: impl DoubleEndedIterator<Item = u64>) -> Option<StackId> {
        let mut leaf_first = leaf_first.peekable();
        let is_empty = leaf_first.peek().is_none();
        let fragment = self.fragments.intern(leaf_first);
        self.dropped += u64::from(fragment.is_none() && !is_empty);
        fragment
    }

    /// As [`StackAssembler::addresses`], by a key; the mode may be no more than a guess.
    pub fn key(&mut self, of: Reference, mode: Mode, guessed: bool, key: u64) {
        if let Some((at, place)) = self.place_or_late(&of, mode) {
            let part = self.use_of(mode, guessed, key);
            self.attach(at, &of, place, part);
        }
    }

    /// The present use of a key.
    fn use_of(&mut self, mode: Mode, guessed: bool, key: u64) -> Part {
        let next = self.uses.len() as u32;
        let open = self.open_keys.entry((mode, key)).or_insert(OpenKey {
            of: next,
            guessed: true,
        });
        open.guessed &= guessed;
        if open.of == next {
            self.uses.push(StackId::PENDING);
        }
        Part::Key(open.of)
    }

    /// The definition of a key: it holds for all uses since the definition before.
    pub fn define(&mut self, key: u64, leaf_first: impl DoubleEndedIterator<Item = u64> + Clone) {
        let mode = self.mode_of(leaf_first.clone().next_back());
        // The same number can stand for a part of either kind.
        if let Some(open) = self.take_open(mode, key)
            && let Some(definition) = self.fragment(leaf_first)
        {
            self.uses[open as usize] = definition;
        }
    }

    fn take_open(&mut self, mode: Mode, key: u64) -> Option<u32> {
        if let Some(open) = self.open_keys.remove(&(mode, key)) {
            return Some(open.of);
        }
        // The other kind, but only where the reference or the addresses (on 32 bits) do not tell it
        // for sure. Else that one's own definition is lost, or comes later.
        let other = (mode.other(), key);
        let open = self.open_keys.get(&other)?;
        if self.wide && !open.guessed {
            return None;
        }
        self.open_keys.remove(&other).map(|open| open.of)
    }

    /// The user part for a number that [`StackAssembler::expect_match`] announced.
    pub fn matched(&mut self, match_id: u64, leaf_first: impl DoubleEndedIterator<Item = u64>) {
        if let Some(at) = self.take_match(match_id)
            && let Some(fragment) = self.fragment(leaf_first)
        {
            self.waiting[at].user = Part::Known(fragment);
        }
    }

    /// As [`StackAssembler::matched`], by a key.
    pub fn matched_key(&mut self, match_id: u64, key: u64) {
        if let Some(at) = self.take_match(match_id) {
            self.waiting[at].user = self.use_of(Mode::User, false, key);
        }
    }

    fn take_match(&mut self, match_id: u64) -> Option<usize> {
        let raw_time = self.by_match.remove(&match_id)?;
        self.at(raw_time)
            .find(|&at| self.waiting[at].match_id == match_id)
    }

    /// A stack is the kernel's if even its outermost frame lies there.
    fn mode_of(&self, outermost: Option<u64>) -> Mode {
        if outermost.is_some_and(|address| address >= self.kernel_from) {
            Mode::Kernel
        } else {
            Mode::User
        }
    }

    /// The waiting events of a raw time.
    fn at(&self, raw_time: i64) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let first = self
            .waiting
            .partition_point(|e| e.event.raw_time < raw_time);
        let count = self
            .waiting
            .range(first..)
            .take(MAX_AT_ONCE)
            .take_while(|e| e.event.raw_time == raw_time)
            .count();
        first..first + count
    }

    /// As [`StackAssembler::place`]; counts parts that come after their event was given up.
    fn place_or_late(&mut self, of: &Reference, mode: Mode) -> Option<(usize, Mode)> {
        let place = self.place(of, mode);
        // Others are of events that nobody asked for.
        if place.is_none() && self.given_up >= Some(of.raw_time) {
            self.late_parts += 1;
        }
        place
    }

    /// The event that a part belongs to, and which of its parts it is.
    fn place(&self, of: &Reference, mode: Mode) -> Option<(usize, Mode)> {
        let free = |entry: &Entry, mode| match mode {
            Mode::Kernel => entry.kernel == Part::None,
            Mode::User => entry.user == Part::None,
        };
        let fits = |at: usize| {
            let entry = &self.waiting[at];
            let same_thread = entry.event.tid == of.tid;
            if !same_thread && entry.event.tid.is_some() {
                return None;
            }
            let mode = if free(entry, mode) {
                mode
            } else if !self.wide && mode == Mode::Kernel && free(entry, Mode::User) {
                // With 3 GB of user addresses the addresses do not tell, but the kernel's part
                // always comes first.
                Mode::User
            } else {
                return None;
            };
            // The same thread; else one whose thread is not known, best on the same processor.
            Some(((same_thread, entry.event.cpu == of.cpu), at, mode))
        };
        self.at(of.raw_time)
            .filter_map(fits)
            .max_by_key(|&(rank, _, _)| rank)
            .map(|(_, at, mode)| (at, mode))
    }

    // A kernel part whose user part does not come stays alone. The next user part of the thread
    // would be a guess: in a real trace that put frames of an image on a stack from before the
    // image was loaded.
    fn attach(&mut self, at: usize, of: &Reference, mode: Mode, part: Part) {
        let entry = &mut self.waiting[at];
        entry.event.pid = of.pid.or(entry.event.pid);
        entry.event.tid = entry.event.tid.or(of.tid);
        match mode {
            Mode::Kernel => entry.kernel = part,
            Mode::User => entry.user = part,
        }
    }

    /// Events that have waited long enough get what stack they have.
    fn give_up(&mut self, now_ns: u64) {
        while let Some(first) = self.waiting.front()
            && first.event.time_ns.saturating_add(PATIENCE_NS) < now_ns
        {
            self.given_up = self.given_up.max(Some(first.event.raw_time));
            self.finish_first();
        }
    }

    fn finish_first(&mut self) {
        let Some(entry) = self.waiting.pop_front() else {
            return;
        };
        let event = entry.event;
        if entry.match_id != 0 {
            self.by_match.remove(&entry.match_id);
        }
        let has_stack = entry.kernel != Part::None || entry.user != Part::None;
        if has_stack || event.ip.is_some() {
            let stack = self.resolved(StackOf {
                kernel: entry.kernel,
                user: entry.user,
                ip: event.ip,
            });
            self.finished.push_back(Finished {
                event,
                stack,
                has_stack,
            });
        }
    }

    /// The next event that has what there is of its stack, in the order of their times.
    pub fn next_finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// The trace is over: nothing waits any longer. Returns how many keys were never defined.
    pub fn finish(&mut self) -> u64 {
        while !self.waiting.is_empty() {
            self.finish_first();
        }
        let is_undefined = |&&definition: &&StackId| definition == StackId::PENDING;
        self.uses.iter().filter(is_undefined).count() as u64
    }

    /// With what is known of keys by now.
    fn resolved(&self, mut stack: StackOf) -> StackOf {
        for part in [&mut stack.kernel, &mut stack.user] {
            if let Part::Key(open) = *part
                && self.uses[open as usize] != StackId::PENDING
            {
                *part = Part::Known(self.uses[open as usize]);
            }
        }
        // Where the thread stood is in the part that is innermost. A user part is not that one if
        // the thread was in the kernel.
        let is_in_part = match (stack.kernel, stack.user) {
            (Part::Known(_), _) => true,
            (_, Part::Known(_)) => self.mode_of(stack.ip) == Mode::User,
            _ => false,
        };
        if is_in_part {
            stack.ip = None;
        }
        stack
    }

    /// The addresses of a stack, outermost first, into `path`.
    pub fn addresses_of(&self, stack: StackOf, path: &mut Vec<u64>) {
        let stack = self.resolved(stack);
        path.clear();
        // The kernel part stands on the user part.
        for part in [stack.user, stack.kernel] {
            if let Part::Known(fragment) = part {
                let from = path.len();
                path.extend(self.fragments.addresses(fragment));
                path[from..].reverse();
            }
        }
        // On 32 bits addresses do not tell for sure whether the thread was in the kernel.
        if path.last() != stack.ip.as_ref() {
            path.extend(stack.ip);
        }
    }

    /// Maximum number of nodes of merged stacks. Each kernel part is repeated on each user part, so
    /// a few long kernel parts and many user parts are a small file and more stacks than memory
    /// holds. In real traces kernel parts have about twenty addresses.
    pub fn most_joined(&self) -> usize {
        const FREE: usize = 1 << 18;
        FREE + self.fragments.len().saturating_mul(32)
    }

    /// Parts of stacks that came more than [`PATIENCE_NS`] after their event.
    pub fn late_parts(&self) -> u64 {
        self.late_parts
    }

    /// Parts of stacks for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
