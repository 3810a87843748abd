//! The reports and the events that each reads.

use chronosym_core::{EventSelector, Options, SampleSelection};
use chronosym_events::{EventKey, EventSchema, Provider};
use chronosym_types::closed_list;

closed_list! {
    /// A report.
    Report {
        /// Garbage collections ([`Collections`](crate::Collections)).
        Gc = "gc",
        /// Compilations ([`Jit`](crate::Jit)).
        Jit = "jit",
        /// Exceptions ([`Exceptions`](crate::Exceptions)).
        Exceptions = "exceptions",
        /// Allocations ([`Allocations`](crate::Allocations)).
        Allocations = "allocations",
        /// Waits for locks ([`Contention`](crate::Contention)).
        Contention = "contention",
        /// The thread pool ([`ThreadPool`](crate::ThreadPool)).
        ThreadPool = "threadpool",
        /// EventCounters ([`Counters`](crate::Counters)).
        Counters = "counters",
    }
}

/// Events of the runtime's provider that reports read, by their ids in ClrEtwAll.man.
pub(crate) mod id {
    pub const GC_START: u32 = 1;
    pub const GC_END: u32 = 2;
    pub const GC_RESTART_EE_END: u32 = 3;
    pub const GC_HEAP_STATS: u32 = 4;
    pub const GC_SUSPEND_EE_END: u32 = 8;
    pub const GC_SUSPEND_EE_BEGIN: u32 = 9;
    pub const GC_ALLOCATION_TICK: u32 = 10;
    pub const GC_TRIGGERED: u32 = 35;
    pub const WORKER_START: u32 = 50;
    pub const WORKER_STOP: u32 = 51;
    pub const ADJUSTMENT: u32 = 55;
    pub const WORKER_WAIT: u32 = 57;
    pub const MIN_MAX_THREADS: u32 = 59;
    pub const ENQUEUE: u32 = 61;
    pub const DEQUEUE: u32 = 62;
    pub const IO_ENQUEUE: u32 = 63;
    pub const IO_DEQUEUE: u32 = 64;
    pub const EXCEPTION_THROWN: u32 = 80;
    pub const CONTENTION_START: u32 = 81;
    pub const CONTENTION_STOP: u32 = 91;
    pub const METHOD_LOAD: u32 = 141;
    pub const METHOD_LOAD_VERBOSE: u32 = 143;
    pub const METHOD_JITTING_STARTED: u32 = 145;
    pub const INLINING_SUCCEEDED: u32 = 185;
    pub const INLINING_FAILED_ANSI: u32 = 186;
    pub const TAIL_CALL_SUCCEEDED: u32 = 188;
    pub const TAIL_CALL_FAILED_ANSI: u32 = 189;
    pub const TAIL_CALL_FAILED: u32 = 191;
    pub const INLINING_FAILED: u32 = 192;
    pub const R2R_GET_ENTRY_POINT: u32 = 159;
    pub const R2R_GET_ENTRY_POINT_START: u32 = 160;
    pub const GC_PER_HEAP_HISTORY: u32 = 204;
    pub const GC_GLOBAL_HEAP_HISTORY: u32 = 205;
    pub const EXCEPTION_CATCH_START: u32 = 250;
    pub const EXCEPTION_FINALLY_START: u32 = 252;
    pub const EXCEPTION_FINALLY_STOP: u32 = 253;
    pub const EXCEPTION_FILTER_START: u32 = 254;
    pub const EXCEPTION_FILTER_STOP: u32 = 255;
    pub const EXCEPTION_THROWN_STOP: u32 = 256;
    pub const ALLOCATION_SAMPLED: u32 = 303;
}

impl Report {
    /// Returns the ids of the runtime's events that the report reads. Counters are events of other
    /// providers.
    pub fn events(self) -> &'static [u32] {
        match self {
            Report::Gc => &[
                id::GC_START,
                id::GC_END,
                id::GC_RESTART_EE_END,
                id::GC_HEAP_STATS,
                id::GC_SUSPEND_EE_END,
                id::GC_SUSPEND_EE_BEGIN,
                id::GC_TRIGGERED,
                id::GC_PER_HEAP_HISTORY,
                id::GC_GLOBAL_HEAP_HISTORY,
            ],
            Report::Jit => &[
                id::METHOD_LOAD,
                id::METHOD_LOAD_VERBOSE,
                id::METHOD_JITTING_STARTED,
                id::R2R_GET_ENTRY_POINT,
                id::R2R_GET_ENTRY_POINT_START,
            ],
            Report::Exceptions => &[
                id::EXCEPTION_THROWN,
                id::EXCEPTION_CATCH_START,
                id::EXCEPTION_FINALLY_START,
                id::EXCEPTION_FINALLY_STOP,
                id::EXCEPTION_FILTER_START,
                id::EXCEPTION_FILTER_STOP,
                id::EXCEPTION_THROWN_STOP,
            ],
            Report::Allocations => &[id::GC_ALLOCATION_TICK, id::ALLOCATION_SAMPLED],
            Report::Contention => &[id::CONTENTION_START, id::CONTENTION_STOP],
            Report::ThreadPool => &[
                id::WORKER_START,
                id::WORKER_STOP,
                id::ADJUSTMENT,
                id::WORKER_WAIT,
                id::MIN_MAX_THREADS,
                id::ENQUEUE,
                id::DEQUEUE,
                id::IO_ENQUEUE,
                id::IO_DEQUEUE,
            ],
            Report::Counters => &[],
        }
    }

    /// Returns the ids of those events whose stacks the report shows.
    fn stacks(self) -> &'static [u32] {
        match self {
            Report::Gc => &[id::GC_TRIGGERED],
            Report::Exceptions => &[id::EXCEPTION_THROWN],
            Report::Allocations => self.events(),
            Report::Contention => &[id::CONTENTION_START],
            Report::Jit | Report::ThreadPool | Report::Counters => &[],
        }
    }

    /// Returns the report that reads the events that are selected one by one, if they are of one.
    pub fn reading(selectors: &[EventSelector]) -> Option<Report> {
        let reads = |selector: &EventSelector| {
            let reads = |report: &Report| report.events().iter().any(|&id| selects(selector, id));
            (!selects_provider(selector)).then(|| Report::ALL.into_iter().find(reads))?
        };
        let (first, others) = selectors.split_first()?;
        let report = reads(first)?;
        let is_same = |selector| reads(selector) == Some(report);
        others.iter().all(is_same).then_some(report)
    }

    /// Selects the events that the report reads.
    pub(crate) fn kept(self) -> Vec<EventSelector> {
        let mut kept = selectors(self.events());
        if self == Report::ThreadPool {
            let of_library = QUEUE.iter().map(|(id, ..)| format!("{FRAMEWORK}/{id}"));
            kept.extend(of_library.filter_map(|text| EventSelector::parse(&text)));
        }
        kept
    }

    /// Returns options of a session that keeps the events of this report, up to 1 GiB, and no
    /// other samples than their stacks.
    pub fn options(self) -> Options {
        Self::options_of(&[self])
    }

    /// Returns options of a session that keeps the events of several reports.
    pub fn options_of(reports: &[Report]) -> Options {
        let all = |ids: fn(Report) -> &'static [u32]| {
            selectors(reports.iter().flat_map(|&report| ids(report)))
        };
        let mut options = Options::from(match all(Report::stacks) {
            stacks if stacks.is_empty() => SampleSelection::None,
            stacks => SampleSelection::Events(stacks),
        });
        options.keep = reports.iter().flat_map(|report| report.kept()).collect();
        if reports.contains(&Report::Counters) {
            options.keep.extend(EventSelector::parse(COUNTERS));
        }
        options.max_kept_bytes = MAX_KEPT_BYTES;
        options
    }

    /// Returns the argument of `dotnet-trace collect --providers` for the report: the runtime's
    /// provider with its keywords (hexadecimal), level and arguments.
    pub fn provider(self) -> &'static str {
        match self {
            // GC.
            Report::Gc => "Microsoft-Windows-DotNETRuntime:0x1:4",
            // Jit, Loader, CompilationDiagnostic (R2R lookups), Compilation.
            Report::Jit => "Microsoft-Windows-DotNETRuntime:0x3000000018:5",
            // Exception.
            Report::Exceptions => "Microsoft-Windows-DotNETRuntime:0x8000:4",
            // GC; its allocation ticks are verbose.
            Report::Allocations => "Microsoft-Windows-DotNETRuntime:0x1:5",
            // Contention.
            Report::Contention => "Microsoft-Windows-DotNETRuntime:0x4000:4",
            // Threading, ThreadTransfer; ThreadPool. Queue events are verbose.
            Report::ThreadPool => {
                "Microsoft-Windows-DotNETRuntime:0x80010000:5,System.Diagnostics.Eventing.FrameworkEventSource:0x2:5"
            }
            Report::Counters => "System.Runtime:0:4:EventCounterIntervalSec=1",
        }
    }
}

/// Selects events of the runtime.
pub(crate) fn selectors<'a>(ids: impl IntoIterator<Item = &'a u32>) -> Vec<EventSelector> {
    let selector = |id| EventSelector::parse(&format!("{PROVIDER}/{id}"));
    ids.into_iter().filter_map(selector).collect()
}

/// Returns whether a selector selects the runtime's event with an id, or the class library's that is
/// read as it.
pub(crate) fn selects(selector: &EventSelector, id: u32) -> bool {
    let matches = |provider, id, name: Option<&str>| {
        let key = EventKey::Manifest {
            provider,
            id,
            version: 1,
        };
        let schema = EventSchema::new(key);
        selector.matches(&match name {
            Some(name) => schema.with_name(name),
            None => schema,
        })
    };
    let of_library = QUEUE.iter().find(|(_, as_id, _)| *as_id == id);
    matches(Provider::Runtime, id, None)
        || of_library.is_some_and(|&(own, _, name)| {
            matches(Provider::Name(FRAMEWORK.into()), own, Some(name))
        })
}

/// Returns the id of an event of the runtime, or that as which the class library's is read.
pub(crate) fn id_of(schema: &EventSchema) -> Option<u32> {
    match schema.key() {
        EventKey::Manifest { provider, id, .. } if is_runtime(provider) => Some(*id),
        EventKey::Manifest { id, .. } if &**schema.provider_name() == FRAMEWORK => {
            let same = QUEUE.iter().find(|(own, ..)| own == id);
            same.map(|&(_, as_id, _)| as_id)
        }
        _ => None,
    }
}

/// The EventSource of the class library. Its thread pool, that of .NET Core, states there what it
/// queues and takes: the ids, those of the runtime's events that state the same, and the names.
const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";
const QUEUE: [(u32, u32, &str); 2] = [
    (30, id::ENQUEUE, "ThreadPoolEnqueueWork"),
    (31, id::DEQUEUE, "ThreadPoolDequeueWork"),
];

/// Returns whether a selector selects all events of the runtime.
pub(crate) fn selects_provider(selector: &EventSelector) -> bool {
    selects(selector, u32::MAX)
}

/// The name of the events of counters of every provider.
pub(crate) const COUNTERS: &str = "EventCounters";
const PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";
/// Limit of the kept events of a report, in bytes.
pub(crate) const MAX_KEPT_BYTES: usize = 1 << 30;

/// Returns whether a provider logs the events of [`id`].
pub(crate) fn is_runtime(provider: &Provider) -> bool {
    matches!(provider, Provider::Runtime | Provider::NativeRuntime)
}
