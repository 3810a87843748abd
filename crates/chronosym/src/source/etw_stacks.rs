//! Puts the stacks of ETW events together.
//!
//! Windows logs the stack of an event after the event, in up to two parts (kernel, user), each either as addresses or as
//! a key whose definition comes later still. A part refers to its event by the event's raw time and thread.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::samples::{ClassIndex, SampleClass, SampleKind};
use crate::session::{EventTypeId, Session};
use crate::stacks::{StackId, StackTable};

/// The parts of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Kernel,
    User,
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
    pub kind: SampleKind,
    pub idle: bool,
    /// Where the thread stood, for the case that no stack comes.
    pub ip: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    event: Waiting,
    kernel: Part,
    user: Part,
    match_id: u64,
}

/// What the stack of a class of samples will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Deferred {
    thread: crate::process::ThreadIndex,
    event: EventTypeId,
    kind: SampleKind,
    idle: bool,
    kernel: Part,
    user: Part,
    ip: Option<u64>,
}

/// In real traces parts come at most 0.4 s after their event.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Events that wait for stacks, and what is known of stack keys.
#[derive(Debug, Default)]
pub(super) struct StackAssembler {
    waiting: VecDeque<Entry>,
    /// Position of the first of `waiting` since the beginning of the trace.
    first: u64,
    by_time: FxHashMap<i64, Vec<u64>>,
    by_match: FxHashMap<u64, u64>,
    /// Parts with addresses; keys have their definitions here too.
    fragments: StackTable,
    /// For each use of a key, what its definition says once it has come.
    definitions: Vec<Option<StackId>>,
    /// The use of a key that is not defined yet.
    open_keys: FxHashMap<(Mode, u64), u32>,
    classes: FxHashMap<Deferred, ClassIndex>,
}

impl StackAssembler {
    /// An event whose stack may come.
    pub fn wait(&mut self, event: Waiting, session: &mut Session) {
        self.give_up(event.time_ns, session);
        let position = self.first + self.waiting.len() as u64;
        self.by_time
            .entry(event.raw_time)
            .or_default()
            .push(position);
        self.waiting.push_back(Entry {
            event,
            kernel: Part::None,
            user: Part::None,
            match_id: 0,
        });
    }

    /// The event that was added last has a user part to come under this number.
    pub fn expect_match(&mut self, match_id: u64) {
        let position = (self.first + self.waiting.len() as u64).wrapping_sub(1);
        if let Some(entry) = self.waiting.back_mut() {
            entry.match_id = match_id;
            self.by_match.insert(match_id, position);
        }
    }

    /// Addresses of a part of the stack of the event at `raw_time` on a thread.
    pub fn addresses(
        &mut self,
        raw_time: i64,
        pid: Option<u32>,
        tid: Option<u32>,
        cpu: u16,
        mode: Mode,
        leaf_first: impl DoubleEndedIterator<Item = u64>,
    ) {
        let Some(fragment) = self.fragments.intern(leaf_first) else {
            return;
        };
        self.attach(raw_time, pid, tid, cpu, mode, Part::Known(fragment));
    }

    /// As [`StackAssembler::addresses`], by a key.
    pub fn key(
        &mut self,
        raw_time: i64,
        pid: Option<u32>,
        tid: Option<u32>,
        cpu: u16,
        mode: Mode,
        key: u64,
    ) {
        let next = self.definitions.len() as u32;
        let open = *self.open_keys.entry((mode, key)).or_insert(next);
        if open == next {
            self.definitions.push(None);
        }
        self.attach(raw_time, pid, tid, cpu, mode, Part::Key(open));
    }

    /// The definition of a key: it holds for all uses since the definition before.
    pub fn define(
        &mut self,
        mode: Mode,
        key: u64,
        leaf_first: impl DoubleEndedIterator<Item = u64>,
    ) {
        if let Some(open) = self.open_keys.remove(&(mode, key)) {
            self.definitions[open as usize] = self.fragments.intern(leaf_first);
        }
    }

    /// The user part for a number that [`StackAssembler::expect_match`] announced.
    pub fn matched(&mut self, match_id: u64, leaf_first: impl DoubleEndedIterator<Item = u64>) {
        let Some(position) = self.by_match.remove(&match_id) else { return };
        let fragment = self.fragments.intern(leaf_first);
        let entry = position
            .checked_sub(self.first)
            .and_then(|i| self.waiting.get_mut(i as usize));
        if let (Some(entry), Some(fragment)) = (entry, fragment) {
            entry.user = Part::Known(fragment);
        }
    }

    fn attach(
        &mut self,
        raw_time: i64,
        pid: Option<u32>,
        tid: Option<u32>,
        cpu: u16,
        mode: Mode,
        part: Part,
    ) {
        let first = self.first;
        let waiting = &self.waiting;
        let fits = |&&position: &&u64| {
            let entry = position
                .checked_sub(first)
                .and_then(|i| waiting.get(i as usize));
            entry.is_some_and(|e| match mode {
                Mode::Kernel => e.kernel == Part::None,
                Mode::User => e.user == Part::None,
            })
        };
        let rank = |&&position: &&u64| {
            let event = &waiting[(position - first) as usize].event;
            // The same thread; else one whose thread is not known, best on the same processor.
            (event.tid == tid, event.tid.is_none(), event.cpu == cpu)
        };
        let usable = |&&position: &&u64| {
            let event = &waiting[(position - first) as usize].event;
            event.tid == tid || event.tid.is_none()
        };
        let found = self.by_time.get(&raw_time).and_then(|positions| {
            positions
                .iter()
                .filter(fits)
                .filter(usable)
                .max_by_key(rank)
                .copied()
        });
        // Stacks of events that nobody asked for have no place to go.
        let Some(position) = found else { return };
        let entry = &mut self.waiting[(position - first) as usize];
        match mode {
            Mode::Kernel => entry.kernel = part,
            Mode::User => entry.user = part,
        }
        entry.event.pid = pid.or(entry.event.pid);
        entry.event.tid = entry.event.tid.or(tid);
    }

    /// Events that have waited long enough get what stack they have.
    fn give_up(&mut self, now_ns: u64, session: &mut Session) {
        while self
            .waiting
            .front()
            .is_some_and(|e| e.event.time_ns.saturating_add(PATIENCE_NS) < now_ns)
        {
            self.log_first(session);
        }
    }

    fn log_first(&mut self, session: &mut Session) {
        let Some(entry) = self.waiting.pop_front() else {
            return;
        };
        let event = entry.event;
        if let Some(positions) = self.by_time.get_mut(&event.raw_time) {
            positions.retain(|&p| p != self.first);
            if positions.is_empty() {
                self.by_time.remove(&event.raw_time);
            }
        }
        if entry.match_id != 0 {
            self.by_match.remove(&entry.match_id);
        }
        self.first += 1;
        let bare = entry.kernel == Part::None && entry.user == Part::None;
        if bare && event.ip.is_none() {
            return;
        }
        let pid = event.pid.unwrap_or(u32::MAX);
        let thread = session.thread(pid, u64::from(event.tid.unwrap_or(0)), event.time_ns);
        let deferred = Deferred {
            thread,
            event: event.id,
            kind: event.kind,
            idle: event.idle,
            kernel: entry.kernel,
            user: entry.user,
            ip: event.ip,
        };
        if !bare {
            session.has_stack(event.id);
        }
        let class = *self.classes.entry(deferred).or_insert_with(|| {
            let class = SampleClass {
                thread,
                stack: StackId::PENDING,
                event: event.id,
                kind: event.kind,
                idle: event.idle,
            };
            session.samples.open_class(class)
        });
        session.samples.log(class, event.time_ns);
    }

    /// The trace is over: gives every sample its stack. Returns how many keys were never defined.
    pub fn finish(mut self, session: &mut Session) -> u64 {
        while !self.waiting.is_empty() {
            self.log_first(session);
        }
        let mut undefined = 0;
        for definition in &self.definitions {
            undefined += u64::from(definition.is_none());
        }
        // In the order in which classes came up, so that two runs are alike.
        let mut classes: Vec<_> = std::mem::take(&mut self.classes).into_iter().collect();
        classes.sort_unstable_by_key(|&(_, class)| class);
        for (deferred, class) in classes {
            let fragment = |part| match part {
                Part::None => None,
                Part::Known(fragment) => Some(fragment),
                Part::Key(open) => self.definitions[open as usize],
            };
            let addresses = |part| -> Vec<u64> {
                fragment(part)
                    .map(|f| self.fragments.addresses(f).collect())
                    .unwrap_or_default()
            };
            // Innermost first: the kernel part stands on the user part.
            let mut stack = addresses(deferred.kernel);
            stack.extend(addresses(deferred.user));
            if stack.is_empty() {
                stack.extend(deferred.ip);
            }
            if let Some(stack) = session.stacks.intern(stack.into_iter()) {
                session.samples.set_stack(class, stack);
            }
        }
        undefined
    }
}
