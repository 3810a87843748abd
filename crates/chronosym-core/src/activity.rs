//! What sampled threads were doing (rule 22); `waiting.rs` determines it.

use chronosym_types::closed_list;

closed_list! {
    /// What a thread was doing when a sample was taken.
    Activity {
        /// On a processor or, for a wall-clock sample, in managed code.
        Running = "running",
        /// Blocked or, if the sample's flag is all the evidence, in native code.
        Waiting = "waiting",
        /// Unknown; always the case for samples that are not a profiler's.
        Unknown = "unknown",
    }
}

/// Whether the managed/external flag of a process's wall-clock samples is reliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WallFlag {
    /// The flag is reliable.
    Trusted,
    /// On Windows runtimes mark every sample as outside managed code: dotnet/runtime#45179.
    Windows,
    /// .NET 9 and .NET 10 before 10.0.4 mark every sample as outside managed code:
    /// dotnet/runtime#123996.
    Runtime,
    /// The flags contradict each other.
    Contradicted,
}

impl WallFlag {
    /// Returns why the flag is unreliable, in words.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            WallFlag::Trusted => None,
            WallFlag::Windows => Some("on Windows runtimes flag every sample as external"),
            WallFlag::Runtime => Some("this version of the runtime flags every sample as external"),
            WallFlag::Contradicted => {
                Some("its runtime flags samples as external that stand in managed code")
            }
        }
    }
}

/// The activity of each sample class, and the reliability of each process's flag.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    pub of: Vec<Activity>,
    pub flags: Vec<Option<WallFlag>>,
}
