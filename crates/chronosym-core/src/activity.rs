//! What sampled threads were doing (rule 22); `waiting.rs` determines it.

use chronosym_types::closed_list;

closed_list! {
    /// What a thread was doing when a sample was taken.
    Activity {
        /// Executing on a processor.
        OnCpu = "on_cpu",
        /// In managed code, on a processor or ready for one.
        Runnable = "runnable",
        /// Blocked: in a lock, a system call, a sleep.
        Blocked = "blocked",
        /// Unknown: outside managed code, in native code or blocked. Always the case for samples
        /// that are not a profiler's.
        Unknown = "unknown",
    }
}

closed_list! {
    /// The evidence for an [`Activity`].
    #[non_exhaustive]
    ActivityEvidence {
        /// A CPU sample: the thread was interrupted on a processor. For a wall-clock sample: a CPU
        /// sample of a joined recording in the time that it represents.
        CpuSample = "cpu_sample",
        /// Context switches.
        ContextSwitch = "context_switch",
        /// The runtime's flag: the thread was in managed code.
        Flag = "flag",
        /// The innermost named method is one in which threads block.
        Method = "method",
        /// The stack did not change over many ticks, and the thread was outside managed code.
        UnchangedStack = "unchanged_stack",
    }
}

/// An activity and its evidence, which is absent if the activity is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ThreadActivity {
    /// The activity.
    pub activity: Activity,
    /// Its evidence.
    pub evidence: Option<ActivityEvidence>,
}

impl ThreadActivity {
    /// No evidence of any activity.
    pub const UNKNOWN: Self = ThreadActivity {
        activity: Activity::Unknown,
        evidence: None,
    };

    pub(crate) const fn new(activity: Activity, evidence: ActivityEvidence) -> Self {
        ThreadActivity {
            activity,
            evidence: Some(evidence),
        }
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
            WallFlag::Windows => {
                Some("on Windows the runtime flags every thread as outside managed code")
            }
            WallFlag::Runtime => {
                Some("this version of the runtime flags every thread as outside managed code")
            }
            WallFlag::Contradicted => {
                Some("the runtime's flag of blocked threads contradicts itself")
            }
        }
    }
}

/// The activity of each sample class, and the reliability of each process's flag.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    pub of: Vec<ThreadActivity>,
    pub flags: Vec<Option<WallFlag>>,
}
