//! Offsets of a file's rows in a session that may have read other files.

use chronosym_timeline::{End, Start};

use crate::ids::{ProcessIndex, ThreadIndex};

/// The offsets that are added to a file's indices and times.
#[derive(Debug, Default)]
pub(super) struct Base {
    pub processes: u32,
    pub threads: u32,
    pub shift_ns: u64,
}

impl Base {
    pub fn process(&self, process: u32) -> ProcessIndex {
        ProcessIndex(self.processes.saturating_add(process))
    }

    pub fn thread(&self, thread: ThreadIndex) -> ThreadIndex {
        ThreadIndex(self.threads.saturating_add(thread.0))
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
