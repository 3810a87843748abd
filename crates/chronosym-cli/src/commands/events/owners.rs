//! The processes and threads that a record is about.
//!
//! The header of a kernel record has the process that happened to run when it was logged, or none:
//! the payload names the process or thread, and other records state the owner of a thread.

use std::collections::HashMap;

use chronosym_events::{EventKey, RawEvent, Value};

/// Names of fields with process ids in kernel payloads.
const PROCESS: [&str; 3] = ["ProcessId", "PID", "StackProcess"];
/// Names of fields with thread ids in kernel payloads.
const THREAD: [&str; 7] = [
    "ThreadId",
    "TThreadId",
    "TTID",
    "StackThread",
    "IssuingThreadId",
    "NewThreadId",
    "OldThreadId",
];

/// The ids of a record: from its header, its payload, and the owners of its threads.
#[derive(Debug, Default)]
pub struct RecordIds {
    pub processes: Vec<u64>,
    pub threads: Vec<u64>,
}

/// The owners of threads.
#[derive(Debug, Default)]
pub struct Owners {
    /// For each thread id, its processes with the time from which each applies, in ns.
    threads: HashMap<u64, Vec<(u64, u64)>>,
}

impl Owners {
    /// Records the owner of a thread that a record states. Records must be in time order.
    pub fn observe(&mut self, raw: &RawEvent<'_>) {
        let named = RecordIds::named(raw);
        let ids = match (named.processes.first(), named.threads.first()) {
            (Some(process), Some(thread)) => Some((*process, *thread)),
            _ => raw.process_id.map(u64::from).zip(raw.thread_id),
        };
        if let Some((process, thread)) = ids {
            let owners = self.threads.entry(thread).or_default();
            if owners.last().is_none_or(|last| last.1 != process) {
                owners.push((raw.time_ns, process));
            }
        }
    }

    /// Returns the ids of a record.
    pub fn ids(&self, raw: &RawEvent<'_>) -> RecordIds {
        let mut ids = RecordIds::named(raw);
        for thread in &ids.threads {
            let owners = self.threads.get(thread).map_or(&[][..], Vec::as_slice);
            let later = owners.partition_point(|owner| owner.0 <= raw.time_ns);
            // Before the first record about it, the thread had the same owner.
            let owner = owners.get(later.saturating_sub(1));
            ids.processes.extend(owner.map(|owner| owner.1));
        }
        ids.processes.extend(raw.process_id.map(u64::from));
        ids.threads.extend(raw.thread_id);
        ids
    }
}

impl RecordIds {
    /// Returns the ids in the payload of a kernel record.
    fn named(raw: &RawEvent<'_>) -> Self {
        let mut ids = Self::default();
        if !matches!(raw.schema.key(), EventKey::Classic { .. }) {
            return ids;
        }
        let Ok(Some(fields)) = raw.fields() else {
            return ids;
        };
        for (name, value) in fields.iter() {
            let (Value::U64(id) | Value::Hex(id)) = value else {
                continue;
            };
            if PROCESS.contains(&name) {
                ids.processes
                    .extend(Some(*id).filter(|&id| id <= u32::MAX.into()));
            } else if THREAD.contains(&name) {
                ids.threads.push(*id);
            }
        }
        ids
    }
}
