//! The state of each process: its code, its images, and symbols without times.

use std::ops::{Index, IndexMut};

use chronosym_timeline::End;
use rustc_hash::FxHashMap;

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
}

/// The states of all processes, and which of them may have changed since they were last published.
#[derive(Debug, Default)]
pub(crate) struct States {
    states: FxHashMap<usize, (ProcessState, bool)>,
    /// The number of states that there ever were.
    end: usize,
    changed: Vec<ProcessIndex>,
}

impl States {
    /// Adds states until there were so many.
    pub fn ensure(&mut self, end: usize) {
        for index in self.end..end {
            self.states.insert(index, (ProcessState::default(), true));
            self.changed.push(ProcessIndex(index as u32));
        }
        self.end = self.end.max(end);
    }

    /// Calls `change` with each state; it returns whether it changed that.
    pub fn update_each(&mut self, mut change: impl FnMut(ProcessIndex, &mut ProcessState) -> bool) {
        for index in 0..self.end {
            let Some((state, is_changed)) = self.states.get_mut(&index) else {
                continue;
            };
            let process = ProcessIndex(index as u32);
            if change(process, state) && !std::mem::replace(is_changed, true) {
                self.changed.push(process);
            }
        }
    }

    /// Calls `publish` with each state that may have changed since the last call, in order.
    pub fn take_changes(&mut self, mut publish: impl FnMut(ProcessIndex, &mut ProcessState)) {
        self.changed.sort_unstable();
        for process in self.changed.drain(..) {
            if let Some((state, is_changed)) = self.states.get_mut(&process.index()) {
                *is_changed = false;
                publish(process, state);
            }
        }
    }

    /// The state of a process, unless it was dropped.
    pub fn get(&self, process: ProcessIndex) -> Option<&ProcessState> {
        self.states.get(&process.index()).map(|(state, _)| state)
    }

    /// All states, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &ProcessState> {
        self.states.values().map(|(state, _)| state)
    }

    /// Drops the state of a process.
    pub fn remove(&mut self, process: ProcessIndex) -> Option<ProcessState> {
        self.states.remove(&process.index()).map(|(state, _)| state)
    }

    pub fn into_states(mut self) -> impl Iterator<Item = ProcessState> {
        (0..self.end).filter_map(move |index| self.remove(ProcessIndex(index as u32)))
    }
}

impl Index<usize> for States {
    type Output = ProcessState;

    fn index(&self, process: usize) -> &ProcessState {
        &self.states[&process].0
    }
}

impl IndexMut<usize> for States {
    fn index_mut(&mut self, process: usize) -> &mut ProcessState {
        let state = self.states.get_mut(&process);
        let (state, is_changed) = state.expect("the process was not dropped");
        if !std::mem::replace(is_changed, true) {
            self.changed.push(ProcessIndex(process as u32));
        }
        state
    }
}

impl ProcessState {
    /// The process runs another program: ends everything that was mapped or compiled.
    pub fn end_all(&mut self, time: u64) {
        self.close(time);
        self.mapped = MappedImages::default();
    }

    /// Ends all code and images of a process that stopped (rule 6).
    pub fn close(&mut self, time: u64) {
        self.code.close_all(time);
        let alive = |end| !has_ended(end, time);
        let images = self.images.indexed().filter(|(_, image)| alive(image.end));
        for index in images.map(|(index, _)| index).collect::<Vec<_>>() {
            self.images[index].end = End::At(time);
        }
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

    /// Drops what the CLR logged of methods and modules that have gone.
    pub fn forget_details(&mut self, horizon_ns: u64) {
        let modules = self.code.modules.iter();
        let modules = modules.filter(|module| !has_ended(module.end, horizon_ns));
        let modules = modules.map(|module| module.module_id).collect();
        self.clr.forget(horizon_ns, &modules);
    }

    /// A copy for readers.
    pub fn snapshot(&mut self) -> Self {
        ProcessState {
            code: self.code.snapshot(),
            images: self.images.clone(),
            mapped: MappedImages::default(),
            untimed: self.untimed.clone(),
            clr: self.clr.snapshot(),
        }
    }
}
