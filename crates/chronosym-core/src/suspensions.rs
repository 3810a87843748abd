//! The pairing of the events about suspensions of all threads of a process.

use chronosym_types::hash::HashMap;

use crate::ids::{ProcessIndex, ThreadIndex};

/// Pairs the events that start and end suspensions, in time order: GCSuspendEEBegin and
/// GCRestartEEEnd of one thread. Several threads may suspend the others at the same time: they wait
/// for each other. `T` is the caller's data on each suspension.
#[derive(Debug)]
pub struct SuspensionPairs<T> {
    processes: HashMap<ProcessIndex, Open<T>>,
}

/// The suspensions of a process.
#[derive(Debug)]
struct Open<T> {
    requests: HashMap<ThreadIndex, Request<T>>,
    /// The thread that suspended all others last.
    suspender: Option<ThreadIndex>,
    /// The end of the last suspension, ns.
    last_end_ns: u64,
}

#[derive(Debug)]
struct Request<T> {
    requested_ns: u64,
    suspended_ns: Option<u64>,
    data: T,
}

/// The times of a suspension with both events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairedSuspension<T> {
    /// When the thread requested it, ns.
    pub requested_ns: u64,
    /// Its start, ns: the request, or the end of the suspension that it waited for.
    pub start_ns: u64,
    /// When all threads were suspended (GCSuspendEEEnd), ns.
    pub suspended_ns: Option<u64>,
    /// The data that were passed with its start.
    pub data: T,
}

impl<T> Default for SuspensionPairs<T> {
    fn default() -> Self {
        SuspensionPairs {
            processes: HashMap::default(),
        }
    }
}

impl<T> SuspensionPairs<T> {
    /// Takes the event that starts a suspension. Returns the data of an earlier one of the thread
    /// that did not end.
    pub fn start(
        &mut self,
        process: ProcessIndex,
        thread: ThreadIndex,
        time_ns: u64,
        data: T,
    ) -> Option<T> {
        let request = Request {
            requested_ns: time_ns,
            suspended_ns: None,
            data,
        };
        let open = self.processes.entry(process).or_insert_with(|| Open {
            requests: HashMap::default(),
            suspender: None,
            last_end_ns: 0,
        });
        let before = open.requests.insert(thread, request);
        before.map(|request| request.data)
    }

    /// Takes the event that states that all threads are suspended.
    pub fn suspended(&mut self, process: ProcessIndex, thread: ThreadIndex, time_ns: u64) {
        let Some(open) = self.processes.get_mut(&process) else {
            return;
        };
        if let Some(request) = open.requests.get_mut(&thread) {
            request.suspended_ns.get_or_insert(time_ns);
            open.suspender = Some(thread);
        }
    }

    /// Takes the event that ends a suspension; `None` if its start is unknown.
    pub fn end(
        &mut self,
        process: ProcessIndex,
        thread: ThreadIndex,
        time_ns: u64,
    ) -> Option<PairedSuspension<T>> {
        let open = self.processes.get_mut(&process)?;
        let request = open.requests.remove(&thread)?;
        let start_ns = request.requested_ns.max(open.last_end_ns);
        open.last_end_ns = time_ns;
        Some(PairedSuspension {
            requested_ns: request.requested_ns,
            start_ns,
            suspended_ns: request.suspended_ns,
            data: request.data,
        })
    }

    /// Returns the data of the suspension in which a thread acts: its own, or that of the thread
    /// which has suspended all others.
    pub fn current(&mut self, process: ProcessIndex, thread: ThreadIndex) -> Option<&mut T> {
        let open = self.processes.get_mut(&process)?;
        let by = match open.requests.contains_key(&thread) {
            true => thread,
            false => open.suspender?,
        };
        Some(&mut open.requests.get_mut(&by)?.data)
    }

    /// Returns the number of suspensions that have not ended.
    pub fn open(&self) -> u64 {
        let counts = self.processes.values().map(|open| open.requests.len());
        counts.sum::<usize>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspensions_that_overlap_wait_for_each_other() {
        let (process, other) = (ProcessIndex(0), ProcessIndex(1));
        let [first, second, third] = [0, 1, 2].map(ThreadIndex);
        let mut pairs = SuspensionPairs::default();
        assert_eq!(pairs.end(process, first, 1), None);
        assert_eq!(pairs.start(process, first, 10, "lost"), None);
        assert_eq!(pairs.start(process, first, 20, "first"), Some("lost"));
        assert_eq!(pairs.start(process, second, 25, "second"), None);
        assert_eq!(pairs.start(other, third, 26, "other process"), None);
        assert_eq!(pairs.current(process, third), None);
        pairs.suspended(process, first, 22);
        assert_eq!(pairs.current(process, third).copied(), Some("first"));
        assert_eq!(pairs.current(process, second).copied(), Some("second"));
        assert_eq!(pairs.open(), 3);
        let ended = pairs.end(process, first, 30).unwrap();
        let times = (ended.requested_ns, ended.start_ns, ended.suspended_ns);
        assert_eq!((times, ended.data), ((20, 20, Some(22)), "first"));
        let ended = pairs.end(process, second, 40).unwrap();
        let times = (ended.requested_ns, ended.start_ns, ended.suspended_ns);
        assert_eq!((times, ended.data), ((25, 30, None), "second"));
        let ended = pairs.end(other, third, 50).unwrap();
        assert_eq!((ended.start_ns, pairs.open()), (26, 0));
    }
}
