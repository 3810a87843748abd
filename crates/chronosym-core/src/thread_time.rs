//! The activity of threads between context switches (rule 25).
//!
//! Every interval in which a thread is off the processors becomes a sample with the interval's
//! length and the stack of the switch, if one was recorded. Time on processors is summed only.

use rustc_hash::FxHashMap;

use crate::ids::{EventTypeId, StackId, ThreadIndex};
use crate::samples::{SampleClass, SampleLog};
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

/// A thread's activity since a time.
#[derive(Clone, Copy, Debug)]
struct Current {
    doing: Doing,
    since_ns: u64,
    /// The stack of the switch that took the thread from its processor.
    stack: Option<(EventTypeId, StackId)>,
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
    current: FxHashMap<ThreadIndex, Current>,
    times: FxHashMap<ThreadIndex, ThreadTime>,
    /// Intervals that ended before this time were interrupted by lost events.
    lost_until_ns: u64,
    /// Number of switches without a preceding one that must exist, and of switches out of order.
    pub unpaired: u64,
}

impl ThreadTimes {
    /// Applies a switch of a thread. Adds the intervals that it ends to `samples`.
    pub fn switch(
        &mut self,
        thread: ThreadIndex,
        time_ns: u64,
        switch: ThreadSwitch,
        stack: Option<(EventTypeId, StackId)>,
        samples: &mut SampleLog,
    ) {
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
                _ => return,
            },
            ThreadSwitch::End => {
                if let Some(before) = before.filter(|it| it.doing == Doing::Running) {
                    self.end(thread, before, time_ns, samples);
                }
                self.current.remove(&thread);
                return;
            }
        };
        let leaves = matches!(switch, ThreadSwitch::Block | ThreadSwitch::Preempt);
        if let Some(before) = before {
            if time_ns < before.since_ns {
                self.unpaired += 1;
                return;
            }
            let was_running = before.doing == Doing::Running;
            if leaves != was_running {
                self.unpaired += 1;
            } else {
                self.end(thread, before, time_ns, samples);
            }
        }
        let stack = match (leaves, before) {
            (true, _) => stack,
            (false, Some(before)) => before.stack,
            (false, None) => None,
        };
        let current = Current {
            doing,
            since_ns: time_ns,
            stack,
        };
        self.current.insert(thread, current);
    }

    /// Records that events up to a time were lost: the activity of threads since an earlier time is
    /// unknown.
    pub fn lost(&mut self, until_ns: u64) {
        self.lost_until_ns = self.lost_until_ns.max(until_ns);
    }

    /// Returns the times of threads, sorted by thread.
    pub fn sorted(self) -> Vec<(ThreadIndex, ThreadTime)> {
        let mut times: Vec<_> = self.times.into_iter().collect();
        times.sort_unstable_by_key(|&(thread, _)| thread);
        times
    }

    /// Ends all intervals with the recording.
    pub fn finish(&mut self, end_ns: u64, samples: &mut SampleLog) {
        let mut open: Vec<_> = self.current.drain().collect();
        open.sort_unstable_by_key(|&(thread, current)| (current.since_ns, thread.0));
        for (thread, current) in open {
            if end_ns >= current.since_ns {
                self.end(thread, current, end_ns, samples);
            }
        }
    }

    /// Ends a thread's current activity.
    fn end(&mut self, thread: ThreadIndex, current: Current, end_ns: u64, samples: &mut SampleLog) {
        if current.since_ns < self.lost_until_ns {
            self.unpaired += 1;
            return;
        }
        let ns = end_ns.saturating_sub(current.since_ns);
        let times = self.times.entry(thread).or_default();
        let (sum, kind) = match current.doing {
            Doing::Running => (&mut times.on_cpu_ns, None),
            Doing::Runnable => (&mut times.runnable_ns, Some(SampleKind::Runnable)),
            Doing::Blocked => (&mut times.blocked_ns, Some(SampleKind::Blocked)),
        };
        *sum = sum.saturating_add(ns);
        if let (Some(kind), Some((event, stack))) = (kind, current.stack)
            && ns > 0
        {
            let class = SampleClass {
                thread,
                stack,
                event,
                kind,
                idle: false,
            };
            samples.push_weighing(class, current.since_ns, Weight::Ns(ns));
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
        let thread = ThreadIndex(3);
        for &(time, switch) in switches {
            let stack = Some((EventTypeId(0), stack));
            times.switch(thread, time, switch, stack, &mut samples);
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
        let thread = ThreadIndex(0);
        times.switch(thread, 10, ThreadSwitch::Run, None, &mut samples);
        times.lost(15);
        times.switch(thread, 20, ThreadSwitch::Block, None, &mut samples);
        times.switch(thread, 30, ThreadSwitch::Run, None, &mut samples);
        let time = times.times[&thread];
        assert_eq!((time.on_cpu_ns, time.blocked_ns), (0, 10));
        assert_eq!(times.unpaired, 1);
    }
}
