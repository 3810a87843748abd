//! Determines whether a thread was runnable or blocked when it was sampled (rule 22).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::activity::{Activities, Activity, ActivityEvidence, ThreadActivity, WallFlag};
use crate::ids::NameId;
use crate::ids::ProcessIndex;
use crate::process::Process;
use crate::samples::SampleClass;
use crate::stays::Stay;
use crate::terms::{Position, SampleKind};
use crate::timeline::Timeline;

/// Methods in which threads block, one line for each type.
///
/// From the sources of System.Private.CoreLib and its libraries (dotnet/runtime, `src/libraries`
/// and `src/coreclr/System.Private.CoreLib`, release/3.1 to release/10.0): the methods that block,
/// and their callers, because the former may be inlined or internal calls without a frame.
/// `Monitor.Enter` blocks only after its fast path.
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
    System.IO.Pipes.PipeStream: ReadCore
    System.IO.FileSystemWatcher+RunningInstance: TryReadEvent
    Microsoft.AspNetCore.Server.Kestrel.Transport.Libuv.Internal.Networking.LibuvFunctions: run
    Interop+Sys: WaitForSocketEvents Poll Select Accept Connect Receive ReceiveMessage Read WaitPid WaitPidExitedNoHang
    Interop+Kernel32: GetQueuedCompletionStatus GetQueuedCompletionStatusEx WaitForSingleObject \
        WaitForMultipleObjectsEx Sleep SleepEx
    Interop+Winsock: recv WSARecv accept select WSAConnect
    Interop+User32: GetMessageW WaitMessage MsgWaitForMultipleObjectsEx
";

/// The methods in which threads block.
struct Waits {
    /// Type and method.
    table: FxHashSet<(&'static str, &'static str)>,
    /// Results by name id.
    cache: FxHashMap<NameId, bool>,
}

impl Waits {
    fn new() -> Self {
        let lines = WAITING
            .lines()
            .filter_map(|line| line.trim().split_once(": "));
        let methods =
            lines.flat_map(|(of, methods)| methods.split(' ').map(move |method| (of, method)));
        Waits {
            table: methods.collect(),
            cache: FxHashMap::default(),
        }
    }

    /// Returns whether threads block in a method (`Namespace.Type.Method`).
    fn has(&self, name: &str) -> bool {
        let Some((of_type, method)) = name.rsplit_once('.') else {
            return false;
        };
        // The compiler's name of a P/Invoke: `<Poll>g____PInvoke|12_0`.
        let method = method.strip_prefix('<').map_or(method, |inner| {
            inner.split_once('>').map_or(inner, |(name, _)| name)
        });
        self.table.contains(&(of_type, method))
    }
}

/// The leaf of a sample class.
#[derive(Clone, Copy)]
struct Leaf {
    method: Option<NameId>,
    waits: bool,
    /// Whether it is in stubs that the method called.
    in_stub: bool,
}

impl Timeline {
    /// Returns the reliability of the flag of a process's wall-clock samples; `None` if it has
    /// none.
    pub fn wall_flag(&self, process: ProcessIndex) -> Option<WallFlag> {
        *self.activities().flags.get(process.index())?
    }

    /// Returns the activity of each sample class.
    pub(crate) fn class_activities(&self) -> &[ThreadActivity] {
        &self.activities().of
    }

    fn activities(&self) -> &Activities {
        self.activities.get_or_init(|| {
            let classes = self.samples.classes();
            let is_external = |class: &SampleClass| class.kind == SampleKind::WallExternal;
            let is_wall =
                |class: &SampleClass| is_external(class) || class.kind == SampleKind::WallManaged;
            let any_wall = classes.iter().any(is_wall);
            let stays = self.samples.stays(any_wall);
            let mut waits = Waits::new();
            let mut leaves: Vec<Option<Leaf>> = vec![None; classes.len()];
            let mut sums = vec![Sums::default(); self.processes.all.end()];
            // Samples of each method that does not block: (managed, external).
            let mut methods: FxHashMap<(usize, NameId), (u64, u64)> = FxHashMap::default();
            for (index, class) in classes
                .iter()
                .enumerate()
                .filter(|(_, class)| is_wall(class))
            {
                let Stay { samples, first, .. } = stays.of(index);
                if samples == 0 {
                    continue;
                }
                let leaf = self.leaf(class, first, &mut waits);
                leaves[index] = Some(leaf);
                let process = self.thread(class.thread).process.index();
                let (managed, external) = if is_external(class) {
                    (0, samples)
                } else {
                    (samples, 0)
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
            for (&(process, _), &(managed, external)) in &methods {
                sums[process].both += managed.min(external);
            }
            let flag = |(process, sums): (&Process, &Sums)| {
                let any = sums.managed + sums.external > 0;
                any.then(|| self.stated_flag(process).unwrap_or(sums.judge()))
            };
            let flags: Vec<_> = self.processes.all.iter().zip(&sums).map(flag).collect();
            let activity = |((class, leaf), stay): ((&SampleClass, &Option<Leaf>), Stay)| {
                let waits = leaf.is_some_and(|leaf| leaf.waits);
                let is_trusted = || {
                    let process = self.thread(class.thread).process.index();
                    flags[process] == Some(WallFlag::Trusted)
                };
                // A native function may compute for as long as a wait lasts. If the flag is right
                // sometimes, running code is sometimes flagged as managed.
                let stays = || {
                    let process = self.thread(class.thread).process.index();
                    let sums = &sums[process];
                    let is_external = |leaf: &Leaf| {
                        let method = leaf.method.and_then(|it| methods.get(&(process, it)));
                        !leaf.in_stub && method.is_some_and(|&(managed, all)| managed * 50 <= all)
                    };
                    sums.managed * 20 > sums.external
                        && leaf.as_ref().is_some_and(is_external)
                        && stay.is_unchanged()
                };
                match class.kind {
                    _ if class.on_cpu => {
                        ThreadActivity::new(Activity::OnCpu, ActivityEvidence::CpuSample)
                    }
                    SampleKind::Cpu => {
                        ThreadActivity::new(Activity::OnCpu, ActivityEvidence::CpuSample)
                    }
                    SampleKind::Event => ThreadActivity::UNKNOWN,
                    SampleKind::Wakeup => {
                        ThreadActivity::new(Activity::OnCpu, ActivityEvidence::ContextSwitch)
                    }
                    SampleKind::Blocked => {
                        ThreadActivity::new(Activity::Blocked, ActivityEvidence::ContextSwitch)
                    }
                    SampleKind::Runnable => {
                        ThreadActivity::new(Activity::Runnable, ActivityEvidence::ContextSwitch)
                    }
                    SampleKind::WallManaged if !waits || is_trusted() => {
                        ThreadActivity::new(Activity::Runnable, ActivityEvidence::Flag)
                    }
                    _ if waits => ThreadActivity::new(Activity::Blocked, ActivityEvidence::Method),
                    _ if stays() => {
                        ThreadActivity::new(Activity::Blocked, ActivityEvidence::UnchangedStack)
                    }
                    _ => ThreadActivity::UNKNOWN,
                }
            };
            let stays = (0..classes.len()).map(|index| stays.of(index));
            let classes = classes.iter().zip(&leaves).zip(stays);
            Activities {
                of: classes.map(activity).collect(),
                flags,
            }
        })
    }

    /// Returns the flag of runtimes that are known to write it wrongly.
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

    /// Returns the innermost named method that is not a stub, and whether it blocks.
    fn leaf(&self, class: &SampleClass, time: u64, waits: &mut Waits) -> Leaf {
        /// Number of stubs, named or not, between a method and its callee.
        const STUBS: usize = 2;
        let process = self.thread(class.thread).process;
        let mut position = class.kind.leaf_position();
        let mut leaf = Leaf {
            method: None,
            waits: false,
            in_stub: false,
        };
        for address in self.stacks.addresses(class.stack).take(1 + STUBS) {
            let body = self.body(process, address, time, position);
            position = Position::Return;
            let space = &self.spaces[process.index()];
            let body = body.and_then(|body| space.state.code.bodies.get(body.index()));
            // No event names the stub of a P/Invoke that the runtime made.
            let Some(body) = body.filter(|body| body.name != NameId::NONE) else {
                leaf.in_stub = true;
                continue;
            };
            let mut is_stub = false;
            leaf.method = Some(body.name);
            leaf.waits = waits.cache.get(&body.name).copied().unwrap_or_else(|| {
                let mut name = String::new();
                self.names.push_full(body.name, &mut name);
                let waits_there = waits.has(&name);
                waits.cache.insert(body.name, waits_there);
                waits_there
            });
            if let Some(name) = self.names.get(body.name) {
                let name = self.names.strings.get(name.name);
                is_stub = name.starts_with("IL_STUB");
                leaf.in_stub |= name.contains(">g____PInvoke|");
            }
            if leaf.waits || !is_stub {
                break;
            }
            leaf.in_stub = true;
        }
        leaf
    }
}

/// Samples of a process by flag.
#[derive(Clone, Default)]
struct Sums {
    managed: u64,
    external: u64,
    /// External samples in methods that block.
    waiting: u64,
    /// For methods that do not block, the smaller of the numbers of managed and external samples.
    both: u64,
}

impl Sums {
    /// Returns whether the flag contradicts itself: hardly any sample is managed although most
    /// external ones are in methods that do not block, or running methods are external nearly as
    /// often as managed.
    fn judge(&self) -> WallFlag {
        /// Fewer samples are inconclusive.
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
