//! Numbers of the CLR's manifest (ClrEtwAll.man) and their names.

use std::fmt;

macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident { $($number:literal $text:literal),* $(,)? })*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns its published name; `None` for a number of a newer runtime.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            /// The published name, or the number.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => f.pad(&self.0.to_string()),
                }
            }
        }
    )* };
}

numbers! {
    /// Why a collection was triggered (`GCReasonMap`; from 11 on, `gc_reason` of the collector).
    GcReason {
        0 "AllocSmall",
        1 "Induced",
        2 "LowMemory",
        3 "Empty",
        4 "AllocLarge",
        5 "OutOfSpaceSOH",
        6 "OutOfSpaceLOH",
        7 "InducedNotForced",
        8 "Stress",
        9 "InducedLowMemory",
        10 "InducedCompacting",
        11 "LowMemoryHost",
        12 "PMFullGC",
        13 "LowMemoryHostBlocking",
        14 "BgcTuningSOH",
        15 "BgcTuningLOH",
        16 "BgcStepping",
        17 "InducedAggressive",
    }

    /// How a collection runs (`GCTypeMap`).
    GcType {
        0 "NonConcurrentGC",
        1 "BackgroundGC",
        2 "ForegroundGC",
    }

    /// Why the runtime suspends all threads (`GCSuspendEEReasonMap`).
    SuspensionReason {
        0 "SuspendOther",
        1 "SuspendForGC",
        2 "SuspendForAppDomainShutdown",
        3 "SuspendForCodePitching",
        4 "SuspendForShutdown",
        5 "SuspendForDebugger",
        6 "SuspendForGCPrep",
        7 "SuspendForDebuggerSweep",
    }

    /// The heap of an allocation (`GCAllocationKindMap`).
    AllocationKind {
        0 "Small",
        1 "Large",
        2 "Pinned",
    }

    /// Whether a thread waits for a lock of managed code (`ContentionFlagsMap`).
    ContentionKind {
        0 "Managed",
        1 "Native",
    }

    /// How the JIT makes a tail call (`TailCallTypeMap`).
    TailCallType {
        0 "OptimizedTailCall",
        1 "RecursiveLoop",
        2 "HelperAssistedTailCall",
    }

    /// Why the thread pool changes its number of workers (`ThreadAdjustmentReasonMap`).
    AdjustmentReason {
        0 "Warmup",
        1 "Initializing",
        2 "RandomMove",
        3 "ClimbingMove",
        4 "ChangePoint",
        5 "Stabilizing",
        6 "Starvation",
        7 "ThreadTimedOut",
        8 "CooperativeBlocking",
    }
}

impl SuspensionReason {
    /// For a collection.
    pub const FOR_GC: Self = Self(1);
    /// For a phase of a background collection.
    pub const FOR_GC_PREP: Self = Self(6);

    /// Returns whether the suspension is part of a collection.
    pub fn is_for_gc(self) -> bool {
        matches!(self, Self::FOR_GC | Self::FOR_GC_PREP)
    }
}

impl GcType {
    /// A collection concurrent with the program.
    pub const BACKGROUND: Self = Self(1);
}

impl TailCallType {
    /// Returns whether the frame of the caller is gone while the callee runs: not where the call
    /// became a loop.
    pub fn leaves_caller(self) -> bool {
        self.0 != 1
    }
}

impl AdjustmentReason {
    /// Work waits and no worker ends.
    pub const STARVATION: Self = Self(6);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_name_show_themselves() {
        assert_eq!(GcReason(4).to_string(), "AllocLarge");
        assert_eq!(
            format!("{:>4}|{:<8}|", GcReason(99), GcReason(1)),
            "  99|Induced |"
        );
    }
}
