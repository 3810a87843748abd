//! The counterparts of a file's rows in a session that may have read other files.

use chronosym_timeline::{End, Start};

use crate::code::join::KnownModules;
use crate::ids::{ModuleIndex, ProcessIndex, ThreadIndex};

/// The elements of a session that a file's numbers mean, and the distance of its times.
#[derive(Debug, Default)]
pub(super) struct Base {
    pub processes: Vec<BaseProcess>,
    pub threads: Vec<ThreadIndex>,
    pub shift_ns: u64,
    /// Set for files whose processes may be in the session already: times that differ by up to so
    /// many ns may be the same.
    pub joins_within_ns: Option<u64>,
}

/// A process of a file.
#[derive(Debug)]
pub(super) struct BaseProcess {
    pub index: ProcessIndex,
    pub modules: Vec<ModuleIndex>,
    /// The modules that another file states, if it has the process, too.
    pub known: Option<KnownModules>,
}

impl Base {
    pub fn process(&self, process: u32) -> ProcessIndex {
        self.processes[process as usize].index
    }

    pub fn thread(&self, thread: ThreadIndex) -> Option<ThreadIndex> {
        self.threads.get(thread.index()).copied()
    }

    pub fn times<'t>(&self, times: impl IntoIterator<Item = &'t mut u64>) {
        for time in times {
            *time = time.saturating_add(self.shift_ns);
        }
    }

    pub fn lifetime(&self, start: &mut Start, end: &mut End) {
        if let Start::At(time) | Start::Before(time) = start {
            self.times([time]);
        }
        if let End::At(time) | End::After(time) = end {
            self.times([time]);
        }
    }
}
