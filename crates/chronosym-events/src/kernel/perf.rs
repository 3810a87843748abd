//! Samples, stacks and switches.

use crate::cursor::Cursor;
use crate::part::{FieldSpec, Part, Style, payload};
use crate::value::FieldList;
use crate::{Action, Addresses, DecodeError, WStr};

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
    /// Whether a DPC was running.
    #[must_use]
    pub fn is_dpc(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether an interrupt was served.
    #[must_use]
    pub fn is_isr(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Whether the processor was idle.
    #[must_use]
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
}

payload! {
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
}

payload! {
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

impl<'a> Part<'a> for IntervalEvent {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(match c.shape.action {
            Action::DCStart => Self::Start,
            Action::DCEnd => Self::End,
            Action::Load | Action::Unload => Self::Set,
        })
    }
    fn list(&self, _: &'static str, _: Style, _: &mut FieldList<'a>) {}
    fn spec(_: &'static str, _: &str, _: &mut Vec<FieldSpec>) {}
}

/// Which part of a call stack a key stands for; the two have keys of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackMode {
    /// The part in the kernel.
    Kernel,
    /// The part in the program.
    User,
}

impl<'a> Part<'a> for StackMode {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(if c.shape.user {
            Self::User
        } else {
            Self::Kernel
        })
    }
    fn list(&self, _: &'static str, _: Style, _: &mut FieldList<'a>) {}
    fn spec(_: &'static str, _: &str, _: &mut Vec<FieldSpec>) {}
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
}

payload! {
    /// The call stack behind a key (create, delete, rundown); afterwards the key may be used anew.
    StackKeyDefinition<'a> {
        /// The key.
        key: u64 = "StackKey" as ptr,
        /// The frames, innermost first.
        frames: Addresses<'a> = "Stack",
    }
}

payload! {
    /// The user part of call stacks whose kernel part came before, logged when the thread leaves the kernel. The frames are in the
    /// record's stack.
    UserStack<'a> {
        /// Whatever the event carries besides.
        data: &'a [u8] = "Data",
    }
}

payload! {
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

payload! {
    /// A thread can run again; logged on the thread that made it so.
    ReadyThread {
        /// The thread.
        thread_id: u32 = "TThreadId",
        /// Why its priority changes: 0 not, 1 end of a wait, 2 boost.
        adjust_reason: i8 = "AdjustReason",
        /// By how much.
        adjust_increment: i8 = "AdjustIncrement",
        /// 1 from a DPC, 2 the kernel stack is swapped out, 4 the process is.
        flags: i8 = "Flag",
        /// Not used.
        reserved: i8 = "Reserved",
    }
}
