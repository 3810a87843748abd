//! The state of each process: its code, its images, and symbols without times.

use std::ops::{Index, IndexMut};

use chronosym_timeline::End;

use crate::clr_state::ClrState;
use crate::code::ProcessCode;
use crate::ids::{ImageIndex, ProcessIndex};
use crate::images::{Image, MappedImages};
use crate::lifetime::has_ended;
use crate::untimed::Untimed;
use chronosym_types::SparseVec;

/// The state of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessState {
    pub code: ProcessCode,
    pub images: SparseVec<Image>,
    pub mapped: MappedImages,
    pub untimed: Untimed,
    pub clr: ClrState,
    /// The images up to this index had all ended at this time.
    closed: (usize, u64),
}

/// Processes of a block.
const BLOCK: usize = 32;

/// A state, and whether it may have changed since it was last published.
type Slot = Option<Box<(ProcessState, bool)>>;

/// The states of consecutive processes.
#[derive(Debug, Default)]
struct Block {
    slots: [Slot; BLOCK],
    /// Number of states.
    count: usize,
}

/// The states of all processes, and which of them may have changed since they were last published.
/// Memory follows the number of states, apart from 8 bytes for every 32 processes that ever
/// existed.
#[derive(Debug, Default)]
pub(crate) struct States {
    /// `None` where all states were dropped.
    blocks: Vec<Option<Box<Block>>>,
    /// The number of states that ever existed.
    end: usize,
    changed: Vec<ProcessIndex>,
}

impl States {
    /// Returns the number of states that ever existed.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Adds states up to a number of states that ever existed.
    pub fn ensure(&mut self, end: usize) {
        for index in self.end..end {
            if index / BLOCK == self.blocks.len() {
                self.blocks.push(None);
            }
            let block = self.blocks[index / BLOCK].get_or_insert_default();
            block.slots[index % BLOCK] = Some(Box::new((ProcessState::default(), true)));
            block.count += 1;
            self.changed.push(ProcessIndex(index as u32));
        }
        self.end = self.end.max(end);
    }

    fn slot(&self, process: usize) -> Option<&(ProcessState, bool)> {
        let block = self.blocks.get(process / BLOCK)?.as_ref()?;
        block.slots[process % BLOCK].as_deref()
    }

    fn slot_mut(&mut self, process: usize) -> Option<&mut (ProcessState, bool)> {
        let block = self.blocks.get_mut(process / BLOCK)?.as_mut()?;
        block.slots[process % BLOCK].as_deref_mut()
    }

    /// Calls `change` with each state; it returns whether it changed the state.
    pub fn update_each(&mut self, mut change: impl FnMut(ProcessIndex, &mut ProcessState) -> bool) {
        for (at, block) in self.blocks.iter_mut().enumerate() {
            let slots = block.iter_mut().flat_map(|block| block.slots.iter_mut());
            for (index, slot) in (at * BLOCK..).zip(slots) {
                let Some((state, is_changed)) = slot.as_deref_mut() else {
                    continue;
                };
                let process = ProcessIndex(index as u32);
                if change(process, state) && !std::mem::replace(is_changed, true) {
                    self.changed.push(process);
                }
            }
        }
    }

    /// Calls `publish` with each state that may have changed since the last call, in order.
    pub fn take_changes(&mut self, mut publish: impl FnMut(ProcessIndex, &mut ProcessState)) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        for process in changed.drain(..) {
            if let Some((state, is_changed)) = self.slot_mut(process.index()) {
                *is_changed = false;
                publish(process, state);
            }
        }
        self.changed = changed;
    }

    /// Returns the state of a process, unless it was dropped.
    pub fn get(&self, process: ProcessIndex) -> Option<&ProcessState> {
        self.slot(process.index()).map(|(state, _)| state)
    }

    /// Returns all states, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ProcessState> {
        let slots = self.blocks.iter().flatten().flat_map(|it| &it.slots);
        slots.flatten().map(|slot| &slot.0)
    }

    /// Drops the state of a process.
    pub fn remove(&mut self, process: ProcessIndex) -> Option<ProcessState> {
        let at = self.blocks.get_mut(process.index() / BLOCK)?;
        let block = at.as_mut()?;
        let state = block.slots[process.index() % BLOCK].take()?;
        block.count -= 1;
        if block.count == 0 {
            *at = None;
        }
        Some(state.0)
    }

    /// Returns all states, in order.
    pub fn into_states(self) -> impl Iterator<Item = ProcessState> {
        let slots = self.blocks.into_iter().flatten().flat_map(|it| it.slots);
        slots.flatten().map(|slot| slot.0)
    }
}

impl Index<usize> for States {
    type Output = ProcessState;

    fn index(&self, process: usize) -> &ProcessState {
        &self.slot(process).expect("the process was not dropped").0
    }
}

impl IndexMut<usize> for States {
    #[inline]
    fn index_mut(&mut self, process: usize) -> &mut ProcessState {
        let block = self.blocks[process / BLOCK].as_mut();
        let slot = block.and_then(|block| block.slots[process % BLOCK].as_deref_mut());
        let (state, is_changed) = slot.expect("the process was not dropped");
        if !std::mem::replace(is_changed, true) {
            self.changed.push(ProcessIndex(process as u32));
        }
        state
    }
}

impl ProcessState {
    /// Ends everything that was mapped or compiled, because the process runs another program.
    pub fn end_all(&mut self, time: u64) {
        self.close(time);
        self.mapped = MappedImages::default();
    }

    /// Ends all code and images of a process that stopped (rule 6).
    pub fn close(&mut self, time: u64) {
        self.code.close_all(time);
        // A process may run many programs: their images are not visited again.
        let (closed, closed_at) = self.closed;
        let first = if time >= closed_at { closed } else { 0 };
        for index in first..self.images.end() {
            if self
                .images
                .get(index)
                .is_some_and(|image| !has_ended(image.end, time))
            {
                self.images[index].end = End::At(time);
            }
        }
        self.closed = (self.images.end(), time);
    }

    /// Drops images, and the entry points that were in them.
    pub fn forget_images(&mut self, dead: &[ImageIndex]) {
        for index in dead {
            let Some(image) = self.images.remove(index.index()) else {
                continue;
            };
            if let End::At(time) = image.end {
                let (first, last) = (image.base, image.last());
                self.code.forget_entry_points(first, last, time);
            }
        }
        if !dead.is_empty() {
            self.mapped.forget(&self.images);
        }
    }

    /// Drops the CLR's records of dropped methods and modules.
    pub fn forget_details(&mut self, horizon_ns: u64) {
        let modules = self.code.modules.iter();
        let modules = modules.filter(|module| !has_ended(module.end, horizon_ns));
        let modules = modules.map(|module| module.module_id).collect();
        self.clr.forget(horizon_ns, &modules);
    }

    /// Returns a copy for readers.
    pub fn snapshot(&mut self) -> Self {
        ProcessState {
            code: self.code.snapshot(),
            images: self.images.clone(),
            mapped: MappedImages::default(),
            untimed: self.untimed.clone(),
            clr: self.clr.snapshot(),
            closed: self.closed,
        }
    }
}
