//! Context switches in a perf.data: the scheduler's tracepoints, and the records of
//! `--switch-events`.
//!
//! Both may be recorded together. Tracepoints state the stack and why the thread was switched out;
//! they are preferred, and a record that repeats one is skipped. A tracepoint with a sampling
//! frequency records only some switches: then only records count, and it supplies the stack of the
//! next one.

use chronosym_core::{EventTypeId, StackId, ThreadSwitch};
use chronosym_types::ByteOrder;
use chronosym_types::hash::HashMap;

use crate::task_state::left;

/// A tracepoint of the scheduler. Offsets of their fields have not changed since Linux 2.6.32
/// (include/trace/events/sched.h), after the 8 bytes that all tracepoints share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracepoint {
    Switch,
    Wakeup,
}

impl Tracepoint {
    /// Returns the tracepoint with this name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "sched:sched_switch" => Some(Tracepoint::Switch),
            "sched:sched_waking" | "sched:sched_wakeup" | "sched:sched_wakeup_new" => {
                Some(Tracepoint::Wakeup)
            }
            _ => None,
        }
    }
}

/// The fields of `sched_switch`: the thread being switched out and the one being switched in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switched {
    pub leaves: (u32, ThreadSwitch),
    pub comes: u32,
}

/// Reads the fields of `sched_switch`.
pub(super) fn switched(raw: &[u8], order: ByteOrder) -> Option<Switched> {
    Some(Switched {
        leaves: (number(raw, 24, order)?, left(long(raw, 32, order)?)),
        comes: number(raw, 56, order)?,
    })
}

/// Reads the thread that `sched_waking` or `sched_wakeup` makes runnable.
pub(super) fn woken(raw: &[u8], order: ByteOrder) -> Option<u32> {
    number(raw, 24, order)
}

fn number(raw: &[u8], at: usize, order: ByteOrder) -> Option<u32> {
    Some(order.u32(*raw.get(at..)?.first_chunk()?))
}

fn long(raw: &[u8], at: usize, order: ByteOrder) -> Option<u64> {
    Some(order.u64(*raw.get(at..)?.first_chunk()?))
}

/// The last switch recorded for a thread.
#[derive(Debug)]
struct Stated {
    runs: bool,
    by_tracepoint: bool,
    /// The stack of a tracepoint, and its time in ns, for the record that follows.
    stack: Option<(u64, EventTypeId, StackId)>,
}

/// The last switch recorded for each thread.
#[derive(Debug, Default)]
pub(super) struct LastSwitches(HashMap<u32, Stated>);

impl LastSwitches {
    /// Notes a tracepoint that is recorded completely.
    pub fn tracepoint(&mut self, tid: u32, runs: bool) {
        let stated = Stated {
            runs,
            by_tracepoint: true,
            stack: None,
        };
        self.0.insert(tid, stated);
    }

    /// Keeps the stack of a tracepoint that is sampled.
    pub fn stack(&mut self, tid: u32, time_ns: u64, event: EventTypeId, stack: StackId) {
        let stated = self.0.entry(tid).or_insert(Stated {
            runs: true,
            by_tracepoint: false,
            stack: None,
        });
        stated.stack = Some((time_ns, event, stack));
    }

    /// Notes a record. Returns the stack that belongs to it; `None` if it repeats a tracepoint.
    pub fn record(
        &mut self,
        tid: u32,
        time_ns: u64,
        runs: bool,
    ) -> Option<Option<(EventTypeId, StackId)>> {
        /// The kernel writes the record in the course of the same switch.
        const SAME_SWITCH_NS: u64 = 1_000_000;
        let stated = Stated {
            runs,
            by_tracepoint: false,
            stack: None,
        };
        let before = self.0.insert(tid, stated);
        if before
            .as_ref()
            .is_some_and(|it| it.by_tracepoint && it.runs == runs)
        {
            return None;
        }
        let stack = before.and_then(|it| it.stack).filter(|_| !runs);
        let same = stack.filter(|&(at, ..)| time_ns.saturating_sub(at) <= SAME_SWITCH_NS);
        Some(same.map(|(_, event, stack)| (event, stack)))
    }
}
