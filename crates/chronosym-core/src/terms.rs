//! Terms shared by facts, samples, symbol sources and frames.

use chronosym_types::closed_list;

/// The kind of an address in a stack (rule 9).
///
/// Closed: an address is that of an instruction or a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The address of the next instruction of an interrupted function.
    Exact,
    /// A return address: the call precedes it.
    Return,
}

impl Position {
    /// Returns the address to look up: for a return address, the last byte of the call.
    pub fn looked_up(self, address: u64) -> u64 {
        match self {
            Position::Exact => address,
            Position::Return => address.saturating_sub(1),
        }
    }
}

closed_list! {
    /// The kind of a sample.
    #[non_exhaustive]
    SampleKind {
        /// The thread was running on a processor.
        Cpu = "cpu",
        /// A wall-clock sample of a thread in managed code, running or not.
        WallManaged = "wall_managed",
        /// A wall-clock sample of a thread outside managed code: in native code, or blocked.
        WallExternal = "wall_external",
        /// The stack of another event.
        Event = "event",
        /// An interval between context switches in which the thread waited for something.
        Blocked = "blocked",
        /// An interval between context switches in which the thread was ready for a processor.
        Runnable = "runnable",
        /// The wake-up that ended another thread's wait.
        Wakeup = "wakeup",
    }
}

impl SampleKind {
    /// Returns whether it is an interval between context switches.
    pub const fn is_switched(self) -> bool {
        matches!(self, SampleKind::Blocked | SampleKind::Runnable)
    }

    /// Returns whether every thread was sampled, running or not.
    pub const fn is_wall(self) -> bool {
        matches!(self, SampleKind::WallManaged | SampleKind::WallExternal)
    }

    /// Returns the position of the innermost address: exact for interrupted threads, a return
    /// address for stacks captured by a call.
    pub const fn leaf_position(self) -> Position {
        match self {
            SampleKind::Cpu | SampleKind::WallManaged => Position::Exact,
            SampleKind::WallExternal
            | SampleKind::Event
            | SampleKind::Blocked
            | SampleKind::Runnable
            | SampleKind::Wakeup => Position::Return,
        }
    }
}

/// The weight of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Weight {
    /// One occurrence. A [`Timeline`](crate::Timeline) replaces it by `Ns` or `Unknown` for
    /// profiler samples.
    #[default]
    One,
    /// Unknown: the recorder states no period for a CPU sample or counter, or the process of a
    /// wall-clock sample has only one tick.
    Unknown,
    /// Time in ns.
    Ns(u64),
    /// A number of events, up to and including this one: the period of a counter.
    Count(u64),
    /// Bytes, such as those of an allocation.
    Bytes(u64),
}

/// How an address in a mapping corresponds to an address of an ELF file.
///
/// Closed: these are the two address spaces of an ELF file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// RVAs are the file's own virtual addresses, as the recorder states.
    #[default]
    Virtual,
    /// RVAs are file offsets, which the program headers map to addresses.
    FileOffset,
    /// RVAs are relative to the file's lowest address: a kernel, which is relocated as a whole.
    Rva,
}
