//! Which processes and threads a record is of.
//!
//! The header of a kernel record says who happened to run when it was logged, or nothing at all: its payload names the
//! process or the thread that it speaks of, and other records say whose thread that is.

use std::collections::HashMap;

use chronosym_events::{EventKey, RawEvent, Value};

/// Names under which kernel payloads have process ids.
const PROCESS: [&str; 3] = ["ProcessId", "PID", "StackProcess"];
/// Names under which they have thread ids.
const THREAD: [&str; 7] = [
    "ThreadId",
    "TThreadId",
    "TTID",
    "StackThread",
    "IssuingThreadId",
    "NewThreadId",
    "OldThreadId",
];

/// Where a record belongs: by its header, by its payload, and by whose its threads are.
#[derive(Debug, Default)]
pub struct Place {
    pub processes: Vec<u64>,
    pub threads: Vec<u64>,
}

/// Whose the threads of a trace are.
#[derive(Debug, Default)]
pub struct Owners {
    /// For each thread id, from when on (ns) it is of which process.
    threads: HashMap<u64, Vec<(u64, u64)>>,
}

impl Owners {
    /// Takes what a record says of a thread's process. Records must come in the order of time.
    pub fn observe(&mut self, raw: &RawEvent<'_>) {
        let named = Place::named(raw);
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

    /// Where a record belongs.
    pub fn place(&self, raw: &RawEvent<'_>) -> Place {
        let mut place = Place::named(raw);
        for thread in &place.threads {
            let owners = self.threads.get(thread).map_or(&[][..], Vec::as_slice);
            let later = owners.partition_point(|owner| owner.0 <= raw.time_ns);
            // Before the first record that says so, the thread was no other's.
            let owner = owners.get(later.saturating_sub(1));
            place.processes.extend(owner.map(|owner| owner.1));
        }
        place.processes.extend(raw.process_id.map(u64::from));
        place.threads.extend(raw.thread_id);
        place
    }
}

impl Place {
    /// What the payload names, where it is the kernel's.
    fn named(raw: &RawEvent<'_>) -> Self {
        let mut place = Self::default();
        if !matches!(raw.schema.key(), EventKey::Classic { .. }) {
            return place;
        }
        let Ok(Some(fields)) = raw.fields() else {
            return place;
        };
        for (name, value) in fields.iter() {
            let (Value::U64(id) | Value::Hex(id)) = value else {
                continue;
            };
            if PROCESS.contains(&name) {
                place
                    .processes
                    .extend(Some(*id).filter(|&id| id <= u32::MAX.into()));
            } else if THREAD.contains(&name) {
                place.threads.push(*id);
            }
        }
        place
    }
}
