//! Processes, their incarnations, and threads.

use chronosym_types::hash::HashMap;

use crate::ids::{ProcessIndex, ThreadIndex};
use crate::layers::Layers;
use crate::strings::StringId;
use chronosym_types::Chunked;

/// What the trace says of a process incarnation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    /// Where it is known.
    pub pid: Option<u32>,
    pub name: StringId,
    pub command_line: StringId,
    /// When it started, where an event says so.
    pub start: Option<u64>,
    /// When it stopped, where an event says so.
    pub end: Option<u64>,
    /// Whether its pointers are half as wide as the system's.
    pub is_wow64: bool,
    pub runtimes: Vec<Runtime>,
}

/// One runtime instance in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    pub clr_instance: u16,
    /// Product version: major, minor, build, revision.
    pub version: [u16; 4],
    pub sku: u16,
    /// Whether it listed what was alive: at the start or at the end of the recording, to the last row.
    pub rundown: bool,
}

/// A thread of a process incarnation.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub process: ProcessIndex,
    pub tid: u64,
    pub name: StringId,
    /// What it was called before, and until when.
    pub earlier: Vec<(u64, StringId)>,
}

impl Thread {
    pub fn rename(&mut self, name: StringId, time_ns: u64) {
        let before = std::mem::replace(&mut self.name, name);
        if before != StringId::EMPTY && before != name {
            self.earlier.push((time_ns, before));
        }
    }

    /// What it was called at a time.
    pub fn name_at(&self, time_ns: u64) -> StringId {
        let then = self.earlier.iter().find(|(until, _)| time_ns < *until);
        then.map_or(self.name, |&(_, name)| name)
    }
}

/// All processes and threads of a session.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub all: Chunked<Process>,
    pub threads: Chunked<Thread>,
    by_pid: Layers<Option<u32>, ProcessIndex>,
    /// Who adds threads needs it.
    by_tid: HashMap<(ProcessIndex, u64), ThreadIndex>,
    /// The pid that was asked for last, if it is of one incarnation: most events come in runs.
    last: Option<(Option<u32>, ProcessIndex)>,
    last_thread: Option<(ProcessIndex, u64, ThreadIndex)>,
}

impl Processes {
    /// The incarnation of `pid` that events of `time_ns` speak of: the latest that had started, made if there is none.
    pub fn at(&mut self, pid: Option<u32>, time_ns: u64) -> ProcessIndex {
        if let Some((last, process)) = self.last
            && last == pid
        {
            return process;
        }
        let found = self.find(pid, time_ns);
        let found = found.unwrap_or_else(|| self.add(pid, None));
        let is_only = self.by_pid.of(pid).nth(1).is_none();
        self.last = is_only.then_some((pid, found));
        found
    }

    /// As [`Processes::at`], without making one.
    pub fn find(&self, pid: Option<u32>, time_ns: u64) -> Option<ProcessIndex> {
        let started = |i: &ProcessIndex| {
            let start = self.all[i.index()].start;
            start.is_none_or(|start| start <= time_ns)
        };
        let last = self.by_pid.of(pid).rev().find(started);
        last.or_else(|| self.by_pid.of(pid).next())
    }

    /// A process started: a new incarnation, unless it is the one that started at this very time.
    pub fn start(&mut self, pid: Option<u32>, time_ns: u64) -> ProcessIndex {
        if let Some(last) = self.by_pid.of(pid).next_back()
            && self.all[last.index()].start == Some(time_ns)
        {
            return last;
        }
        self.add(pid, Some(time_ns))
    }

    fn add(&mut self, pid: Option<u32>, start: Option<u64>) -> ProcessIndex {
        self.last = None;
        let index = ProcessIndex(self.all.len() as u32);
        self.all.push(Process {
            pid,
            start,
            ..Process::default()
        });
        self.by_pid.push(pid, index);
        index
    }

    /// The incarnations of `pid`, oldest first.
    pub fn incarnations(&self, pid: Option<u32>) -> impl DoubleEndedIterator<Item = ProcessIndex> {
        self.by_pid.of(pid)
    }

    /// What answers need, as it is now.
    pub fn snapshot(&mut self) -> Self {
        Processes {
            all: self.all.clone(),
            threads: self.threads.clone(),
            by_pid: self.by_pid.snapshot(),
            ..Processes::default()
        }
    }

    /// The thread `tid` of a process, made if it is new.
    pub fn thread(&mut self, process: ProcessIndex, tid: u64) -> ThreadIndex {
        if let Some((of, last, thread)) = self.last_thread
            && (of, last) == (process, tid)
        {
            return thread;
        }
        let next = ThreadIndex(self.threads.len() as u32);
        let thread = *self.by_tid.entry((process, tid)).or_insert_with(|| {
            self.threads.push(Thread {
                process,
                tid,
                name: StringId::EMPTY,
                earlier: Vec::new(),
            });
            next
        });
        self.last_thread = Some((process, tid, thread));
        thread
    }

    /// The runtime `clr_instance` of a process, made if it is new.
    pub fn runtime(&mut self, process: ProcessIndex, clr_instance: u16) -> &mut Runtime {
        let runtimes = &mut self.all[process.index()].runtimes;
        let found = runtimes.iter().position(|r| r.clr_instance == clr_instance);
        let at = found.unwrap_or_else(|| {
            runtimes.push(Runtime {
                clr_instance,
                ..Runtime::default()
            });
            runtimes.len() - 1
        });
        &mut runtimes[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_that_is_used_again_is_another_process() {
        let mut processes = Processes::default();
        let first = processes.at(Some(7), 100);
        processes.all[first.index()].end = Some(200);
        let second = processes.start(Some(7), 300);
        assert_ne!(first, second);
        assert_eq!(
            processes.at(Some(7), 250),
            first,
            "between the two, late events belong to the one that was there"
        );
        assert_eq!(processes.at(Some(7), 300), second);
        assert_ne!(processes.thread(first, 1), processes.thread(second, 1));
    }
}
