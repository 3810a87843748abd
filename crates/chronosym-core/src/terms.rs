//! Terms that facts, samples, symbol sources and frames share.

use chronosym_types::closed_list;

/// How an address came to be in a stack (rule 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The thread stood at this very address.
    Exact,
    /// A call will return to it: the call itself lies before it.
    Return,
}

impl Position {
    /// The address to look up: for a return address, the last byte of the call.
    pub fn looked_up(self, address: u64) -> u64 {
        match self {
            Position::Exact => address,
            Position::Return => address.saturating_sub(1),
        }
    }
}

closed_list! {
    /// What a sample says of its thread.
    #[non_exhaustive]
    SampleKind {
        /// The thread was running on a processor.
        Cpu = "cpu",
        /// A tick of a wall-clock profiler found the thread in managed code. It need not have been running.
        WallManaged = "wall_managed",
        /// A tick of a wall-clock profiler found the thread outside managed code: in native code, or blocked.
        WallExternal = "wall_external",
        /// The stack of any other event.
        Event = "event",
    }
}

impl SampleKind {
    /// What the innermost address is: where the thread stood, or where the call returns to that took the stack.
    pub const fn leaf_position(self) -> Position {
        match self {
            SampleKind::Cpu | SampleKind::WallManaged => Position::Exact,
            SampleKind::WallExternal | SampleKind::Event => Position::Return,
        }
    }
}

/// What one sample stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Weight {
    /// One occurrence. Of a profiler's samples a [`Timeline`](crate::Timeline) says `Ns` or `Unknown` in its place.
    #[default]
    One,
    /// Nothing is known of it: the recorder states no period of a CPU sample or counter, or a wall-clock sample is of the only
    /// tick of its process.
    Unknown,
    /// ns that the sample stands for.
    Ns(u64),
    /// So many events, of which this is the last: the period of a counter.
    Count(u64),
    /// Bytes, such as those of an allocation.
    Bytes(u64),
}

/// What becomes of an address in a mapping when it is looked up in an ELF file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// The recorder said which of the file's own addresses stand there.
    #[default]
    Virtual,
    /// Only the offset in the file is known: the file's program headers lead on.
    FileOffset,
    /// Bytes from the first one that the file has: a kernel, whose parts stay together wherever it is put.
    Rva,
}
