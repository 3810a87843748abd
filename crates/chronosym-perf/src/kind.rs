//! Types of records, feature sections and events by their numbers.

/// Defines a constant for each record type, and the names.
macro_rules! record_types {
    ($($name:ident = $number:literal,)*) => {
        #[allow(dead_code)] // Some are used by name only.
        pub(crate) mod record {
            $(pub(crate) const $name: u32 = $number;)*
        }

        /// Name of a record type, as `PERF_RECORD_*` has it.
        pub fn record_name(kind: u32) -> Option<&'static str> {
            match kind {
                $($number => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

record_types! {
    // The kernel's: linux/perf_event.h.
    MMAP = 1,
    LOST = 2,
    COMM = 3,
    EXIT = 4,
    THROTTLE = 5,
    UNTHROTTLE = 6,
    FORK = 7,
    READ = 8,
    SAMPLE = 9,
    MMAP2 = 10,
    AUX = 11,
    ITRACE_START = 12,
    LOST_SAMPLES = 13,
    SWITCH = 14,
    SWITCH_CPU_WIDE = 15,
    NAMESPACES = 16,
    KSYMBOL = 17,
    BPF_EVENT = 18,
    CGROUP = 19,
    TEXT_POKE = 20,
    AUX_OUTPUT_HW_ID = 21,
    CALLCHAIN_DEFERRED = 22,
    // The recorder's: tools/lib/perf/include/perf/event.h.
    HEADER_ATTR = 64,
    HEADER_EVENT_TYPE = 65,
    HEADER_TRACING_DATA = 66,
    HEADER_BUILD_ID = 67,
    FINISHED_ROUND = 68,
    ID_INDEX = 69,
    AUXTRACE_INFO = 70,
    AUXTRACE = 71,
    AUXTRACE_ERROR = 72,
    THREAD_MAP = 73,
    CPU_MAP = 74,
    STAT_CONFIG = 75,
    STAT = 76,
    STAT_ROUND = 77,
    EVENT_UPDATE = 78,
    TIME_CONV = 79,
    HEADER_FEATURE = 80,
    COMPRESSED = 81,
    FINISHED_INIT = 82,
    COMPRESSED2 = 83,
}

/// Number of the first record type of the recorder.
pub(crate) const USER_TYPE_START: u32 = record::HEADER_ATTR;
/// The highest record types of the kernel and of the recorder.
pub(crate) const LAST_OF_KERNEL: u32 = record::CALLCHAIN_DEFERRED;
pub(crate) const LAST_OF_RECORDER: u32 = record::COMPRESSED2;
/// Record types of simpleperf itself.
pub(crate) const SIMPLEPERF: std::ops::Range<u32> = 32_768..32_832;

/// Feature sections: tools/perf/util/header.h.
pub(crate) mod feature {
    pub(crate) const BUILD_ID: u32 = 2;
    pub(crate) const HOSTNAME: u32 = 3;
    pub(crate) const OSRELEASE: u32 = 4;
    pub(crate) const VERSION: u32 = 5;
    pub(crate) const ARCH: u32 = 6;
    pub(crate) const NRCPUS: u32 = 7;
    pub(crate) const EVENT_DESC: u32 = 12;
    pub(crate) const SAMPLE_TIME: u32 = 21;
    pub(crate) const CLOCK_DATA: u32 = 29;
    /// simpleperf's own: keys and values (record_file.h of Android's simpleperf).
    pub(crate) const SIMPLEPERF_META_INFO: u32 = 129;
}

/// Types of recorded events: `PERF_TYPE_*` of linux/perf_event.h.
pub mod event_type {
    /// Counters that most processors have.
    pub const HARDWARE: u32 = 0;
    /// Clocks and counters of the kernel.
    pub const SOFTWARE: u32 = 1;
    /// Tracepoints of the kernel.
    pub const TRACEPOINT: u32 = 2;
    /// Hardware caches.
    pub const HW_CACHE: u32 = 3;
    /// Raw numbers of a processor.
    pub const RAW: u32 = 4;
    /// Breakpoints.
    pub const BREAKPOINT: u32 = 5;
    /// The first type that a kernel assigns dynamically, to units of the machine.
    pub const FIRST_DYNAMIC: u32 = 6;
}
