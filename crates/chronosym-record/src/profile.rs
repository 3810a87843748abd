//! Profiles: sets of providers for a purpose.

use crate::provider::Provider;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const PRIVATE: &str = "Microsoft-Windows-DotNETRuntimePrivate";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const TASKS: &str = "System.Threading.Tasks.TplEventSource";

// Keywords of the runtime's provider, from ClrEtwAll.man.
const GC: u64 = 0x1;
const LOADER: u64 = 0x8;
const JIT: u64 = 0x10;
const NGEN: u64 = 0x20;
const JIT_TRACING: u64 = 0x1000;
const INTEROP: u64 = 0x2000;
const IL_MAPS: u64 = 0x2_0000;
const TIERING: u64 = 0x10_0000_0000;
const ENTRY_POINTS: u64 = 0x20_0000_0000;
const METHOD_DETAILS: u64 = 0x40_0000_0000;
const TYPES: u64 = 0x80_0000_0000;
const ALLOCATION_SAMPLING: u64 = 0x800_0000_0000;
/// Keywords of the private provider.
const RICH_DEBUG: u64 = 0x4_0000;
/// Keywords of tasks: Tasks 2, AsyncCausalityOperation 8, AsyncCausalityRelation 0x10,
/// AsyncCausalitySynchronousWork 0x20, TaskStops 0x40, TasksFlowActivityIds 0x80.
const TASK_CAUSALITY: u64 = 0xfa;

const INFORMATIONAL: u32 = 4;
const VERBOSE: u32 = 5;

/// Modules, compiled methods, the targets of stubs: what names code. Methods state their names at
/// the verbose level only; at that level, GC logs an event for about each 100 kB allocated.
/// Exceptions are left out: each costs six events with stacks.
const NAMES: u64 = LOADER | JIT | INTEROP;

/// A set of providers for a purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Stacks of all managed threads, about every millisecond; tier changes.
    Cpu,
    /// Allocations with stacks: one in about 100 kB, and in .NET 10 unbiased samples.
    Alloc,
    /// Garbage collections.
    Gc,
    /// As `Cpu`, with IL maps of each compiled method: source lines even if the target is killed.
    Lines,
    /// As `Lines`, with the JIT's decisions and inline trees (which need `DOTNET_RichDebugInfo=1`
    /// at the start).
    Inlining,
    /// As `Cpu`, with compilations and first calls of precompiled methods.
    Startup,
    /// As `Cpu`, with the causality of tasks, along which activities of EventSources flow.
    Async,
}

impl Profile {
    /// All profiles, with their names.
    pub const ALL: [(&'static str, Profile); 7] = [
        ("cpu", Profile::Cpu),
        ("alloc", Profile::Alloc),
        ("gc", Profile::Gc),
        ("lines", Profile::Lines),
        ("inlining", Profile::Inlining),
        ("startup", Profile::Startup),
        ("async", Profile::Async),
    ];

    /// Returns the providers that name code, without samples.
    pub fn names() -> Vec<Provider> {
        vec![Provider::new(RUNTIME, NAMES, VERBOSE)]
    }

    /// Returns its providers.
    pub fn providers(self) -> Vec<Provider> {
        let runtime = |keywords, level| Provider::new(RUNTIME, keywords, level);
        let sampler = Provider::new(SAMPLER, 0, INFORMATIONAL);
        let cpu = NAMES | TIERING;
        match self {
            Profile::Cpu => vec![runtime(cpu, VERBOSE), sampler],
            Profile::Alloc => vec![runtime(GC | NAMES | ALLOCATION_SAMPLING, VERBOSE)],
            Profile::Gc => vec![runtime(GC | NAMES, INFORMATIONAL)],
            Profile::Lines => vec![runtime(cpu | IL_MAPS, VERBOSE), sampler],
            Profile::Inlining => vec![
                runtime(
                    cpu | NGEN | IL_MAPS | JIT_TRACING | METHOD_DETAILS | TYPES,
                    VERBOSE,
                ),
                Provider::new(PRIVATE, RICH_DEBUG, VERBOSE),
                sampler,
            ],
            Profile::Startup => vec![runtime(cpu | IL_MAPS | ENTRY_POINTS, VERBOSE), sampler],
            Profile::Async => vec![
                runtime(cpu, VERBOSE),
                Provider::new(TASKS, TASK_CAUSALITY, INFORMATIONAL),
                sampler,
            ],
        }
    }
}
