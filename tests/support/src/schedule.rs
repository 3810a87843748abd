//! A random schedule of threads on two processors, and the times that each thread spends with it.

use std::collections::BTreeMap;

use crate::random::Random;

/// Id of the first thread; the others follow.
pub const FIRST: u32 = 100;
/// Number of threads.
pub const THREADS: u32 = 5;

/// A decision of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A processor switches threads; 0 is the idle thread.
    Switch {
        /// The processor.
        cpu: u32,
        /// The thread that leaves.
        from: u32,
        /// Whether it could continue; otherwise it waits.
        preempted: bool,
        /// The thread that follows.
        to: u32,
    },
    /// A thread ends another's wait.
    Wake {
        /// The processor on which that happens.
        cpu: u32,
        /// The thread that runs there; 0 if it is idle.
        by: u32,
        /// The thread that waited.
        thread: u32,
    },
}

/// What a thread does in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// On a processor.
    Running,
    /// Ready for a processor.
    Ready,
    /// Waiting.
    Waiting,
}

/// A schedule, and what follows from it.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Steps with their times in ns, in order.
    pub steps: Vec<(u64, Step)>,
    /// Intervals of threads: thread, activity, start and length in ns. None is empty. Those without
    /// a following step of the thread end with the last step.
    pub intervals: Vec<(u32, Doing, u64, u64)>,
}

impl Schedule {
    /// Makes a schedule of about this many steps.
    pub fn random(seed: u64, steps: usize) -> Self {
        let mut random = Random::new(seed);
        let mut random = move |below| random.below(below);
        let mut schedule = Schedule::default();
        // The activity of each thread and its start; none before its first step.
        let mut doing: BTreeMap<u32, (Doing, u64)> = BTreeMap::new();
        let mut processors = [0u32; 2];
        let mut time = 1_000;
        for _ in 0..steps {
            time += 1 + random(900);
            let thread = FIRST + random(THREADS.into()) as u32;
            let cpu = random(2) as usize;
            match doing.get(&thread).map(|it| it.0) {
                Some(Doing::Waiting) if random(2) == 0 => {
                    let (cpu, by) = (cpu as u32, processors[cpu]);
                    schedule.steps.push((time, Step::Wake { cpu, by, thread }));
                    schedule.next(&mut doing, thread, time, Doing::Ready);
                }
                Some(Doing::Ready) | None => {
                    let (from, preempted) = (processors[cpu], random(3) == 0);
                    let step = Step::Switch {
                        cpu: cpu as u32,
                        from,
                        preempted,
                        to: thread,
                    };
                    schedule.steps.push((time, step));
                    let left = match preempted {
                        true => Doing::Ready,
                        false => Doing::Waiting,
                    };
                    schedule.next(&mut doing, from, time, left);
                    schedule.next(&mut doing, thread, time, Doing::Running);
                    processors[cpu] = thread;
                }
                _ => {}
            }
        }
        let last = schedule.steps.last().map_or(0, |it| it.0);
        for thread in FIRST..FIRST + THREADS {
            schedule.next(&mut doing, thread, last, Doing::Ready);
        }
        schedule
    }

    fn next(
        &mut self,
        doing: &mut BTreeMap<u32, (Doing, u64)>,
        thread: u32,
        time: u64,
        next: Doing,
    ) {
        if thread == 0 {
            return;
        }
        if let Some((before, since)) = doing.insert(thread, (next, time))
            && time > since
        {
            self.intervals.push((thread, before, since, time - since));
        }
    }

    /// Returns the waits that another thread ended: waker, thread, start and length in ns.
    pub fn woken(&self) -> Vec<(u32, u32, u64, u64)> {
        let wakes = self.steps.iter().filter_map(|&(time, step)| match step {
            Step::Wake { by, thread, .. } => Some((thread, time, by)),
            Step::Switch { .. } => None,
        });
        let wait_of = |(thread, end, by): (u32, u64, u32)| {
            let mut waits = self.intervals.iter();
            let wait =
                waits.find(|it| it.0 == thread && it.1 == Doing::Waiting && it.2 + it.3 == end);
            wait.map(|it| (by, thread, it.2, it.3))
        };
        wakes.filter_map(wait_of).collect()
    }

    /// Returns the sum of a thread's intervals in ns: running, ready, waiting.
    pub fn times(&self) -> BTreeMap<u32, [u64; 3]> {
        let mut times: BTreeMap<u32, [u64; 3]> = BTreeMap::new();
        for &(thread, doing, _, ns) in &self.intervals {
            times.entry(thread).or_default()[doing as usize] += ns;
        }
        times
    }
}
