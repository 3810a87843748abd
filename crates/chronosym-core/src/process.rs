//! Process incarnations and threads.

use std::sync::Arc;

use chronosym_types::hash::HashMap;

use crate::ids::{ProcessIndex, ThreadIndex};
use crate::layers::Layers;
use crate::ranges::ForgottenCode;
use crate::strings::StringId;
use chronosym_types::SparseVec;

/// A process incarnation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    /// The process id, if known.
    pub pid: Option<u32>,
    pub name: StringId,
    pub command_line: StringId,
    /// When it started, if an event states it.
    pub start: Option<u64>,
    /// When it stopped, if an event states it.
    pub end: Option<u64>,
    /// When it started, ns since 1970-01-01 UTC, if the recorder states it.
    pub started_unix_ns: Option<i64>,
    /// The inode of its pid namespace, if the recorder states it.
    pub pid_namespace: Option<u64>,
    /// Whether it is a 32-bit process of a 64-bit Windows.
    pub is_wow64: bool,
    pub runtimes: Vec<Runtime>,
    /// Whether a saved timeline states that a CLR runs in it.
    pub is_managed: bool,
    /// Code that was dropped before the timeline was saved.
    pub forgotten: Arc<ForgottenCode>,
}

/// One runtime instance in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    pub clr_instance: u16,
    /// Product version: major, minor, build, revision.
    pub version: [u16; 4],
    pub sku: u16,
    /// Whether it completed a rundown, at the start or at the end of the recording.
    pub rundown: bool,
}

/// A thread of a process incarnation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub process: ProcessIndex,
    pub tid: u64,
    pub name: StringId,
    /// Earlier names, each with the time until which it was valid.
    pub earlier: Vec<(u64, StringId)>,
}

impl Thread {
    pub fn rename(&mut self, name: StringId, time_ns: u64) {
        let before = std::mem::replace(&mut self.name, name);
        if before != StringId::EMPTY && before != name {
            self.earlier.push((time_ns, before));
        }
    }

    /// Returns the name at a time.
    pub fn name_at(&self, time_ns: u64) -> StringId {
        let then = self.earlier.iter().find(|(until, _)| time_ns < *until);
        then.map_or(self.name, |&(_, name)| name)
    }
}

/// All processes and threads of a session.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub all: SparseVec<Process>,
    pub threads: SparseVec<Thread>,
    by_pid: Layers<Option<u32>, ProcessIndex>,
    /// Needed only to add threads.
    by_tid: HashMap<(ProcessIndex, u64), ThreadIndex>,
    /// The pids with one incarnation that were looked up last, by their lowest bits: most events
    /// are of few processes.
    recent: [Option<(Option<u32>, ProcessIndex)>; RECENT],
    /// The threads that were looked up last, likewise.
    recent_threads: [Option<(ProcessIndex, u64, ThreadIndex)>; RECENT],
}

const RECENT: usize = 16;

/// Returns the place of a pid among the recent ones.
fn slot(pid: Option<u32>) -> usize {
    slot_of(pid.unwrap_or(0).into())
}

/// Returns the place of an id. Those of Windows are multiples of 4.
fn slot_of(id: u64) -> usize {
    ((id / 4) ^ id) as usize % RECENT
}

impl Processes {
    /// Returns the incarnation of `pid` for events of `time_ns`: the latest that had started,
    /// created if there is none.
    #[inline]
    pub fn at(&mut self, pid: Option<u32>, time_ns: u64) -> ProcessIndex {
        self.recent(pid)
            .unwrap_or_else(|| self.look_up(pid, time_ns))
    }

    /// Returns the incarnation of a pid with only one, if it was looked up lately.
    #[inline]
    fn recent(&self, pid: Option<u32>) -> Option<ProcessIndex> {
        let (recent, process) = self.recent[slot(pid)]?;
        (recent == pid).then_some(process)
    }

    #[inline(never)]
    fn look_up(&mut self, pid: Option<u32>, time_ns: u64) -> ProcessIndex {
        let process = self.find(pid, time_ns);
        let process = process.unwrap_or_else(|| self.add(pid, None));
        let is_only = self.by_pid.of(pid).nth(1).is_none();
        self.recent[slot(pid)] = is_only.then_some((pid, process));
        process
    }

    /// Returns whether a pid that was looked up has one incarnation.
    pub fn is_only(&self, pid: Option<u32>) -> bool {
        self.recent(pid).is_some()
    }

    /// Returns the incarnation of `pid` for events of `time_ns`, if there is one.
    pub fn find(&self, pid: Option<u32>, time_ns: u64) -> Option<ProcessIndex> {
        let started = |i: ProcessIndex| {
            let start = self.all[i.index()].start;
            start.is_none_or(|start| start <= time_ns)
        };
        let last = self.by_pid.last_where(pid, started);
        last.or_else(|| self.by_pid.of(pid).next())
    }

    /// Starts a new incarnation, unless the last one started at this very time.
    pub fn start(&mut self, pid: Option<u32>, time_ns: u64) -> ProcessIndex {
        if let Some(last) = self.by_pid.of(pid).next_back()
            && self.all[last.index()].start == Some(time_ns)
        {
            return last;
        }
        self.add(pid, Some(time_ns))
    }

    fn add(&mut self, pid: Option<u32>, start: Option<u64>) -> ProcessIndex {
        self.restore(Process {
            pid,
            start,
            ..Process::default()
        })
    }

    /// Adds a process incarnation; those of one pid in the order of their starts.
    pub fn restore(&mut self, process: Process) -> ProcessIndex {
        let pid = process.pid;
        self.recent[slot(pid)] = None;
        let index = ProcessIndex(self.all.push(process) as u32);
        self.by_pid.push(pid, index);
        index
    }

    /// Adds a thread, in place of an older one with its id.
    pub fn restore_thread(&mut self, thread: Thread) -> ThreadIndex {
        let key = (thread.process, thread.tid);
        let index = ThreadIndex(self.threads.push(thread) as u32);
        self.by_tid.insert(key, index);
        self.recent_threads[slot_of(key.1)] = None;
        index
    }

    /// Returns the incarnations of `pid`, oldest first.
    pub fn incarnations(&self, pid: Option<u32>) -> impl DoubleEndedIterator<Item = ProcessIndex> {
        self.by_pid.of(pid)
    }

    /// Returns the processes that ended by a time, or whose pid another process had by then.
    pub fn ended_by(&self, time_ns: u64) -> Vec<ProcessIndex> {
        let all = self
            .all
            .indexed()
            .map(|(index, process)| (ProcessIndex(index as u32), process));
        let started = |process: ProcessIndex| {
            self.all[process.index()]
                .start
                .is_some_and(|start| start <= time_ns)
        };
        let has_ended = |&(index, process): &(ProcessIndex, &Process)| {
            let incarnations = self.incarnations(process.pid).rev();
            let mut later = incarnations.take_while(|&other| other > index);
            process.end.is_some_and(|end| end <= time_ns) || later.any(started)
        };
        all.filter(has_ended).map(|(index, _)| index).collect()
    }

    /// Drops processes that have ended, with their threads.
    pub fn forget(&mut self, dead: &[ProcessIndex]) {
        for process in dead {
            self.all.remove(process.index());
        }
        let all = &self.all;
        self.by_pid
            .retain(|_, process| all.contains(process.index()));
        let threads = &mut self.threads;
        self.by_tid.retain(|(process, _), thread| {
            let keep = all.contains(process.index());
            if !keep {
                threads.remove(thread.index());
            }
            keep
        });
        self.by_tid.shrink_to(2 * self.by_tid.len());
        (self.recent, self.recent_threads) = ([None; RECENT], [None; RECENT]);
    }

    /// Returns the state that queries need; later events do not change it.
    pub fn snapshot(&mut self) -> Self {
        Processes {
            all: self.all.clone(),
            threads: self.threads.clone(),
            by_pid: self.by_pid.snapshot(),
            ..Processes::default()
        }
    }

    /// Returns the thread `tid` of a process, created if it is new.
    pub fn thread(&mut self, process: ProcessIndex, tid: u64) -> ThreadIndex {
        let recent = &mut self.recent_threads[slot_of(tid)];
        if let Some((of, last, thread)) = *recent
            && (of, last) == (process, tid)
        {
            return thread;
        }
        let next = ThreadIndex(self.threads.end() as u32);
        let thread = *self.by_tid.entry((process, tid)).or_insert_with(|| {
            self.threads.push(Thread {
                process,
                tid,
                name: StringId::EMPTY,
                earlier: Vec::new(),
            });
            next
        });
        *recent = Some((process, tid, thread));
        thread
    }

    /// Returns the runtime `clr_instance` of a process, created if it is new.
    pub fn runtime(&mut self, process: ProcessIndex, clr_instance: u16) -> &mut Runtime {
        let runtimes = &mut self.all[process.index()].runtimes;
        let index = runtimes.iter().position(|r| r.clr_instance == clr_instance);
        let index = index.unwrap_or_else(|| {
            runtimes.push(Runtime {
                clr_instance,
                ..Runtime::default()
            });
            runtimes.len() - 1
        });
        &mut runtimes[index]
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
