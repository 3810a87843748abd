//! What is known of each process: its code, its images, and symbols without times.

use std::ops::{Index, IndexMut};

use chronosym_timeline::End;

use crate::clr_state::ClrState;
use crate::code::ProcessCode;
use crate::images::{Image, MappedImages};
use crate::lifetime::has_ended;
use crate::untimed::Untimed;

/// Everything that is known of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessState {
    pub code: ProcessCode,
    pub images: Vec<Image>,
    pub mapped: MappedImages,
    pub untimed: Untimed,
    pub clr: ClrState,
}

/// The states of all processes. Whoever may change one marks it, so that copies of the others need not be made again.
#[derive(Debug, Default)]
pub(crate) struct States(Vec<(ProcessState, bool)>);

impl States {
    /// There are at least so many states from now on.
    pub fn ensure(&mut self, count: usize) {
        if self.0.len() < count {
            self.0
                .resize_with(count, || (ProcessState::default(), true));
        }
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ProcessState> {
        self.0.iter_mut().map(|(state, changed)| {
            *changed = true;
            state
        })
    }

    /// Each state, and whether it may have changed since the last call.
    pub fn take_changes(&mut self) -> impl Iterator<Item = (&mut ProcessState, bool)> {
        let states = self.0.iter_mut();
        states.map(|(state, changed)| (state, std::mem::take(changed)))
    }

    pub fn into_states(self) -> impl Iterator<Item = ProcessState> {
        self.0.into_iter().map(|(state, _)| state)
    }
}

impl Index<usize> for States {
    type Output = ProcessState;

    fn index(&self, process: usize) -> &ProcessState {
        &self.0[process].0
    }
}

impl IndexMut<usize> for States {
    fn index_mut(&mut self, process: usize) -> &mut ProcessState {
        let (state, changed) = &mut self.0[process];
        *changed = true;
        state
    }
}

impl ProcessState {
    /// The process runs another program: ends everything that was mapped or compiled.
    pub fn end_all(&mut self, time: u64) {
        self.close(time);
        self.mapped = MappedImages::default();
    }

    /// The process stopped: its code answers no longer (rule 6).
    pub fn close(&mut self, time: u64) {
        self.code.close_all(time);
        let images = self.images.iter_mut().map(|image| &mut image.end);
        let modules = self.code.modules.iter_mut().map(|module| &mut module.end);
        for end in images.chain(modules).filter(|end| !has_ended(**end, time)) {
            *end = End::At(time);
        }
    }

    /// Drops the details of methods whose loader had ended by `horizon_ns`, or was not known then.
    pub fn forget_details(&mut self, horizon_ns: u64) {
        let code = &self.code;
        let gone = |module| code.module_ended(module, horizon_ns);
        self.clr
            .forget(|time, module| time > horizon_ns || !gone(module));
    }

    /// What answers need, as it is now.
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
