//! Processes and threads in the records of a perf.data.

use chronosym_events::{Action, Text};
use chronosym_perf::{Comm, Task, Words};
use chronosym_types::hash::{HashMap, HashSet};

use chronosym_core::Session;
use chronosym_core::facts::{At, Fact, Process, ProcessKey};

/// The process of the kernel's own code, and of the idle threads.
pub(crate) const KERNEL: u32 = 0;

#[derive(Default)]
pub(super) struct Processes {
    /// Names of existing threads, by process.
    threads: HashMap<u32, HashMap<u32, Vec<u8>>>,
    /// Forked processes without facts of their own: their parent, and the time of the fork.
    copies: HashMap<u32, (u32, u64)>,
    /// Processes that were sampled since their last `exec`, and all that were ever sampled.
    busy: HashSet<u32>,
    pub sampled: HashSet<u32>,
    /// The process of each thread that was named or started; the latest if ids were reused.
    pub owners: HashMap<u32, u32>,
    is_kernel_named: bool,
    /// Whether processes are in another pid namespace than the machine's initial one.
    pub contained: HashMap<u32, bool>,
}

impl Processes {
    /// Records that a process was sampled.
    pub fn sample(&mut self, pid: u32, session: &mut Session) {
        // A fork or an `exec` makes it one that was not sampled.
        if !self.busy.insert(pid) {
            return;
        }
        if pid == KERNEL {
            self.name_kernel(session);
        }
        self.need(pid, session);
        self.sampled.insert(pid);
    }

    /// Records the inherited mappings of a forked process.
    pub fn need(&mut self, pid: u32, session: &mut Session) {
        // Several generations may lack facts: start with the oldest.
        let mut chain = Vec::new();
        let mut next = pid;
        while let Some((parent, time_ns)) = self.copies.remove(&next) {
            chain.push((next, parent, time_ns));
            next = parent;
        }
        for (child, parent, time_ns) in chain.into_iter().rev() {
            session.apply(At::new(time_ns).process(child), Fact::Fork { parent });
        }
    }

    pub fn namespaces(&mut self, at: At, pid: u32, links: Words<'_>, session: &mut Session) {
        // Device and inode of net, uts, ipc, pid.
        const PID: usize = 7;
        const FIRST: u64 = 0xefff_fffc;
        if let Some(inode) = links.get(PID) {
            self.contained.insert(pid, inode != FIRST);
            session.apply(at.process(pid), ProcessKey::new(None, Some(inode)));
        }
    }

    pub fn comm(&mut self, at: At, comm: &Comm<'_>, session: &mut Session) {
        let name = String::from_utf8_lossy(comm.name);
        let name = Text::from(&*name);
        let threads = self.threads.entry(comm.pid).or_default();
        threads.insert(comm.tid, comm.name.to_vec());
        self.owners.insert(comm.tid, comm.pid);
        let at = at.process(comm.pid).thread(comm.tid.into());
        if comm.is_exec {
            self.copies.remove(&comm.pid);
            if self.busy.remove(&comm.pid) {
                session.apply(at, Process::new(Action::Load, name));
            } else {
                session.apply(at, Fact::Exec);
            }
        }
        if comm.pid == comm.tid {
            session.apply(at, Process::new(Action::DCStart, name));
        }
        session.apply(at, Fact::ThreadName(name));
    }

    pub fn fork(&mut self, at: At, is_live: bool, task: &Task, session: &mut Session) {
        // It inherits the name of the thread that forked it.
        let of_parent = self.threads.get(&task.parent_pid);
        let comm = of_parent.and_then(|threads| threads.get(&task.parent_tid));
        let comm = comm.cloned().unwrap_or_default();
        let name = String::from_utf8_lossy(&comm);
        let name = Text::from(&*name);
        let threads = self.threads.entry(task.pid).or_default();
        let at = at.process(task.pid).thread(task.tid.into());
        if task.pid != task.parent_pid && is_live {
            threads.clear();
            self.busy.remove(&task.pid);
            session.apply(at, Process::new(Action::Load, name));
            self.copies.insert(task.pid, (task.parent_pid, at.time_ns));
        }
        if !name.is_empty() {
            session.apply(at, Fact::ThreadName(name));
        }
        threads.insert(task.tid, comm);
        self.owners.insert(task.tid, task.pid);
    }

    /// Names the kernel and the idle threads, which no record names.
    pub fn name_kernel(&mut self, session: &mut Session) {
        if !std::mem::replace(&mut self.is_kernel_named, true) {
            let at = At::new(0).process(KERNEL).thread(0);
            session.apply(at, Process::new(Action::DCStart, "[kernel]"));
            session.apply(at, Fact::ThreadName(Text::from("swapper")));
        }
    }

    /// Ends a process with its last thread.
    pub fn exit(&mut self, at: At, task: &Task, session: &mut Session) {
        let Some(threads) = self.threads.get_mut(&task.pid) else {
            return;
        };
        if threads.remove(&task.tid).is_some() && threads.is_empty() {
            self.threads.remove(&task.pid);
            session.apply(at.process(task.pid), Process::new(Action::Unload, ""));
        }
    }
}
