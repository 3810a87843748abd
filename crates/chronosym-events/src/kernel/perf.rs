//! Samples, stacks and switches.

use crate::cursor::Form;
use crate::part::{payload, shape_part};
use crate::{Action, Addresses, WStr};

payload! {
    /// A CPU sample. It names the thread only.
    SampledProfile {
        /// Where the processor was.
        instruction_pointer: u64 = "InstructionPointer" as ptr,
        /// The thread; 0 is idle, unless a DPC or an interrupt runs.
        thread_id: u32 = "ThreadId",
        /// How many samples this stands for.
        count: u16 = "Count",
        /// 1 in a DPC, 2 in an interrupt, priority in bits 3 to 7.
        flags: u8 = "Flags" as hex,
        /// The rank of the thread.
        rank: u8 = "Rank",
    }
}

impl SampledProfile {
    /// Whether the processor was idle.
    pub fn is_idle(&self) -> bool {
        self.thread_id == 0 && self.flags & 3 == 0
    }
}

payload! {
    /// A performance counter ran over.
    PmcInterrupt {
        /// Where the processor was.
        instruction_pointer: u64 = "InstructionPointer" as ptr,
        /// The thread.
        thread_id: u32 = "ThreadId",
        /// Which counter.
        profile_source: u16 = "ProfileSource",
        /// Not used.
        reserved: u16 = "Reserved",
    }

    /// How often samples are taken: when collection starts or ends, or when it changes.
    SampleInterval<'a> {
        /// What was logged.
        event: IntervalEvent = "",
        /// 0 the timer, others performance counters.
        source: u32 = "Source",
        /// The interval from now on, in 100 ns for the timer.
        new_interval: u32 = "NewInterval",
        /// The interval before.
        old_interval: u32 = "OldInterval",
        /// The source's name.
        source_name: Option<WStr<'a>> = "SourceName",
    }

    /// The call stack of an event that was logged before, or a part of it.
    StackWalk<'a> {
        /// The raw time of that event.
        event_time: u64 = "EventTimeStamp",
        /// The process.
        process_id: u32 = "StackProcess",
        /// The thread.
        thread_id: u32 = "StackThread",
        /// The frames, innermost first.
        frames: Addresses<'a> = "Stack",
    }
}

/// When a sampling interval is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntervalEvent {
    /// The interval changes.
    Set,
    /// Collection starts.
    Start,
    /// Collection ends.
    End,
}

/// Which part of a call stack a key stands for; the two have keys of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackMode {
    /// The part in the kernel.
    Kernel,
    /// The part in the program.
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
    /// The call stack of an event that was logged before, by a key. The definition comes later.
    StackKeyReference {
        /// The part of the stack.
        mode: StackMode = "",
        /// The raw time of that event.
        event_time: u64 = "EventTimeStamp",
        /// The process.
        process_id: u32 = "StackProcess",
        /// The thread.
        thread_id: u32 = "StackThread",
        /// The key.
        key: u64 = "StackKey" as ptr,
    }

    /// The call stack behind a key (create, delete, rundown); afterwards the key may be used anew.
    StackKeyDefinition<'a> {
        /// The key.
        key: u64 = "StackKey" as ptr,
        /// The frames, innermost first.
        frames: Addresses<'a> = "Stack",
    }

    /// The user part of call stacks whose kernel part came before, logged when the thread leaves the kernel. The frames are in the
    /// record's stack.
    UserStack<'a> {
        /// Whatever the event carries besides.
        data: &'a [u8] = "Data",
    }

    /// A processor changes from one thread to another.
    CSwitch {
        /// The thread that runs from now on.
        new_thread_id: u32 = "NewThreadId",
        /// The thread that ran until now.
        old_thread_id: u32 = "OldThreadId",
        /// The new thread's priority.
        new_thread_priority: i8 = "NewThreadPriority",
        /// The old thread's priority.
        old_thread_priority: i8 = "OldThreadPriority",
        /// How deep the processor slept before.
        previous_c_state: u8 = "PreviousCState",
        /// Not used.
        spare_byte: i8 = "SpareByte",
        /// Why the old thread waits.
        old_thread_wait_reason: i8 = "OldThreadWaitReason",
        /// 0 the old thread waits in the kernel, 1 in user mode.
        old_thread_wait_mode: i8 = "OldThreadWaitMode",
        /// What the old thread is now: 1 ready, 2 running, 4 terminated, 5 waiting, and others.
        old_thread_state: i8 = "OldThreadState",
        /// The processor that the old thread would like.
        old_thread_wait_ideal_processor: i8 = "OldThreadWaitIdealProcessor",
        /// How long the new thread waited, in ticks of the timer.
        new_thread_wait_time: u32 = "NewThreadWaitTime",
        /// Not used.
        reserved: Option<u32> = "Reserved",
    }
}
