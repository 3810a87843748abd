//! Whether a thread ran or waited when it was sampled (rule 22).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::activity::{Activities, Activity, WallFlag};
use crate::ids::NameId;
use crate::ids::ProcessIndex;
use crate::process::Process;
use crate::samples::SampleClass;
use crate::terms::{Position, SampleKind};
use crate::timeline::Timeline;

/// Methods in which threads wait, a line for each type.
///
/// From the sources of System.Private.CoreLib and its libraries (dotnet/runtime, `src/libraries` and
/// `src/coreclr/System.Private.CoreLib`, release/3.1 to release/10.0): what blocks in the end, and what calls that, because the
/// former may be inlined or an internal call without a frame. Of monitors, Enter is a wait only once it has left its fast path.
const WAITING: &str = "
    System.Threading.Monitor: Wait ObjWait Enter_Slowpath TryEnter_Slowpath
    System.Threading.Lock: TryEnterSlow
    System.Threading.WaitHandle: WaitOne WaitOneCore WaitOneNoCheck WaitMultiple WaitMultipleIgnoringSyncContext \
        WaitAny WaitAll SignalAndWait SignalAndWaitCore SignalAndWaitNative
    System.Threading.WaitSubsystem: Wait SignalAndWait
    System.Threading.WaitSubsystem+ThreadWaitInfo: Wait
    System.Threading.LowLevelMonitor: Wait WaitCore
    System.Threading.LowLevelLifoSemaphore: WaitNative WaitCore WaitForSignal
    System.Threading.LowLevelLock: WaitAndAcquire
    System.Threading.ManualResetEventSlim: Wait
    System.Threading.SemaphoreSlim: WaitUntilCountOrTimeout
    System.Threading.Thread: Join JoinInternal Sleep SleepInternal UninterruptibleSleep0
    System.GC: WaitForPendingFinalizers WaitForFullGCComplete
    System.Threading.PortableThreadPool+IOCompletionPoller: Poll
    System.Threading.TimerQueue: TimerThread
    System.Net.Sockets.SocketAsyncEngine: EventLoop
    Interop+Sys: WaitForSocketEvents Poll Select Accept Connect Receive ReceiveMessage WaitPid WaitPidExitedNoHang
    Interop+Kernel32: GetQueuedCompletionStatus GetQueuedCompletionStatusEx WaitForSingleObject \
        WaitForMultipleObjectsEx Sleep SleepEx
    Interop+Winsock: recv WSARecv accept select WSAConnect
    Interop+User32: GetMessageW WaitMessage MsgWaitForMultipleObjectsEx
";

/// Which methods wait.
struct Waits {
    /// Type and method.
    table: FxHashSet<(&'static str, &'static str)>,
    /// Those that were asked about.
    known: FxHashMap<NameId, bool>,
}

impl Waits {
    fn new() -> Self {
        let rows = WAITING
            .lines()
            .filter_map(|row| row.trim().split_once(": "));
        let methods =
            rows.flat_map(|(of, methods)| methods.split(' ').map(move |method| (of, method)));
        Waits {
            table: methods.collect(),
            known: FxHashMap::default(),
        }
    }

    /// Whether a method (`Namespace.Type.Method`) waits.
    fn has(&self, name: &str) -> bool {
        let Some((of_type, method)) = name.rsplit_once('.') else {
            return false;
        };
        // What the compiler makes of a P/Invoke: `<Poll>g____PInvoke|12_0`.
        let method = method.strip_prefix('<').map_or(method, |inner| {
            inner.split_once('>').map_or(inner, |(name, _)| name)
        });
        self.table.contains(&(of_type, method))
    }
}

/// What the samples of a class come to, before their flag is judged.
#[derive(Clone, Copy)]
struct Leaf {
    method: Option<NameId>,
    waits: bool,
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
            let is_wall =
                |class: &SampleClass| is_external(class) || class.kind == SampleKind::WallManaged;
            let any_wall = classes.iter().any(is_wall);
            // Of each class, how many samples there are and when the first was taken.
            let mut met = vec![(0u64, 0u64); classes.len()];
            for (index, time) in self.samples.iter().filter(|_| any_wall) {
                let (count, first) = &mut met[index as usize];
                if *count == 0 {
                    *first = time;
                }
                *count += 1;
            }
            let mut waits = Waits::new();
            let mut waiting = vec![false; classes.len()];
            let mut sums = vec![Sums::default(); self.processes.all.len()];
            // How often a method that does not wait was seen in managed code and outside.
            let mut methods: FxHashMap<(usize, NameId), (u64, u64)> = FxHashMap::default();
            for (index, class) in classes
                .iter()
                .enumerate()
                .filter(|(_, class)| is_wall(class))
            {
                let (count, first) = met[index];
                if count == 0 {
                    continue;
                }
                let leaf = self.leaf(class, first, &mut waits);
                waiting[index] = leaf.waits;
                let process = self.thread(class.thread).process.index();
                let (managed, external) = if is_external(class) {
                    (0, count)
                } else {
                    (count, 0)
                };
                let sum = &mut sums[process];
                sum.managed += managed;
                sum.external += external;
                if leaf.waits {
                    sum.waiting += external;
                } else if let Some(method) = leaf.method {
                    let of = methods.entry((process, method)).or_default();
                    *of = (of.0 + managed, of.1 + external);
                }
            }
            for ((process, _), (managed, external)) in methods {
                sums[process].both += managed.min(external);
            }
            let flag = |(process, sums): (&Process, &Sums)| {
                let any = sums.managed + sums.external > 0;
                any.then(|| self.stated_flag(process).unwrap_or(sums.judge()))
            };
            let flags: Vec<_> = self.processes.all.iter().zip(&sums).map(flag).collect();
            let activity = |(class, waits): (&SampleClass, &bool)| match class.kind {
                SampleKind::Cpu | SampleKind::WallManaged => Activity::Running,
                SampleKind::Event => Activity::Unknown,
                SampleKind::WallExternal => {
                    let process = self.thread(class.thread).process.index();
                    match flags[process] {
                        Some(WallFlag::Trusted) => Activity::Waiting,
                        _ if *waits => Activity::Waiting,
                        _ => Activity::Unknown,
                    }
                }
            };
            Activities {
                of: classes.iter().zip(&waiting).map(activity).collect(),
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
    fn leaf(&self, class: &SampleClass, time: u64, waits: &mut Waits) -> Leaf {
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
            position = Position::Return;
            let space = &self.spaces[process.index()];
            let Some(body) = space.state.code.bodies.get(body.index()) else {
                break;
            };
            let mut is_stub = false;
            found.method = Some(body.name).filter(|&name| name != NameId::NONE);
            found.waits = waits.known.get(&body.name).copied().unwrap_or_else(|| {
                let mut name = String::new();
                self.names.push_full(body.name, &mut name);
                let waits_there = waits.has(&name);
                waits.known.insert(body.name, waits_there);
                waits_there
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
#[derive(Clone, Default)]
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
        let waits = Waits::new();
        for name in [
            "System.Threading.Monitor.Wait",
            "System.Threading.Thread.Join",
            "Interop+Sys.<WaitForSocketEvents>g____PInvoke|12_0",
        ] {
            assert!(waits.has(name), "{name}");
        }
        for name in ["App.Thread.Join", "System.Threading.Monitor.Exit", "Join"] {
            assert!(!waits.has(name), "{name}");
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
