//! States of Linux threads that are switched out.

use chronosym_core::ThreadSwitch;

/// Returns the activity of a thread that was switched out in this state (`TASK_*` of
/// include/linux/sched.h). A preempted one is still `TASK_RUNNING`, or has the bit after the
/// reported ones: 0x100 since Linux 4.14, 0x400 to 0x1000 before.
pub(super) fn left(state: u64) -> ThreadSwitch {
    const DEAD_OR_ZOMBIE: u64 = 0x10 | 0x20;
    match state & 0xff {
        0 => ThreadSwitch::Preempt,
        _ if state & 0x1d00 != 0 => ThreadSwitch::Preempt,
        low if low & DEAD_OR_ZOMBIE != 0 => ThreadSwitch::End,
        _ => ThreadSwitch::Block,
    }
}
