//! Samples, stacks and context switches.

use crate::cursor::Form;
use crate::part::{payload, shape_part};
use crate::{Action, Addresses, WStr};

payload! {
    /// A CPU sample. It has a thread but no process.
    SampledProfile {
        /// The sampled address.
        instruction_pointer: u64 = "InstructionPointer" as ptr,
        /// The thread; 0 is idle, unless a DPC or an interrupt runs.
        thread_id: u32 = "ThreadId",
        /// The number of samples that this one represents.
        count: u16 = "Count",
        /// Flags: 1 in a DPC, 2 in an interrupt, priority in bits 3 to 7.
        flags: u8 = "Flags" as hex,
        /// The rank of the thread.
        rank: u8 = "Rank",
    }
}

impl SampledProfile {
    /// Returns whether the processor was idle.
    pub fn is_idle(&self) -> bool {
        self.thread_id == 0 && self.flags & 3 == 0
    }
}

payload! {
    /// A sample of a performance counter, taken on overflow.
    PmcInterrupt {
        /// The sampled address.
        instruction_pointer: u64 = "InstructionPointer" as ptr,
        /// The thread.
        thread_id: u32 = "ThreadId",
        /// The counter.
        profile_source: u16 = "ProfileSource",
        /// Not used.
        reserved: u16 = "Reserved",
    }

    /// The sampling interval: when collection starts or ends, or when it changes.
    SampleInterval<'a> {
        /// The reason for the event.
        event: IntervalEvent = "",
        /// 0 for the timer, otherwise a performance counter.
        source: u32 = "Source",
        /// The new interval, in 100 ns for the timer.
        new_interval: u32 = "NewInterval",
        /// The old interval.
        old_interval: u32 = "OldInterval",
        /// The source's name.
        source_name: Option<WStr<'a>> = "SourceName",
    }

    /// The call stack of an earlier event, or a part of it.
    StackWalk<'a> {
        /// The raw time of the event.
        event_time: u64 = "EventTimeStamp",
        /// The process.
        process_id: u32 = "StackProcess",
        /// The thread.
        thread_id: u32 = "StackThread",
        /// The addresses, leaf first.
        frames: Addresses<'a> = "Stack",
    }
}

/// Why a sampling interval is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IntervalEvent {
    /// The interval changes.
    Set,
    /// Collection starts.
    Start,
    /// Collection ends.
    End,
}

/// The part of a call stack that a key refers to; each part has its own key.
///
/// Closed: a stack has these two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackMode {
    /// The kernel part.
    Kernel,
    /// The user part.
    User,
}

shape_part! {
    IntervalEvent: shape => match shape.action {
        Action::DCStart => Self::Start,
        Action::DCEnd => Self::End,
        Action::Load | Action::Unload => Self::Set,
    };
    StackMode: shape => match shape.form {
        Form::User => Self::User,
        _ => Self::Kernel,
    };
}

payload! {
    /// The call stack of an earlier event, by a key that is defined later.
    StackKeyReference {
        /// The part of the stack.
        mode: StackMode = "",
        /// The raw time of the event.
        event_time: u64 = "EventTimeStamp",
        /// The process.
        process_id: u32 = "StackProcess",
        /// The thread.
        thread_id: u32 = "StackThread",
        /// The key.
        key: u64 = "StackKey" as ptr,
    }

    /// The call stack of a key (create, delete, rundown); afterwards the key may be reused.
    StackKeyDefinition<'a> {
        /// The key.
        key: u64 = "StackKey" as ptr,
        /// The addresses, leaf first.
        frames: Addresses<'a> = "Stack",
    }

    /// The user part of call stacks whose kernel part was logged before, logged when the thread
    /// leaves the kernel. The addresses are in the record's stack.
    UserStack<'a> {
        /// The payload.
        data: &'a [u8] = "Data",
    }

    /// A context switch.
    CSwitch {
        /// The thread that starts running.
        new_thread_id: u32 = "NewThreadId",
        /// The thread that stops running.
        old_thread_id: u32 = "OldThreadId",
        /// The new thread's priority.
        new_thread_priority: i8 = "NewThreadPriority",
        /// The old thread's priority.
        old_thread_priority: i8 = "OldThreadPriority",
        /// The C-state that the processor was in before.
        previous_c_state: u8 = "PreviousCState",
        /// Not used.
        spare_byte: i8 = "SpareByte",
        /// The old thread's wait reason.
        old_thread_wait_reason: i8 = "OldThreadWaitReason",
        /// The old thread's wait mode: 0 kernel, 1 user.
        old_thread_wait_mode: i8 = "OldThreadWaitMode",
        /// The old thread's state: 1 ready, 2 running, 4 terminated, 5 waiting, and others.
        old_thread_state: i8 = "OldThreadState",
        /// The old thread's ideal processor.
        old_thread_wait_ideal_processor: i8 = "OldThreadWaitIdealProcessor",
        /// The new thread's wait time in timer ticks.
        new_thread_wait_time: u32 = "NewThreadWaitTime",
        /// Not used.
        reserved: Option<u32> = "Reserved",
    }

    /// A thread becomes ready for a processor.
    ReadyThread {
        /// The thread.
        thread_id: u32 = "TThreadId",
        /// Why its priority is adjusted: 0 not at all, 1 unwait, 2 boost.
        adjust_reason: i8 = "AdjustReason",
        /// By how much its priority is adjusted.
        adjust_increment: i8 = "AdjustIncrement",
        /// Flags: 1 made ready by a DPC, 2 its kernel stack or 4 its process is swapped out.
        flag: i8 = "Flag",
        /// Not used.
        reserved: i8 = "Reserved",
    }
}
