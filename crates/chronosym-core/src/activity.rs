//! What the threads of samples did (rule 22), as `waiting.rs` finds it out.

use chronosym_types::closed_list;

closed_list! {
    /// What a thread did when a sample was taken.
    Activity {
        /// It ran: on a processor or, of a wall-clock sample, in managed code.
        Running = "running",
        /// It waited or, where the sample's flag says no more than that, was in native code.
        Waiting = "waiting",
        /// Nothing says so; of all samples that are no profiler's.
        Unknown = "unknown",
    }
}

/// Whether the flag that wall-clock samples of a process carry (in managed code or outside) is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WallFlag {
    /// It is.
    Trusted,
    /// On Windows runtimes mark every sample as outside managed code: dotnet/runtime#45179.
    Windows,
    /// .NET 9 and .NET 10 before 10.0.4 mark every sample as outside managed code: dotnet/runtime#123996.
    Runtime,
    /// Too many samples are marked as outside managed code that cannot all be.
    Contradicted,
}

impl WallFlag {
    /// Why it is not believed, in words.
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

/// Activities of all classes of samples, and whether each process' flag is believed.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    pub of: Vec<Activity>,
    pub flags: Vec<Option<WallFlag>>,
}
