//! Estimates the memory of a session from the numbers of its elements.

use crate::body::{CodeBody, Module};
use crate::budget::{Budget, Share};
use crate::code::ProcessCode;
use crate::ids::EventTypeId;
use crate::images::Image;
use crate::process::{Process, Thread};
use crate::recording::Loss;
use crate::room::Left;
use crate::session::Session;
use crate::space::AddressSpace;
use crate::state::ProcessState;
use crate::untimed::UntimedSymbol;

/// Bytes per entry of a map: the overhead of a hash table or B-tree, including unused capacity.
const ENTRY: u64 = 40;
/// Bytes of a stack node, with its entry in the cache of resolved stacks and its resolved nodes.
const STACK_NODE: u64 = 16 + 16 + 16;
/// Bytes of samples of one thread, stack and kind: the class, its entry, and the profile's counts
/// for it.
const SAMPLE_CLASS: u64 = 300;
/// Bytes of an event type with its schema.
const EVENT_TYPE: u64 = 700;
/// Bytes of a process whose maps are empty, beyond its state.
const EMPTY_SPACE: u64 = 600;
/// Bytes of an occupant in a frozen map.
const OCCUPANT: u64 = 120;

/// Bytes of an image with its row in outputs.
const IMAGE: u64 = size_of::<Image>() as u64 + OCCUPANT + 2 * ENTRY + 300;
/// Bytes of a thread with its row in outputs.
const THREAD: u64 = size_of::<Thread>() as u64 + ENTRY + 300;

/// Minimum number of events between two measurements.
const STEP: usize = 256;

impl Session {
    /// Limits the memory of the session, its timeline and results derived from it. Does nothing in a
    /// live session, which has [a budget of its own](crate::LiveSession::limit_memory).
    pub fn limit_memory(&mut self, budget: Budget) {
        if !self.is_live {
            self.machine.budget = budget;
            self.unmeasured = 0;
        }
    }

    /// Returns whether the memory budget permits more events; `events` is the number since the last
    /// call. If not, a source stops reading, and what was read stays valid.
    #[inline]
    pub fn has_room(&mut self, events: usize) -> bool {
        if events < self.unmeasured && !self.stacks.is_full() {
            self.unmeasured -= events;
            return true;
        }
        self.measure()
    }

    /// Like [`has_room`](Self::has_room), for events about code that were read together with
    /// samples: leaves memory for the samples.
    pub fn has_room_for_code(&mut self, events: usize) -> bool {
        self.has_room(events) || self.machine.budget.has_room(Share::Frames)
    }

    /// Measures, and determines when to measure again. Returns whether the budget permits more.
    #[cold]
    fn measure(&mut self) -> bool {
        let budget = &self.machine.budget;
        if budget.is_unlimited() || self.is_live {
            self.unmeasured = usize::MAX;
            return true;
        }
        let used = self.memory_bytes();
        self.machine.budget.measured(used);
        let left = self.machine.budget.left(Share::Recording);
        // One event can have thousands of nodes.
        let nodes = usize::try_from(left / (STACK_NODE + 2 * ENTRY)).unwrap_or(usize::MAX);
        self.stacks.limit(self.stacks.len().saturating_add(nodes));
        if left == 0 {
            self.unmeasured = 0;
            let reached = (self.machine.budget.bytes(), self.machine.facts.duration_ns);
            self.machine.counters.out_of_memory.get_or_insert(reached);
            return false;
        }
        // A measurement visits each process.
        self.unmeasured = STEP.max(self.machine.states.end() / 4);
        true
    }

    /// Returns whether a live session has room for an event; `ends` states that it ends what exists.
    /// If not, its loss is recorded, so that answers which it could change are less certain. Other
    /// sessions stop reading instead ([`has_room`](Self::has_room)).
    #[inline]
    pub(crate) fn admits(&mut self, time_ns: u64, ends: bool) -> bool {
        self.room.is_none() || self.admits_live(time_ns, ends)
    }

    /// As [`Session::admits`], for an event of a type. One that is left out is counted all the same.
    pub(crate) fn admits_event(&mut self, id: EventTypeId, time_ns: u64) -> bool {
        let of_code = self.info(id).filter(|it| it.meaning.role.states_code());
        let Some(ends) = of_code.map(|it| it.schema.ends()) else {
            return true;
        };
        let is_admitted = self.admits(time_ns, ends);
        if !is_admitted {
            self.count(id, 1, 0, time_ns);
        }
        is_admitted
    }

    fn admits_live(&mut self, time_ns: u64, ends: bool) -> bool {
        let left = self.room_left(1);
        let Some(room) = &mut self.room else {
            return true;
        };
        if left == Left::All || (ends && left == Left::Ends) {
            return true;
        }
        self.machine.counters.refused += 1;
        let loss = Loss::of_events(time_ns.saturating_sub(1), time_ns, 1);
        match room.loss.and_then(|index| self.losses.get_mut(index)) {
            Some(last) => *last = last.join(loss),
            None => {
                room.loss = Some(self.losses.len());
                self.losses.push(loss);
            }
        }
        false
    }

    /// Returns what a live session takes before the next `events` events.
    pub(crate) fn room_left(&mut self, events: usize) -> Left {
        let used = match &self.room {
            None => return Left::All,
            Some(room) if events < room.unmeasured => None,
            Some(_) => Some(self.memory_bytes()),
        };
        let next = STEP.max(self.machine.states.end() / 4);
        let Some(room) = &mut self.room else {
            return Left::All;
        };
        match used {
            Some(used) => {
                self.machine.budget.measured(used);
                room.measured(used, self.machine.budget.bytes(), next);
            }
            None => room.unmeasured -= events,
        }
        room.left
    }

    /// Returns the estimated memory of the session in bytes, with what a timeline adds to it.
    pub fn memory_bytes(&self) -> u64 {
        let machine = &self.machine;
        let states = machine.states.iter().map(ProcessState::memory_bytes);
        let processes =
            size_of::<Process>() + size_of::<ProcessState>() + size_of::<AddressSpace>();
        let counted = [
            (self.stacks.len(), STACK_NODE),
            (self.stacks.indexed(), 2 * ENTRY),
            (self.samples.classes().len(), SAMPLE_CLASS),
            (self.samples.memory_bytes(), 1),
            (self.types.all.len(), EVENT_TYPE),
            (self.markers.len(), 96),
            (self.kept.memory_bytes(), 1),
            (
                self.activity_ids.memory_bytes() + self.on_cpu.memory_bytes(),
                1,
            ),
            (machine.names.memory_bytes(), 1),
            (
                machine.processes.all.count(),
                processes as u64 + EMPTY_SPACE + ENTRY,
            ),
            (machine.processes.threads.count(), THREAD),
            (self.kernel.len() + self.universal.len(), 2 * ENTRY),
        ];
        counted
            .iter()
            .map(|&(count, bytes)| count as u64 * bytes)
            .sum::<u64>()
            + states.sum::<u64>()
    }
}

impl ProcessState {
    fn memory_bytes(&self) -> u64 {
        let counted = [
            (self.images.count(), IMAGE),
            (
                self.untimed.symbols.len(),
                size_of::<UntimedSymbol>() as u64 + ENTRY,
            ),
            (self.clr.len(), 2 * ENTRY),
            (self.clr.pdb_bytes(), 1),
        ];
        let counted = counted.iter().map(|&(count, bytes)| count as u64 * bytes);
        counted.sum::<u64>() + self.code.memory_bytes()
    }
}

impl ProcessCode {
    fn memory_bytes(&self) -> u64 {
        let ranges = OCCUPANT + 2 * ENTRY;
        let counted = [
            (self.bodies.count(), size_of::<CodeBody>() as u64 + ranges),
            (self.modules.count(), size_of::<Module>() as u64 + 3 * ENTRY),
            (self.details_bytes, 1),
            (self.permanent_assemblies(), ENTRY),
            (
                self.entry_points.len(),
                size_of::<CodeBody>() as u64 + ranges,
            ),
            (self.small_entries(), 3 * ENTRY),
        ];
        counted
            .iter()
            .map(|&(count, bytes)| count as u64 * bytes)
            .sum()
    }
}
