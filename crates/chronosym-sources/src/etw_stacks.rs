//! Assembles the stacks of ETW events.
//!
//! Windows logs the stack of an event after the event, in up to two parts (kernel, user), each
//! either as addresses or as a key that is defined by a later event. A part refers to its event by
//! the event's raw time and thread.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use chronosym_types::Addresses;
use chronosym_types::hash::HashMap;

use chronosym_core::facts::Sample;
use chronosym_core::{EventTypeId, StackId, StackTable};

use super::etw_switches::Switch;

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

/// One part of an event's stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Part {
    #[default]
    None,
    /// Addresses, in the table of fragments.
    Known(StackId),
    /// A key that is defined later: index of its use.
    Key(u32),
}

impl Part {
    fn number(self) -> u64 {
        match self {
            Part::None => 0,
            Part::Known(stack) => stack.index() as u64,
            Part::Key(of) => u64::from(of) | 1 << 32,
        }
    }
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
    /// If it is a switch that ends intervals or a wait: its number, for
    /// [`StackAssembler::take_switch`].
    pub switch: Option<u32>,
    /// The thread's instruction pointer, used if the part of the stack that contains it does not
    /// follow.
    pub ip: Option<u64>,
}

/// Identifies the event to which a part of a stack belongs.
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

/// An event whose stack is as complete as it will be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub time_ns: u64,
    pub id: EventTypeId,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    pub sample: Sample,
    pub switch: Option<u32>,
    pub stack: StackOf,
    /// Whether any part of the stack was received. If not, only the instruction pointer is known.
    pub has_stack: bool,
}

/// The parts of a stack. Their addresses are known only at the end, when all keys are defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackOf {
    kernel: Part,
    user: Part,
    ip: Option<u64>,
}

/// Hashed as three words: every sample is looked up.
impl Hash for StackOf {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.kernel.number());
        state.write_u64(self.user.number());
        state.write_u64(self.ip.unwrap_or(0));
    }
}

impl StackOf {
    /// Returns a number that differs between most stacks.
    #[inline]
    pub fn mixed(&self) -> u64 {
        self.kernel.number() ^ self.user.number() << 3 ^ self.ip.unwrap_or(0)
    }

    /// Removes the user part below a kernel part. Returns whether there was one.
    pub fn drop_callers(&mut self) -> bool {
        let joined = self.kernel != Part::None && self.user != Part::None;
        if joined {
            self.user = Part::None;
        }
        joined
    }
}

/// A use of a key that is not yet defined.
#[derive(Clone, Copy, Debug)]
struct OpenKey {
    of: u32,
    /// Whether no reference has stated which part it is.
    guessed: bool,
}

/// How long an event waits for its stack, in ns. In real traces, parts follow within 0.4 s.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Maximum number of waiting events with one raw time. A processor logs at most one event at a
/// time; more are corruption.
const MAX_AT_ONCE: usize = 4096;
/// Events that wait for stacks, and the definitions of stack keys.
#[derive(Debug, Default)]
pub(super) struct StackAssembler {
    /// Whether the kernel is a 64-bit one.
    wide: bool,
    /// Sorted by raw time; events with equal times in the order of the file.
    waiting: VecDeque<Entry>,
    /// Raw times of the events that wait for a user part, by match id.
    by_match: HashMap<u64, i64>,
    /// Parts as addresses, including the definitions of keys.
    fragments: StackTable,
    /// The definition of each use of a key. A key has one meaning from the preceding definition up
    /// to its own.
    uses: Vec<StackId>,
    /// The uses that are not yet defined.
    open_keys: HashMap<(Mode, u64), OpenKey>,
    /// The time of the last event that was added, which ends the wait of earlier ones.
    now_ns: u64,
    /// Whether no event or part follows.
    has_ended: bool,
    /// The switches among the events that wait, and the unused numbers. Most traces have none.
    switches: Vec<Switch>,
    unused: Vec<u32>,
    /// Raw time of the last event that stopped waiting.
    given_up: Option<i64>,
    late_parts: u64,
    /// Parts dropped because a limit was reached.
    dropped: u64,
    /// The lowest kernel address.
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

    /// Lowers the start of kernel addresses to the base of a kernel image. In a 32-bit address
    /// space user mode can have up to 3 GB, so the kernel starts at its lowest image.
    pub fn lowest_kernel_image(&mut self, base: u64) {
        if !self.wide {
            self.kernel_from = base;
        }
    }

    /// Adds an event whose stack may follow.
    pub fn wait(&mut self, event: Waiting) {
        self.now_ns = event.time_ns;
        let entry = Entry {
            event,
            kernel: Part::None,
            user: Part::None,
            match_id: 0,
        };
        // Events are out of order only in damaged traces.
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

    /// Keeps a switch until its stack is complete; returns its number.
    pub fn add_switch(&mut self, switch: Switch) -> u32 {
        let number = self.unused.pop().unwrap_or(self.switches.len() as u32);
        match self.switches.get_mut(number as usize) {
            Some(unused) => *unused = switch,
            None => self.switches.push(switch),
        }
        number
    }

    /// Returns the switch of a finished event.
    pub fn take_switch(&mut self, number: u32) -> Switch {
        self.unused.push(number);
        self.switches[number as usize]
    }

    /// Expects a user part with this match id for the event that was added last; 0 means none.
    pub fn expect_match(&mut self, match_id: u64) {
        if let Some(entry) = self.waiting.back_mut().filter(|_| match_id != 0) {
            entry.match_id = match_id;
            self.by_match.insert(match_id, entry.event.raw_time);
        }
    }

    /// Adds a part of an event's stack as addresses. Without a mode, it is derived from the
    /// addresses.
    pub fn addresses(&mut self, of: Reference, mode: Option<Mode>, leaf_first: Addresses<'_>) {
        let mode = mode.unwrap_or_else(|| self.mode_of(leaf_first.iter().next_back()));
        if let Some((at, mode)) = self.place_or_late(&of, mode)
            && let Some(fragment) = self.fragment(leaf_first)
        {
            self.attach(at, &of, mode, Part::Known(fragment));
        }
    }

    fn fragment(&mut self, leaf_first: Addresses<'_>) -> Option<StackId> {
        let fragment = self.fragments.intern_addresses(leaf_first);
        self.dropped += u64::from(fragment.is_none() && !leaf_first.is_empty());
        fragment
    }

    /// Like [`StackAssembler::addresses`], with a key. The mode may be a guess.
    pub fn key(&mut self, of: Reference, mode: Mode, guessed: bool, key: u64) {
        if let Some((at, place)) = self.place_or_late(&of, mode) {
            let part = self.use_of(mode, guessed, key);
            self.attach(at, &of, place, part);
        }
    }

    /// Returns the current use of a key.
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

    /// Defines a key for all its uses since the preceding definition.
    pub fn define(&mut self, key: u64, leaf_first: Addresses<'_>) {
        let mode = self.mode_of(leaf_first.iter().next_back());
        // The same number can identify a kernel part and a user part.
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
        // Try the other mode, but only if the reference or the addresses (on 32 bits) leave the
        // mode uncertain. If they do not, the definition for that mode was lost, or follows.
        let other = (mode.other(), key);
        let open = self.open_keys.get(&other)?;
        if self.wide && !open.guessed {
            return None;
        }
        self.open_keys.remove(&other).map(|open| open.of)
    }

    /// Adds the user part for a match id passed to [`StackAssembler::expect_match`].
    pub fn matched(&mut self, match_id: u64, leaf_first: Addresses<'_>) {
        if let Some(at) = self.take_match(match_id)
            && let Some(fragment) = self.fragment(leaf_first)
        {
            self.waiting[at].user = Part::Known(fragment);
        }
    }

    /// Like [`StackAssembler::matched`], with a key.
    pub fn matched_key(&mut self, match_id: u64, key: u64) {
        if let Some(at) = self.take_match(match_id) {
            self.waiting[at].user = self.use_of(Mode::User, false, key);
        }
    }

    fn take_match(&mut self, match_id: u64) -> Option<usize> {
        let raw_time = self.by_match.remove(&match_id)?;
        self.at(raw_time)
            .find(|(_, entry)| entry.match_id == match_id)
            .map(|(at, _)| at)
    }

    /// Returns the mode of a part. It is the kernel's only if its outermost address is a kernel
    /// address.
    fn mode_of(&self, outermost: Option<u64>) -> Mode {
        if outermost.is_some_and(|address| address >= self.kernel_from) {
            Mode::Kernel
        } else {
            Mode::User
        }
    }

    /// Returns the waiting events with a raw time, and their indices.
    fn at(&self, raw_time: i64) -> impl Iterator<Item = (usize, &Entry)> {
        let mut at = self.first_from(raw_time);
        let end = at.saturating_add(MAX_AT_ONCE);
        std::iter::from_fn(move || {
            let entry = self.waiting.get(at).filter(|_| at < end)?;
            at += 1;
            (entry.event.raw_time == raw_time).then_some((at - 1, entry))
        })
    }

    /// Returns the index of the first waiting event that is not before a raw time. Most parts follow
    /// their events closely, so the search starts at the last event.
    fn first_from(&self, raw_time: i64) -> usize {
        let is_before = |at: usize| self.waiting[at].event.raw_time < raw_time;
        let (mut low, mut high, mut step) = (self.waiting.len(), self.waiting.len(), 1);
        while low > 0 && !is_before(low - 1) {
            high = low - 1;
            low = high.saturating_sub(step);
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(middle) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Like [`StackAssembler::place`], and counts parts that follow after their event stopped
    /// waiting.
    fn place_or_late(&mut self, of: &Reference, mode: Mode) -> Option<(usize, Mode)> {
        let place = self.place(of, mode);
        // Other parts belong to events that were not requested.
        if place.is_none() && self.given_up >= Some(of.raw_time) {
            self.late_parts += 1;
        }
        place
    }

    /// Returns the event to which a part belongs, and which of its parts it is.
    fn place(&self, of: &Reference, mode: Mode) -> Option<(usize, Mode)> {
        let free = |entry: &Entry, mode| match mode {
            Mode::Kernel => entry.kernel == Part::None,
            Mode::User => entry.user == Part::None,
        };
        let mut best: Option<((bool, bool), usize, Mode)> = None;
        for (at, entry) in self.at(of.raw_time) {
            let same_thread = entry.event.tid == of.tid;
            if !same_thread && entry.event.tid.is_some() {
                continue;
            }
            let mode = if free(entry, mode) {
                mode
            } else if !self.wide && mode == Mode::Kernel && free(entry, Mode::User) {
                // With 3 GB of user addresses, the mode cannot be derived from the addresses, but
                // the kernel part always precedes the user part.
                Mode::User
            } else {
                continue;
            };
            // Prefer the same thread, then an event without thread, preferably on the same
            // processor.
            let rank = (same_thread, entry.event.cpu == of.cpu);
            if best.is_none_or(|(best, ..)| rank >= best) {
                best = Some((rank, at, mode));
            }
        }
        best.map(|(_, at, mode)| (at, mode))
    }

    // A kernel part whose user part does not follow remains alone. To attach the thread's next user
    // part would be a guess: in a real trace it added frames of an image to a stack from before the
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

    /// Returns whether the first event has waited long enough.
    #[inline]
    pub fn has_finished(&self) -> bool {
        let is_over = |time_ns: u64| time_ns.saturating_add(PATIENCE_NS) < self.now_ns;
        let first = self.waiting.front();
        first.is_some_and(|first| is_over(first.event.time_ns) || self.has_ended)
    }

    /// Returns the next event that has waited long enough, with the parts received, in the order of
    /// their times. An event without any part and instruction pointer is dropped.
    #[inline]
    pub fn next_finished(&mut self) -> Option<Finished> {
        while self.has_finished() {
            let entry = self.waiting.front()?;
            let event = &entry.event;
            let has_stack = entry.kernel != Part::None || entry.user != Part::None;
            let finished = Finished {
                time_ns: event.time_ns,
                id: event.id,
                pid: event.pid,
                tid: event.tid,
                sample: event.sample,
                switch: event.switch,
                stack: self.resolved(StackOf {
                    kernel: entry.kernel,
                    user: entry.user,
                    ip: event.ip,
                }),
                has_stack,
            };
            let is_wanted = has_stack || event.ip.is_some();
            self.given_up = self.given_up.max(Some(event.raw_time));
            if entry.match_id != 0 {
                self.by_match.remove(&entry.match_id);
            }
            self.waiting.pop_front();
            if is_wanted {
                return Some(finished);
            }
            self.unused.extend(finished.switch);
        }
        None
    }

    /// Ends the wait of all events at the end of the trace. Returns the number of keys that were
    /// never defined.
    pub fn finish(&mut self) -> u64 {
        self.has_ended = true;
        let is_undefined = |&&definition: &&StackId| definition == StackId::PENDING;
        self.uses.iter().filter(is_undefined).count() as u64
    }

    /// Replaces keys by their definitions, as far as these are known.
    fn resolved(&self, mut stack: StackOf) -> StackOf {
        for part in [&mut stack.kernel, &mut stack.user] {
            if let Part::Key(open) = *part
                && self.uses[open as usize] != StackId::PENDING
            {
                *part = Part::Known(self.uses[open as usize]);
            }
        }
        // The instruction pointer is in the innermost part. The user part is not that one if the
        // thread was in the kernel.
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

    /// Writes the addresses of a stack into `path`, outermost first.
    pub fn addresses_of(&self, stack: StackOf, path: &mut Vec<u64>) {
        let stack = self.resolved(stack);
        path.clear();
        // The kernel part was called from the user part.
        for part in [stack.user, stack.kernel] {
            if let Part::Known(fragment) = part {
                let from = path.len();
                path.extend(self.fragments.addresses(fragment));
                path[from..].reverse();
            }
        }
        // On 32 bits, addresses do not prove whether the thread was in the kernel.
        if path.last() != stack.ip.as_ref() {
            path.extend(stack.ip);
        }
    }

    /// Maximum number of nodes of merged stacks. Each kernel part is repeated on each user part, so
    /// a small file with a few long kernel parts and many user parts could exhaust memory. In real
    /// traces kernel parts have about twenty addresses.
    pub fn most_joined(&self) -> usize {
        const FREE: usize = 1 << 18;
        FREE + self.fragments.len().saturating_mul(32)
    }

    /// Returns the number of stack parts that were logged more than [`PATIENCE_NS`] after their
    /// event.
    pub fn late_parts(&self) -> u64 {
        self.late_parts
    }

    /// Returns the number of stack parts dropped because a limit was reached.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
