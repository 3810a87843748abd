//! Whether a thread ran or waited when it was sampled (rule 22).

use rustc_hash::FxHashMap;

use crate::names::NameId;
use crate::process::{Process, ProcessIndex};
use crate::samples::{SampleClass, SampleKind};
use crate::timeline::Timeline;

/// What a thread did when a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// It ran: on a processor or, of a wall-clock sample, in managed code.
    Running,
    /// It waited or, where the sample's flag says no more than that, was in native code.
    Waiting,
    /// Nothing says so; of all samples that are no profiler's.
    Unknown,
}

impl Activity {
    /// The spelling in outputs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Activity::Running => "running",
            Activity::Waiting => "waiting",
            Activity::Unknown => "unknown",
        }
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

/// Methods in which threads wait: type, methods. An empty list means all of them.
///
/// From the sources of System.Private.CoreLib and its libraries (dotnet/runtime, `src/libraries` and
/// `src/coreclr/System.Private.CoreLib`, release/3.1 to release/10.0): what blocks in the end, and what calls that, because the
/// former may be inlined or an internal call without a frame.
const WAITING: &[(&str, &[&str])] = &[
    // Monitors. Enter is a wait only once it has left its fast path.
    (
        "System.Threading.Monitor",
        &["Wait", "ObjWait", "Enter_Slowpath", "TryEnter_Slowpath"],
    ),
    ("System.Threading.Lock", &["TryEnterSlow"]),
    // Wait handles and what is built on them.
    (
        "System.Threading.WaitHandle",
        &[
            "WaitOne",
            "WaitOneCore",
            "WaitOneNoCheck",
            "WaitMultiple",
            "WaitMultipleIgnoringSyncContext",
            "WaitAny",
            "WaitAll",
            "SignalAndWait",
            "SignalAndWaitCore",
            "SignalAndWaitNative",
        ],
    ),
    ("System.Threading.WaitSubsystem", &["Wait", "SignalAndWait"]),
    ("System.Threading.WaitSubsystem+ThreadWaitInfo", &["Wait"]),
    ("System.Threading.LowLevelMonitor", &["Wait", "WaitCore"]),
    (
        "System.Threading.LowLevelLifoSemaphore",
        &["WaitNative", "WaitCore", "WaitForSignal"],
    ),
    ("System.Threading.LowLevelLock", &["WaitAndAcquire"]),
    ("System.Threading.ManualResetEventSlim", &["Wait"]),
    (
        "System.Threading.SemaphoreSlim",
        &["WaitUntilCountOrTimeout"],
    ),
    // Threads, the garbage collector, the thread pool, timers.
    (
        "System.Threading.Thread",
        &[
            "Join",
            "JoinInternal",
            "Sleep",
            "SleepInternal",
            "UninterruptibleSleep0",
        ],
    ),
    (
        "System.GC",
        &["WaitForPendingFinalizers", "WaitForFullGCComplete"],
    ),
    (
        "System.Threading.PortableThreadPool+IOCompletionPoller",
        &["Poll"],
    ),
    ("System.Threading.TimerQueue", &["TimerThread"]),
    // Sockets: epoll and kqueue, poll, completion ports.
    ("System.Net.Sockets.SocketAsyncEngine", &["EventLoop"]),
    (
        "Interop+Sys",
        &[
            "WaitForSocketEvents",
            "Poll",
            "Select",
            "Accept",
            "Connect",
            "Receive",
            "ReceiveMessage",
            "WaitPid",
            "WaitPidExitedNoHang",
        ],
    ),
    (
        "Interop+Kernel32",
        &[
            "GetQueuedCompletionStatus",
            "GetQueuedCompletionStatusEx",
            "WaitForSingleObject",
            "WaitForMultipleObjectsEx",
            "Sleep",
            "SleepEx",
        ],
    ),
    (
        "Interop+Winsock",
        &["recv", "WSARecv", "accept", "select", "WSAConnect"],
    ),
    (
        "Interop+User32",
        &["GetMessageW", "WaitMessage", "MsgWaitForMultipleObjectsEx"],
    ),
];

/// Whether a method (`Namespace.Type.Method`) waits.
fn is_waiting_method(name: &str) -> bool {
    let Some((of_type, method)) = name.rsplit_once('.') else {
        return false;
    };
    // What the compiler makes of a P/Invoke: `<Poll>g____PInvoke|12_0`.
    let method = method.strip_prefix('<').map_or(method, |inner| {
        inner.split_once('>').map_or(inner, |(name, _)| name)
    });
    WAITING
        .iter()
        .any(|(t, methods)| *t == of_type && methods.contains(&method))
}

/// How often a method was seen in managed code and outside.
#[derive(Clone, Copy, Default)]
struct Flags {
    managed: u64,
    external: u64,
}

/// What classes of samples come to, before their flag is judged.
#[derive(Clone, Copy)]
struct Leaf {
    method: Option<NameId>,
    waits: bool,
}

/// Activities of all classes of samples, and whether each process' flag is believed.
#[derive(Debug, Default)]
pub(crate) struct Activities {
    of: Vec<Activity>,
    flags: Vec<Option<WallFlag>>,
}

impl Timeline {
    /// Whether the flag of a process' wall-clock samples is believed; `None` where it has none.
    pub fn wall_flag(&self, process: ProcessIndex) -> Option<WallFlag> {
        *self.activities().flags.get(process.index())?
    }

    /// What the threads of each class of samples did.
    pub(crate) fn class_activities(&self) -> &[Activity] {
        &self.activities().of
    }

    fn activities(&self) -> &Activities {
        self.activities.get_or_init(|| {
            let classes = self.samples.classes();
            let is_external = |class: &SampleClass| class.kind == SampleKind::WallExternal;
            let mut leaves = vec![None; classes.len()];
            let mut seen: Vec<FxHashMap<NameId, Flags>> = Vec::new();
            seen.resize_with(self.processes.all.len(), FxHashMap::default);
            // Of each process: all samples in managed code, those outside, and the latter in methods that wait.
            let mut sums = vec![(0u64, 0u64, 0u64); self.processes.all.len()];
            let mut waits: FxHashMap<NameId, bool> = FxHashMap::default();
            let any_wall = classes
                .iter()
                .any(|class| is_external(class) || class.kind == SampleKind::WallManaged);
            for (index, time) in self.samples.iter().filter(|_| any_wall) {
                let class = &classes[index as usize];
                if !is_external(class) && class.kind != SampleKind::WallManaged {
                    continue;
                }
                let leaf = *leaves[index as usize]
                    .get_or_insert_with(|| self.leaf(class, time, &mut waits));
                let process = self.thread(class.thread).process.index();
                let external = u64::from(is_external(class));
                let sum = &mut sums[process];
                sum.0 += 1 - external;
                sum.1 += external;
                sum.2 += external * u64::from(leaf.waits);
                if let Some(method) = leaf.method.filter(|_| !leaf.waits) {
                    let flags = seen[process].entry(method).or_default();
                    flags.managed += 1 - external;
                    flags.external += external;
                }
            }
            let flag = |(index, process): (usize, &Process)| {
                let (managed, external, waiting) = sums[index];
                (managed + external > 0).then(|| {
                    let both = seen[index]
                        .values()
                        .map(|f| f.managed.min(f.external))
                        .sum();
                    let sums = Sums {
                        managed,
                        external,
                        waiting,
                        both,
                    };
                    self.stated_flag(process).unwrap_or(sums.judge())
                })
            };
            let flags: Vec<_> = self.processes.all.iter().enumerate().map(flag).collect();
            let activity = |(class, leaf): (&SampleClass, &Option<Leaf>)| match class.kind {
                SampleKind::Cpu | SampleKind::WallManaged => Activity::Running,
                SampleKind::Event => Activity::Unknown,
                SampleKind::WallExternal => {
                    let process = self.thread(class.thread).process.index();
                    let waits = leaf.is_some_and(|leaf| leaf.waits);
                    match flags[process] {
                        Some(WallFlag::Trusted) => Activity::Waiting,
                        _ if waits => Activity::Waiting,
                        _ => Activity::Unknown,
                    }
                }
            };
            Activities {
                of: classes.iter().zip(&leaves).map(activity).collect(),
                flags,
            }
        })
    }

    /// The flag of runtimes of which it is known that they write it wrongly.
    fn stated_flag(&self, process: &Process) -> Option<WallFlag> {
        let machine = self.facts.machine.as_deref().unwrap_or("");
        if machine.starts_with("Windows") {
            return Some(WallFlag::Windows);
        }
        let is_wrong = |version: [u16; 4]| matches!(version, [9, ..] | [10, 0, 0..4, _]);
        let mut runtimes = process.runtimes.iter();
        runtimes
            .any(|runtime| is_wrong(runtime.version))
            .then_some(WallFlag::Runtime)
    }

    /// The method at the innermost address of a stack, or of a stub's caller, and whether it waits.
    fn leaf(&self, class: &SampleClass, time: u64, waits: &mut FxHashMap<NameId, bool>) -> Leaf {
        /// Stubs stand between a method and what it calls.
        const STUBS: usize = 2;
        let process = self.thread(class.thread).process;
        let mut position = class.kind.leaf_position();
        let mut found = Leaf {
            method: None,
            waits: false,
        };
        for address in self.stacks.addresses(class.stack).take(1 + STUBS) {
            let Some(body) = self.body(process, address, time, position) else {
                break;
            };
            position = crate::frame::Position::Return;
            let space = &self.spaces[process.index()];
            let Some(body) = space.state.code.bodies.get(body.index()) else {
                break;
            };
            let mut is_stub = false;
            found.method = Some(body.name).filter(|&name| name != NameId::NONE);
            found.waits = *waits.entry(body.name).or_insert_with(|| {
                let mut name = String::new();
                self.names.push_full(body.name, &mut name);
                is_waiting_method(&name)
            });
            if let Some(name) = self.names.get(body.name) {
                is_stub = self.names.strings.get(name.name).starts_with("IL_STUB");
            }
            if found.waits || !is_stub {
                break;
            }
        }
        found
    }
}

/// Samples of a process by flag.
struct Sums {
    managed: u64,
    external: u64,
    /// Of the external ones those in methods that wait.
    waiting: u64,
    /// What methods that do not wait have of both, the fewer.
    both: u64,
}

impl Sums {
    /// Whether the flag contradicts itself: hardly anything is managed although most of what is external does not wait, or
    /// methods that compute are external nearly as often as not.
    fn judge(&self) -> WallFlag {
        /// Fewer samples say nothing.
        const LEAST: u64 = 20;
        let elsewhere = self.external - self.waiting;
        let all_external = self.external >= LEAST
            && self.managed * 50 < self.external
            && elsewhere * 2 > self.external;
        let mixed = self.managed >= LEAST && self.both * 5 > self.managed;
        if all_external || mixed {
            WallFlag::Contradicted
        } else {
            WallFlag::Trusted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_22_methods_that_wait_are_known_by_name() {
        for name in [
            "System.Threading.Monitor.Wait",
            "System.Threading.Thread.Join",
            "Interop+Sys.<WaitForSocketEvents>g____PInvoke|12_0",
        ] {
            assert!(is_waiting_method(name), "{name}");
        }
        for name in ["App.Thread.Join", "System.Threading.Monitor.Exit", "Join"] {
            assert!(!is_waiting_method(name), "{name}");
        }
    }

    #[test]
    fn rule_22_a_flag_that_contradicts_itself_is_not_believed() {
        let judge = |managed, external, waiting, both| {
            let sums = Sums {
                managed,
                external,
                waiting,
                both,
            };
            sums.judge()
        };
        assert_eq!(judge(2, 7_013, 100, 0), WallFlag::Contradicted);
        assert_eq!(
            judge(2, 7_013, 7_000, 0),
            WallFlag::Trusted,
            "an idle process"
        );
        assert_eq!(judge(2_332, 5_892, 0, 900), WallFlag::Contradicted);
        assert_eq!(
            judge(4_514, 2_376, 1_780, 300),
            WallFlag::Trusted,
            "the JIT is native code"
        );
    }
}
