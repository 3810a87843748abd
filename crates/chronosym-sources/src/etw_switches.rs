//! Context switches of an .etl: CSwitch and ReadyThread become switches of threads (rule 25).
//!
//! Each CSwitch states the thread that leaves a processor and the one that replaces it, so that a
//! lost one shows: the thread that leaves is another one than the last that came.

use chronosym_core::facts::At;
use chronosym_core::{Returned, Role, Session, ThreadSwitch};
use chronosym_etl::Record;
use chronosym_events::kernel::{CSwitch, KernelEvent};
use chronosym_events::{Event, RawEvent};
use chronosym_types::hash::HashMap;

/// A context switch or wake-up as its stack sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switch {
    /// The thread whose stack follows: the one being switched in, or the waker.
    pub tid: Option<u32>,
    /// The intervals of that thread that end.
    pub returned: Returned,
    /// The number of the wake-up, if it ends a thread's wait.
    pub wakeup: Option<u32>,
}

/// The state of the processors.
#[derive(Debug, Default)]
pub(super) struct Switches {
    /// The last thread that was switched in, by processor.
    running: HashMap<u16, u32>,
    /// Number of wake-ups that ended a wait.
    wakeups: u32,
}

impl Switches {
    /// Applies an event if it is a context switch or wake-up; returns the switch.
    pub fn take(
        &mut self,
        role: Role,
        raw: &RawEvent<'_>,
        record: &Record<'_>,
        session: &mut Session,
    ) -> Option<Switch> {
        if !matches!(role, Role::ContextSwitch | Role::Wakeup) {
            return None;
        }
        // An event that does not decode is counted where it is pushed.
        match raw.decode() {
            Ok(Some(Event::Kernel(KernelEvent::CSwitch(switch)))) => {
                Some(self.switch(&switch, raw.time_ns, record.cpu, session))
            }
            Ok(Some(Event::Kernel(KernelEvent::ReadyThread(ready)))) => {
                let mut wakeup = None;
                if ready.thread_id != 0 {
                    let at = of_thread(ready.thread_id, raw.time_ns, session);
                    session.wake(at, |_| {
                        self.wakeups = self.wakeups.wrapping_add(1);
                        wakeup = Some(self.wakeups);
                        wakeup
                    });
                }
                // Most records of the kernel do not state who wrote them.
                let running = self.running.get(&record.cpu).copied();
                Some(Switch {
                    tid: record.thread_id.or(running),
                    wakeup,
                    ..Switch::default()
                })
            }
            _ => None,
        }
    }

    fn switch(
        &mut self,
        switch: &CSwitch,
        time_ns: u64,
        cpu: u16,
        session: &mut Session,
    ) -> Switch {
        let (old, new) = (switch.old_thread_id, switch.new_thread_id);
        let running = self.running.insert(cpu, new);
        if running.is_some_and(|running| running != old) {
            session.switches_lost(time_ns);
        }
        apply(old, left(switch.old_thread_state), time_ns, session);
        Switch {
            tid: Some(new),
            returned: apply(new, ThreadSwitch::Run, time_ns, session),
            wakeup: None,
        }
    }
}

/// Applies a switch of a thread other than the idle one, whose id every processor shares.
fn apply(tid: u32, switch: ThreadSwitch, time_ns: u64, session: &mut Session) -> Returned {
    if tid == 0 {
        return Returned::default();
    }
    session.switch(of_thread(tid, time_ns, session), switch, None)
}

fn of_thread(tid: u32, time_ns: u64, session: &Session) -> At {
    At::new(time_ns).of(session.process_of_thread(tid), Some(tid.into()))
}

/// Returns the activity of a thread that was switched out in this state (KTHREAD_STATE, as the class
/// CSwitch of wmicore.mof lists it).
fn left(state: i8) -> ThreadSwitch {
    match state {
        // Ready, running, standby, deferred ready.
        1 | 2 | 3 | 7 => ThreadSwitch::Preempt,
        // Terminated.
        4 => ThreadSwitch::End,
        _ => ThreadSwitch::Block,
    }
}
