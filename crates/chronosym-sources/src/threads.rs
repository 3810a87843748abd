//! Names and processes of existing threads, for sources whose events repeat them.

use std::collections::BTreeMap;

use chronosym_core::Session;
use chronosym_core::facts::{At, Fact, Text};
use chronosym_types::hash::HashMap;

/// Threads.
#[derive(Default)]
pub(super) struct Threads {
    /// Their names, by process.
    names: BTreeMap<u32, BTreeMap<u64, Box<[u8]>>>,
    /// Their processes.
    owners: HashMap<u64, u32>,
}

impl Threads {
    /// Records a thread and its name.
    pub fn name(&mut self, at: At, pid: u32, tid: u64, name: &[u8], session: &mut Session) {
        let threads = self.names.entry(pid).or_default();
        let current = threads.entry(tid).or_insert_with(|| {
            self.owners.insert(tid, pid);
            Box::default()
        });
        if name.is_empty() || **current == *name {
            return;
        }
        *current = name.into();
        let name = String::from_utf8_lossy(name);
        session.apply(
            at.process(pid).thread(tid),
            Fact::ThreadName(Text::from(&*name)),
        );
    }

    /// Ends all threads of a process except this one.
    pub fn begin(&mut self, pid: u32, tid: u64) {
        let threads = BTreeMap::from_iter([(tid, Box::default())]);
        for thread in self.names.insert(pid, threads).iter().flatten() {
            self.owners.remove(thread.0);
        }
        self.owners.insert(tid, pid);
    }

    /// Returns the process of a thread.
    pub fn process_of(&self, tid: u64) -> Option<u32> {
        self.owners.get(&tid).copied()
    }

    /// Ends a thread; returns true if it was the last known one of its process.
    pub fn end(&mut self, pid: u32, tid: u64) -> bool {
        self.owners.remove(&tid);
        let threads = self.names.entry(pid).or_default();
        let was_seen = threads.remove(&tid).is_some();
        let is_last = threads.is_empty() && (was_seen || tid == u64::from(pid));
        if is_last {
            self.names.remove(&pid);
        }
        is_last
    }

    /// Names existing processes after their first thread, if nothing else names them.
    pub fn name_processes(&self, session: &mut Session) {
        for (&pid, threads) in &self.names {
            let first = threads.get(&pid.into()).or_else(|| threads.values().next());
            session.name_process(pid, first.map_or(&[][..], |name| name));
        }
    }
}
