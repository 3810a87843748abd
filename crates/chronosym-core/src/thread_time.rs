//! The activity of threads between context switches (rule 25).
//!
//! Every interval in which a thread is off the processors becomes a sample with the interval's
//! length and the stack of the switch, if one was recorded. Linux records the stack when the thread
//! leaves its processor, Windows when it returns to one: then the recording's importer adds the
//! samples. Time on processors is summed only.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::ids::{EventTypeId, StackId, ThreadIndex};
use crate::samples::{ClassIndex, SampleClass, SampleLog, Wakeup};
use crate::terms::{SampleKind, Weight};

/// A change of a thread's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadSwitch {
    /// It leaves its processor and waits.
    Block,
    /// It leaves its processor although it is runnable.
    Preempt,
    /// Another thread, or an interrupt, ends its wait.
    Ready,
    /// It starts to execute on a processor.
    Run,
    /// It ended.
    End,
}

/// The time of a thread according to context switches.
///
/// # Examples
///
/// ```
/// use chronosym_core::facts::At;
/// use chronosym_core::{Options, Session, ThreadSwitch};
///
/// let mut options = Options::default();
/// options.switches = true;
/// let mut session = Session::new(options);
/// let at = At::new(100).process(42).thread(7);
/// session.switch(at, ThreadSwitch::Run, None);
/// session.switch(at.at(300), ThreadSwitch::Block, None);
/// session.switch(at.at(900), ThreadSwitch::Ready, None);
/// session.switch(at.at(950), ThreadSwitch::Run, None);
///
/// let timeline = session.finish();
/// let (_, time) = timeline.thread_times()[0];
/// assert_eq!((time.on_cpu_ns, time.blocked_ns, time.runnable_ns), (200, 600, 50));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTime {
    /// ns on processors.
    pub on_cpu_ns: u64,
    /// ns in which it was ready for a processor.
    pub runnable_ns: u64,
    /// ns in which it waited for something else.
    pub blocked_ns: u64,
}

impl ThreadTime {
    fn add(&mut self, other: Self) {
        self.on_cpu_ns = self.on_cpu_ns.saturating_add(other.on_cpu_ns);
        self.runnable_ns = self.runnable_ns.saturating_add(other.runnable_ns);
        self.blocked_ns = self.blocked_ns.saturating_add(other.blocked_ns);
    }
}

/// An interval off the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffCpu {
    /// The start, in ns since the trace began.
    pub start_ns: u64,
    /// The length in ns.
    pub ns: u64,
    /// What ended it, as [`Session::wake`](crate::Session::wake) was given it.
    pub waker: Option<ClassIndex>,
}

/// The intervals that end when a thread runs again, if their stack is not yet known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Returned {
    /// The interval in which the thread was blocked.
    pub blocked: Option<OffCpu>,
    /// The interval in which it was ready for a processor.
    pub runnable: Option<OffCpu>,
}

impl Returned {
    /// Returns the intervals with the kind of their samples.
    pub fn intervals(self) -> impl Iterator<Item = (SampleKind, OffCpu)> {
        let blocked = self.blocked.map(|it| (SampleKind::Blocked, it));
        let runnable = self.runnable.map(|it| (SampleKind::Runnable, it));
        blocked.into_iter().chain(runnable)
    }
}

/// The thread that a switch is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Switched {
    Thread(ThreadIndex),
    /// A thread whose process only later events state.
    Early(u64),
}

/// A thread's activity since a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Current {
    doing: Doing,
    since_ns: u64,
    /// The stack of the switch that took the thread from its processor.
    stack: Option<(EventTypeId, StackId)>,
    /// The interval without a stack that the thread was blocked before it became runnable.
    waited: Option<OffCpu>,
}

/// What a switch states beside the activity.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct With {
    /// The stack with which the thread leaves, and the event that carries it.
    pub stack: Option<(EventTypeId, StackId)>,
    /// What ends its wait.
    pub waker: Option<ClassIndex>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Running,
    Runnable,
    Blocked,
}

/// The state of all threads, and their times so far.
#[derive(Debug, Default)]
pub(crate) struct ThreadTimes {
    current: FxHashMap<Switched, Current>,
    times: FxHashMap<Switched, ThreadTime>,
    /// Intervals that ended before this time were interrupted by lost events.
    lost_until_ns: u64,
    /// Number of switches without a preceding one that must exist, and of switches out of order.
    pub unpaired: u64,
}

impl ThreadTimes {
    /// Applies a switch of a thread. Adds the intervals that it ends to `samples`, or returns them
    /// if their stack is not known.
    pub fn switch(
        &mut self,
        thread: Switched,
        time_ns: u64,
        switch: ThreadSwitch,
        with: With,
        samples: &mut SampleLog,
    ) -> Returned {
        let mut returned = Returned::default();
        let before = self.current.get(&thread).copied();
        let doing = match switch {
            ThreadSwitch::Run => Doing::Running,
            ThreadSwitch::Block => Doing::Blocked,
            ThreadSwitch::Preempt => Doing::Runnable,
            ThreadSwitch::Ready => match before {
                // A wake-up of a thread that is not known to wait has no effect.
                Some(Current {
                    doing: Doing::Blocked,
                    ..
                }) => Doing::Runnable,
                _ => return returned,
            },
            ThreadSwitch::End => {
                if let Some(before) = before.filter(|it| it.doing == Doing::Running) {
                    self.end(thread, before, time_ns, None, samples);
                }
                self.current.remove(&thread);
                return returned;
            }
        };
        let leaves = matches!(switch, ThreadSwitch::Block | ThreadSwitch::Preempt);
        let mut waited = None;
        if let Some(before) = before {
            if time_ns < before.since_ns {
                self.unpaired += 1;
                return returned;
            }
            let was_running = before.doing == Doing::Running;
            if leaves != was_running {
                self.unpaired += 1;
            } else {
                let ended = self.end(thread, before, time_ns, with.waker, samples);
                match (before.doing, doing) {
                    (Doing::Blocked, Doing::Runnable) => waited = ended,
                    (Doing::Blocked, _) => returned.blocked = ended,
                    (Doing::Runnable, _) => {
                        returned.blocked = before.waited;
                        returned.runnable = ended;
                    }
                    (Doing::Running, _) => {}
                }
            }
        }
        let stack = match (leaves, before) {
            (true, _) => with.stack,
            (false, Some(before)) => before.stack,
            (false, None) => None,
        };
        let current = Current {
            doing,
            since_ns: time_ns,
            stack,
            waited,
        };
        self.current.insert(thread, current);
        returned
    }

    /// Returns whether a thread is known to wait.
    pub fn is_blocked(&self, thread: Switched) -> bool {
        let current = self.current.get(&thread);
        current.is_some_and(|it| it.doing == Doing::Blocked)
    }

    /// Removes the activity of a thread whose process was unknown so far.
    pub fn take_early(&mut self, tid: u64) -> Option<Current> {
        self.current.remove(&Switched::Early(tid))
    }

    /// Continues an activity as that of a thread whose process is known.
    pub fn identify(&mut self, early: Current, thread: ThreadIndex) {
        let current = self.current.entry(Switched::Thread(thread));
        current.or_insert(early);
    }

    /// Records that events up to a time were lost: the activity of threads since an earlier time is
    /// unknown.
    pub fn lost(&mut self, until_ns: u64) {
        self.lost_until_ns = self.lost_until_ns.max(until_ns);
    }

    /// Returns the times of threads, sorted by thread. `thread_of` returns the thread whose process
    /// was stated late.
    pub fn sorted(
        self,
        mut thread_of: impl FnMut(u64) -> Option<ThreadIndex>,
    ) -> Vec<(ThreadIndex, ThreadTime)> {
        let mut times: BTreeMap<ThreadIndex, ThreadTime> = BTreeMap::new();
        for (switched, time) in self.times {
            let thread = match switched {
                Switched::Thread(thread) => Some(thread),
                Switched::Early(tid) => thread_of(tid),
            };
            if let Some(thread) = thread {
                times.entry(thread).or_default().add(time);
            }
        }
        times.into_iter().collect()
    }

    /// Ends all intervals with the recording.
    pub fn finish(&mut self, end_ns: u64, samples: &mut SampleLog) {
        let mut open: Vec<_> = self.current.drain().collect();
        open.sort_unstable_by_key(|&(thread, current)| (current.since_ns, thread));
        for (thread, current) in open {
            if end_ns >= current.since_ns {
                self.end(thread, current, end_ns, None, samples);
            }
        }
    }

    /// Ends a thread's current activity. Returns the interval if it has no stack yet.
    fn end(
        &mut self,
        thread: Switched,
        current: Current,
        end_ns: u64,
        waker: Option<ClassIndex>,
        samples: &mut SampleLog,
    ) -> Option<OffCpu> {
        if current.since_ns < self.lost_until_ns {
            self.unpaired += 1;
            return None;
        }
        let ns = end_ns.saturating_sub(current.since_ns);
        let times = self.times.entry(thread).or_default();
        let (sum, kind) = match current.doing {
            Doing::Running => (&mut times.on_cpu_ns, None),
            Doing::Runnable => (&mut times.runnable_ns, Some(SampleKind::Runnable)),
            Doing::Blocked => (&mut times.blocked_ns, Some(SampleKind::Blocked)),
        };
        *sum = sum.saturating_add(ns);
        let kind = kind.filter(|_| ns > 0)?;
        match (thread, current.stack) {
            (Switched::Thread(thread), Some((event, stack))) => {
                let class = SampleClass {
                    thread,
                    stack,
                    event,
                    kind,
                    idle: false,
                    on_cpu: false,
                };
                let wait = samples.class(class);
                samples.log(wait, current.since_ns, Weight::Ns(ns));
                if let Some(waker) = waker {
                    samples.wakeup(Wakeup {
                        wait,
                        start_ns: current.since_ns,
                        ns,
                        waker,
                    });
                }
                None
            }
            _ => Some(OffCpu {
                start_ns: current.since_ns,
                ns,
                waker,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::StackTable;

    type Interval = (&'static str, u64, u64);

    /// Returns the intervals and the time of one thread after these switches.
    fn replay(switches: &[(u64, ThreadSwitch)], end_ns: u64) -> (Vec<Interval>, ThreadTime, u64) {
        let mut stacks = StackTable::default();
        let stack = stacks.intern([1].into_iter()).expect("room");
        let mut samples = SampleLog::default();
        let mut times = ThreadTimes::default();
        let thread = Switched::Thread(ThreadIndex(3));
        for &(time, switch) in switches {
            let with = With {
                stack: Some((EventTypeId(0), stack)),
                waker: None,
            };
            times.switch(thread, time, switch, with, &mut samples);
        }
        times.finish(end_ns, &mut samples);
        let intervals = samples.weighed().map(|(class, time, change)| {
            let Weight::Ns(ns) = samples.weight(change) else {
                panic!("a time");
            };
            (samples.classes()[class as usize].kind.as_str(), time, ns)
        });
        let time = times.times.get(&thread).copied().unwrap_or_default();
        (intervals.collect(), time, times.unpaired)
    }

    #[test]
    fn rule_25_intervals_are_between_switches() {
        use ThreadSwitch::*;
        let switches = [
            (10, Run),
            (30, Block),
            (70, Ready),
            (75, Run),
            (90, Preempt),
            (92, Run),
        ];
        let (intervals, time, unpaired) = replay(&switches, 100);
        let expected = [
            ("blocked", 30, 40),
            ("runnable", 70, 5),
            ("runnable", 90, 2),
        ];
        assert_eq!(intervals, expected);
        let expected = ThreadTime {
            on_cpu_ns: 20 + 15 + 8,
            runnable_ns: 7,
            blocked_ns: 40,
        };
        assert_eq!((time, unpaired), (expected, 0));
    }

    #[test]
    fn rule_25_intervals_without_a_stack_are_returned() {
        use ThreadSwitch::*;
        let mut samples = SampleLog::default();
        let mut times = ThreadTimes::default();
        let thread = Switched::Early(7);
        let mut at = |time, switch, waker| {
            let with = With { stack: None, waker };
            times.switch(thread, time, switch, with, &mut samples)
        };
        assert_eq!(at(10, Block, None), Returned::default());
        assert_eq!(at(40, Ready, Some(99)), Returned::default());
        let off = |start_ns, ns, waker| {
            Some(OffCpu {
                start_ns,
                ns,
                waker,
            })
        };
        let returned = Returned {
            blocked: off(10, 30, Some(99)),
            runnable: off(40, 5, None),
        };
        assert_eq!(at(45, Run, None), returned);
        at(50, Preempt, None);
        // The process is known from here on.
        let early = times.take_early(7).expect("its activity");
        times.identify(early, ThreadIndex(3));
        let thread = Switched::Thread(ThreadIndex(3));
        let returned = times.switch(thread, 58, Run, With::default(), &mut samples);
        assert_eq!(returned.blocked, None);
        assert_eq!(returned.runnable, off(50, 8, None));
        times.finish(60, &mut samples);
        let time = ThreadTime {
            on_cpu_ns: 5 + 2,
            runnable_ns: 5 + 8,
            blocked_ns: 30,
        };
        let thread_of = |tid| (tid == 7).then_some(ThreadIndex(3));
        assert_eq!(times.sorted(thread_of), [(ThreadIndex(3), time)]);
    }

    #[test]
    fn rule_25_a_wait_lasts_until_the_recording_ends() {
        let (intervals, ..) = replay(&[(10, ThreadSwitch::Block)], 100);
        assert_eq!(intervals, [("blocked", 10, 90)]);
        let ended = [(10, ThreadSwitch::Block), (20, ThreadSwitch::End)];
        assert_eq!(replay(&ended, 100).0, []);
    }

    #[test]
    fn rule_25_unpaired_switches_have_no_time() {
        use ThreadSwitch::*;
        // The switch between the two blocks is missing; the last is out of order.
        let switches = [(10, Run), (20, Block), (50, Block), (60, Run), (55, Block)];
        let (intervals, time, unpaired) = replay(&switches, 60);
        assert_eq!(intervals, [("blocked", 50, 10)]);
        assert_eq!((time.on_cpu_ns, time.blocked_ns, unpaired), (10, 10, 2));
    }

    #[test]
    fn rule_25_intervals_with_lost_events_have_no_time() {
        let mut samples = SampleLog::default();
        let mut times = ThreadTimes::default();
        let thread = Switched::Thread(ThreadIndex(0));
        times.switch(thread, 10, ThreadSwitch::Run, With::default(), &mut samples);
        times.lost(15);
        times.switch(
            thread,
            20,
            ThreadSwitch::Block,
            With::default(),
            &mut samples,
        );
        times.switch(thread, 30, ThreadSwitch::Run, With::default(), &mut samples);
        let time = times.times[&thread];
        assert_eq!((time.on_cpu_ns, time.blocked_ns), (0, 10));
        assert_eq!(times.unpaired, 1);
    }
}
