//! Estimates the memory of a session from the numbers of its elements.

use crate::body::{CodeBody, Module};
use crate::budget::{Budget, Share};
use crate::code::ProcessCode;
use crate::images::Image;
use crate::process::{Process, Thread};
use crate::session::Session;
use crate::space::AddressSpace;
use crate::state::ProcessState;
use crate::untimed::UntimedSymbol;

/// Bytes per entry of a map: the overhead of a hash table or B-tree, including unused capacity.
const ENTRY: u64 = 40;
/// Bytes of a stack node, with its entries in the index and in the cache of resolved stacks.
const STACK_NODE: u64 = 16 + ENTRY + 32;
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
    /// Limits the memory of the session, its timeline and results derived from it. A live session
    /// has no budget: it forgets what has ended.
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
        if budget.is_unlimited() {
            self.unmeasured = usize::MAX;
            return true;
        }
        let used = self.memory_bytes();
        self.machine.budget.measured(used);
        let left = self.machine.budget.left(Share::Recording);
        // One event can have thousands of nodes.
        let nodes = usize::try_from(left / STACK_NODE).unwrap_or(usize::MAX);
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

    /// Returns the estimated memory of the session in bytes, with what a timeline adds to it.
    pub fn memory_bytes(&self) -> u64 {
        let machine = &self.machine;
        let states = machine.states.iter().map(ProcessState::memory_bytes);
        let processes =
            size_of::<Process>() + size_of::<ProcessState>() + size_of::<AddressSpace>();
        let counted = [
            (self.stacks.len(), STACK_NODE),
            (self.samples.classes().len(), SAMPLE_CLASS),
            (self.samples.memory_bytes(), 1),
            (self.types.all.len(), EVENT_TYPE),
            (self.markers.len(), 96),
            (self.kept.memory_bytes(), 1),
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
