//! The ticks of wall-clock profilers, and the time that each of their samples represents (rule 21).
//!
//! Two passes over the samples, each in time order: [`TickCounter`] counts ticks and measures the
//! gaps between them, [`Weigher`] adds the time to each sample. Between them only gaps are kept.

use std::collections::VecDeque;
use std::ops::Range;

/// Sampling was paused if a gap is longer than this many usual gaps…
const PAUSE_GAPS: u64 = 20;
/// …and than this, in ns.
const PAUSE_NS: u64 = 250_000_000;

/// A wall-clock sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    pub process: u32,
    pub thread: u32,
    pub ns: u64,
    /// The requested interval, in ns.
    pub asked_for: Option<u64>,
}

/// The current tick of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    /// The number of ticks so far.
    ticks: u64,
    /// The time of its first sample, in ns.
    start: u64,
    /// The time of its latest sample, in ns.
    last: u64,
}

/// Numbers the ticks of each process, from 1.
#[derive(Clone, Debug, Default)]
struct Follower {
    processes: Vec<Current>,
    /// The last tick that sampled each thread; 0 for none.
    threads: Vec<u64>,
}

impl Follower {
    /// Takes the next sample of a process; returns the number of its tick, and for the first sample
    /// of a tick the time of the first one of the preceding tick.
    #[inline]
    fn follow(&mut self, sample: Tick) -> (u64, Option<u64>) {
        let current = at(&mut self.processes, sample.process);
        let thread = at(&mut self.threads, sample.thread);
        // A tick samples each thread once, and all of them without a pause.
        let comes_again = *thread == current.ticks;
        let paused = || {
            let pause = sample.ns.saturating_sub(current.last);
            (sample.asked_for).is_some_and(|interval| pause > interval / 2)
        };
        let mut before = None;
        if comes_again || paused() {
            before = Some(current.start);
            current.ticks += 1;
            current.start = sample.ns;
        }
        current.last = sample.ns;
        *thread = current.ticks;
        (current.ticks, before)
    }
}

/// The gaps between the ticks of a process, in ns: nearly all take four bytes.
#[derive(Debug, Default)]
struct Gaps {
    short: Vec<u32>,
    long: Vec<u64>,
}

impl Gaps {
    fn push(&mut self, gap: u64) {
        match u32::try_from(gap) {
            Ok(gap) => self.short.push(gap),
            Err(_) => self.long.push(gap),
        }
    }

    fn median(mut self) -> Option<u64> {
        let middle = (self.short.len() + self.long.len()) / 2;
        if middle < self.short.len() {
            return Some((*self.short.select_nth_unstable(middle).1).into());
        }
        let middle = middle - self.short.len();
        (middle < self.long.len()).then(|| *self.long.select_nth_unstable(middle).1)
    }
}

/// Counts the ticks of each process.
#[derive(Debug, Default)]
pub(crate) struct TickCounter {
    now: Follower,
    gaps: Vec<Gaps>,
    /// The number of samples of each process.
    samples: Vec<u64>,
}

impl TickCounter {
    /// Takes the next sample; returns false if it is earlier than the preceding one of its process.
    #[inline]
    pub fn count(&mut self, sample: Tick) -> bool {
        let last = self.now.processes.get(sample.process as usize);
        if last.is_some_and(|current| sample.ns < current.last) {
            return false;
        }
        let (tick, before) = self.now.follow(sample);
        if let Some(before) = before.filter(|_| tick > 1) {
            at(&mut self.gaps, sample.process).push(sample.ns - before);
        }
        *at(&mut self.samples, sample.process) += 1;
        true
    }

    /// Ends the count.
    pub fn finish(self) -> Ticks {
        Ticks {
            before: Follower::default(),
            usual: self.gaps.into_iter().map(Gaps::median).collect(),
            last: self.now.threads,
            samples: self.samples,
        }
    }
}

/// The ticks of all processes.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    /// The state before the first sample that is stored.
    before: Follower,
    /// The usual gap between the ticks of each process, in ns; `None` if it has one tick only.
    usual: Vec<Option<u64>>,
    /// The last tick that sampled each thread.
    last: Vec<u64>,
    /// The number of samples of each process that are stored.
    samples: Vec<u64>,
}

/// Counts the ticks of each process, and stores only those in a time window.
#[derive(Debug, Default)]
pub(crate) struct TickWindow {
    counter: TickCounter,
    before: Follower,
    /// The last tick of each process inside the window; 0 for none.
    last_inside: Vec<u64>,
    stored: Vec<u64>,
}

impl TickWindow {
    /// Takes the next sample; returns whether to store it. `None` if it is earlier than the
    /// preceding one of its process.
    pub fn count(&mut self, sample: Tick, times: &Range<u64>) -> Option<bool> {
        if !self.counter.count(sample) {
            return None;
        }
        let current = self.counter.now.processes[sample.process as usize];
        let last_inside = at(&mut self.last_inside, sample.process);
        if sample.ns < times.start {
            *at(&mut self.before.processes, sample.process) = current;
            *at(&mut self.before.threads, sample.thread) = current.ticks;
            return Some(false);
        }
        if times.contains(&sample.ns) {
            *last_inside = current.ticks;
        } else if *last_inside == 0 || current.ticks >= *last_inside + 2 {
            return Some(false);
        }
        *at(&mut self.stored, sample.process) += 1;
        Some(true)
    }

    /// Ends the count.
    pub fn finish(self) -> Ticks {
        Ticks {
            before: self.before,
            samples: self.stored,
            ..self.counter.finish()
        }
    }
}

/// A sample that waits for the next tick.
struct Pending<T> {
    sample: T,
    /// `None` if no tick determines its time.
    tick: Option<PendingTick>,
}

#[derive(Clone, Copy)]
struct PendingTick {
    process: u32,
    thread: u32,
    ns: u64,
    number: u64,
    /// The time to the thread's sample in the next tick, in ns.
    to_next: Option<u64>,
}

/// The time that a sample represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Represents {
    /// This time, in ns.
    Ns(u64),
    /// There is only one tick, which determines no time.
    Unknown,
    /// It is not a sample of a tick.
    NoTick,
}

/// The source of the times of wall-clock samples.
#[derive(Debug)]
pub(crate) enum WallTimes {
    /// There are no such samples.
    None,
    /// The ticks, sample by sample: those of each process arrived in time order.
    Ticks(Ticks),
    /// Stored times, in order of arrival.
    Kept(Vec<Represents>),
}

/// Adds to samples, in their order, the time that they represent. The samples of each process must
/// be the ones that were counted.
pub(crate) struct Weigher<'t, I, T> {
    samples: I,
    ticks: &'t Ticks,
    follower: Follower,
    /// The number of remaining samples of each process.
    left: Vec<u64>,
    /// For each process, the number of a tick, and the times at which that and later ones start.
    starts: Vec<(u64, VecDeque<u64>)>,
    pending: VecDeque<Pending<T>>,
    /// Number of samples that were pending before the first in `pending`.
    taken: u64,
    /// The number of the last sample of each thread.
    of_thread: Vec<u64>,
    has_ended: bool,
}

impl<'t, T, I: Iterator<Item = (T, Option<Tick>)>> Weigher<'t, I, T> {
    pub fn new(ticks: &'t Ticks, samples: I) -> Self {
        Weigher {
            samples,
            ticks,
            follower: ticks.before.clone(),
            left: ticks.samples.clone(),
            starts: Vec::new(),
            pending: VecDeque::new(),
            taken: 0,
            of_thread: Vec::new(),
            has_ended: false,
        }
    }

    fn take(&mut self, sample: T, tick: Option<Tick>) {
        let tick = tick.map(|tick| {
            let (number, starts) = self.follower.follow(tick);
            if starts.is_some() {
                let (first, starts) = at(&mut self.starts, tick.process);
                if starts.is_empty() {
                    *first = number;
                }
                starts.push_back(tick.ns);
            }
            let left = at(&mut self.left, tick.process);
            *left = left.saturating_sub(1);
            let own = self.taken + self.pending.len() as u64;
            let before = std::mem::replace(at(&mut self.of_thread, tick.thread), own);
            let before = before.checked_sub(self.taken);
            let before = before.and_then(|at| self.pending.get_mut(at as usize));
            if let Some(before) = before.and_then(|pending| pending.tick.as_mut())
                && (before.thread, before.number + 1) == (tick.thread, number)
            {
                before.to_next = Some(tick.ns - before.ns);
            }
            PendingTick {
                process: tick.process,
                thread: tick.thread,
                ns: tick.ns,
                number,
                to_next: None,
            }
        });
        self.pending.push_back(Pending { sample, tick });
    }

    /// Returns whether no later sample changes the time of a sample: the tick after the next has
    /// started.
    fn is_settled(&self, tick: &PendingTick) -> bool {
        self.has_ended
            || self.follower.processes[tick.process as usize].ticks >= tick.number + 2
            || self.left[tick.process as usize] == 0
    }

    fn represents(&mut self, tick: &PendingTick) -> Represents {
        let (first, starts) = at(&mut self.starts, tick.process);
        while *first < tick.number && starts.pop_front().is_some() {
            *first += 1;
        }
        let usual = self.ticks.usual.get(tick.process as usize);
        let Some(usual) = usual.copied().flatten() else {
            return Represents::Unknown;
        };
        let pause = usual.saturating_mul(PAUSE_GAPS).max(PAUSE_NS);
        // The start of the first tick may precede a window.
        let next_tick = (tick.number + 1).wrapping_sub(*first);
        let to_next_tick = starts.get(next_tick as usize);
        let to_next_tick = to_next_tick.map_or(usual, |start| start - tick.ns);
        let gap = match tick.to_next {
            Some(gap) => gap,
            // It may have ended at any time before the next tick, which can be late.
            None if self.ticks.last[tick.thread as usize] == tick.number => usual.min(to_next_tick),
            None => to_next_tick,
        };
        Represents::Ns(if gap > pause { usual } else { gap })
    }
}

impl<T, I: Iterator<Item = (T, Option<Tick>)>> Iterator for Weigher<'_, I, T> {
    type Item = (T, Represents);

    fn next(&mut self) -> Option<(T, Represents)> {
        loop {
            let first = self.pending.front();
            let is_settled = |pending: &Pending<T>| {
                (pending.tick.as_ref()).is_none_or(|tick| self.is_settled(tick))
            };
            if first.is_some_and(is_settled) {
                let Pending { sample, tick } = self.pending.pop_front()?;
                self.taken += 1;
                let represents = match tick {
                    Some(tick) => self.represents(&tick),
                    None => Represents::NoTick,
                };
                return Some((sample, represents));
            }
            match self.samples.next() {
                Some((sample, tick)) => self.take(sample, tick),
                None if self.pending.is_empty() => return None,
                None => self.has_ended = true,
            }
        }
    }
}

/// Returns what samples in any order represent.
pub(crate) fn weigh_sorted(samples: impl Iterator<Item = Tick>) -> Vec<Represents> {
    let mut sorted: Vec<(usize, Tick)> = samples.enumerate().collect();
    // Stable: samples of one time keep their order of arrival.
    sorted.sort_by_key(|(_, tick)| tick.ns);
    let mut counter = TickCounter::default();
    for &(_, tick) in &sorted {
        counter.count(tick);
    }
    let ticks = counter.finish();
    let mut times = vec![Represents::Unknown; sorted.len()];
    let sorted = sorted.into_iter().map(|(index, tick)| (index, Some(tick)));
    for (index, represents) in Weigher::new(&ticks, sorted) {
        times[index] = represents;
    }
    times
}

/// Returns an element, which is added if it does not exist.
#[inline]
fn at<T: Default>(all: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if index >= all.len() {
        all.resize_with(index + 1, T::default);
    }
    &mut all[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time that each of (time in ms, thread) represents, in ms.
    fn weigh(samples: &[(u64, u32)], asked_for: Option<u64>) -> Vec<Option<u64>> {
        let ticks = |&(ms, thread): &(u64, u32)| Tick {
            process: 0,
            thread,
            ns: ms * 1_000_000,
            asked_for: asked_for.map(|ms| ms * 1_000_000),
        };
        weigh_all(samples.iter().map(ticks))
    }

    fn weigh_all(samples: impl Iterator<Item = Tick> + Clone) -> Vec<Option<u64>> {
        let mut counter = TickCounter::default();
        samples
            .clone()
            .for_each(|tick| assert!(counter.count(tick)));
        let ticks = counter.finish();
        let samples = samples.map(|tick| ((), Some(tick)));
        let weighed = Weigher::new(&ticks, samples);
        weighed.map(|(_, represents)| ms(represents)).collect()
    }

    fn ms(represents: Represents) -> Option<u64> {
        match represents {
            Represents::Ns(ns) => Some(ns / 1_000_000),
            _ => None,
        }
    }

    #[test]
    fn rule_21_a_sample_lasts_to_the_threads_next_one_in_the_next_tick() {
        let samples = [(0, 1), (1, 2), (10, 1), (11, 2), (30, 1), (32, 2)];
        let times = weigh(&samples, Some(4));
        assert_eq!(times, [10, 10, 20, 21, 20, 20].map(Some));
    }

    #[test]
    fn rule_21_a_thread_missing_in_a_tick_ends_where_the_tick_starts() {
        // Thread 2 disappears at 10 and returns at 20.
        let samples = [(0, 1), (1, 2), (10, 1), (20, 1), (21, 2), (30, 1)];
        let times = weigh(&samples, None);
        assert_eq!(times, [10, 9, 10, 10, 9, 10].map(Some));
    }

    #[test]
    fn rule_21_a_late_tick_adds_no_time_to_an_ended_thread() {
        let samples = [(0, 1), (1, 2), (10, 1), (11, 2), (20, 1), (21, 2), (110, 1)];
        let times = weigh(&samples, None);
        assert_eq!(times, [10, 10, 10, 10, 90, 10, 10].map(Some));
    }

    #[test]
    fn rule_21_a_pause_ends_a_tick_without_repeated_threads() {
        let times = weigh(&[(0, 1), (10, 2), (20, 3)], Some(10));
        assert_eq!(times, [10, 10, 10].map(Some));
    }

    #[test]
    fn rule_21_a_pause_of_the_sampler_is_not_attributed() {
        let times = weigh(&[(0, 1), (10, 1), (20, 1), (2_000, 1), (2_010, 1)], None);
        assert_eq!(times, [10, 10, 10, 10, 10].map(Some));
        let slow = weigh(&[(0, 1), (100, 1), (200, 1), (2_000, 1)], None);
        assert_eq!(
            slow,
            [100, 100, 1_800, 100].map(Some),
            "a long gap is no pause yet"
        );
    }

    #[test]
    fn rule_21_a_single_tick_has_no_time() {
        assert_eq!(weigh(&[(5, 1), (5, 2)], Some(1)), [None, None]);
    }

    #[test]
    fn rule_21_the_order_of_arrival_does_not_matter() {
        let tick = |(ms, thread): (u64, u32)| Tick {
            process: 0,
            thread,
            ns: ms * 1_000_000,
            asked_for: None,
        };
        let samples = [(10, 1), (0, 1), (1, 2), (32, 2), (11, 2), (30, 1)];
        let times = weigh_sorted(samples.map(tick).into_iter());
        let expected = [20, 10, 10, 20, 21, 20].map(|ms| Represents::Ns(ms * 1_000_000));
        assert_eq!(times, expected);
    }

    #[test]
    fn samples_out_of_order_are_refused() {
        let mut counter = TickCounter::default();
        let tick = |process, ns| Tick {
            process,
            thread: process,
            ns,
            asked_for: None,
        };
        let samples = [tick(0, 5), tick(1, 3), tick(0, 4), tick(1, 3)];
        let counted = samples.map(|sample| counter.count(sample));
        assert_eq!(counted, [true, true, false, true]);
    }

    proptest::proptest! {
        #[test]
        fn rule_21_a_window_shows_the_same_times(
            gaps in proptest::collection::vec((0..5_u32, 0..3_u32, 0..4_usize), 0..60),
            asked_for in proptest::option::of(1..20_u64),
            window in (0..3_000_u64, 0..3_000_u64),
        ) {
            let samples = made_up(&gaps, asked_for);
            let times = window.0 * 1_000_000..(window.0 + window.1) * 1_000_000;
            let inside = samples.iter().zip(weigh_all(samples.iter().copied()));
            let inside = inside.filter(|(sample, _)| times.contains(&sample.ns));
            let inside: Vec<_> = inside.map(|(_, time)| time).collect();
            let mut window = TickWindow::default();
            let mut stored = samples.clone();
            stored.retain(|&sample| window.count(sample, &times).expect("in order"));
            let ticks = window.finish();
            let stored = stored.into_iter().map(|sample| (sample.ns, Some(sample)));
            let weighed = Weigher::new(&ticks, stored).filter(|(ns, _)| times.contains(ns));
            let weighed: Vec<_> = weighed.map(|(_, represents)| ms(represents)).collect();
            proptest::prop_assert_eq!(weighed, inside);
        }
    }

    /// Returns samples after gaps of (thread, process, gap).
    fn made_up(gaps: &[(u32, u32, usize)], asked_for: Option<u64>) -> Vec<Tick> {
        let mut ns = 0;
        let sample = |&(thread, process, gap): &(u32, u32, usize)| {
            ns += [0, 1, 9, 400][gap] * 1_000_000;
            Tick {
                process,
                // A thread belongs to one process.
                thread: process * 8 + thread,
                ns,
                asked_for: asked_for.map(|ms| ms * 1_000_000),
            }
        };
        gaps.iter().map(sample).collect()
    }

    /// Computes the times with all samples of a process in memory, from the last tick to the first.
    fn weigh_naively(samples: &[Tick]) -> Vec<Option<u64>> {
        let mut starts: Vec<usize> = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            let tick = starts.last().map_or(&[][..], |&start| &samples[start..at]);
            let comes_again = tick.iter().any(|other| other.thread == sample.thread);
            let pause = |interval| sample.ns - samples[at - 1].ns > interval / 2;
            if at == 0 || comes_again || sample.asked_for.is_some_and(pause) {
                starts.push(at);
            }
        }
        let mut gaps: Vec<u64> = starts
            .windows(2)
            .map(|pair| samples[pair[1]].ns - samples[pair[0]].ns)
            .collect();
        gaps.sort_unstable();
        let usual = gaps.get(gaps.len() / 2).copied();
        let represents = |(at, sample): (usize, &Tick)| {
            let usual = usual?;
            let next_tick = starts.partition_point(|&start| start <= at);
            let to_next_tick = starts
                .get(next_tick)
                .map_or(usual, |&start| samples[start].ns - sample.ns);
            let next = (at + 1..samples.len()).find(|&next| samples[next].thread == sample.thread);
            let gap = match next {
                None => usual.min(to_next_tick),
                Some(next) if starts.partition_point(|&start| start <= next) == next_tick + 1 => {
                    samples[next].ns - sample.ns
                }
                Some(_) => to_next_tick,
            };
            let is_pause = gap > (usual * PAUSE_GAPS).max(PAUSE_NS);
            Some(if is_pause { usual } else { gap } / 1_000_000)
        };
        samples.iter().enumerate().map(represents).collect()
    }

    proptest::proptest! {
        #[test]
        fn rule_21_as_with_all_samples_at_hand(
            gaps in proptest::collection::vec((0..5_u32, 0..3_u32, 0..4_usize), 0..60),
            asked_for in proptest::option::of(1..20_u64),
        ) {
            let samples = made_up(&gaps, asked_for);
            let times = weigh_all(samples.iter().copied());
            for process in 0..3 {
                let is_own = |sample: &Tick| sample.process == process;
                let own: Vec<Tick> = samples.iter().copied().filter(is_own).collect();
                let of_own = samples.iter().zip(&times).filter(|(sample, _)| is_own(sample));
                let of_own: Vec<_> = of_own.map(|(_, time)| *time).collect();
                proptest::prop_assert_eq!(of_own, weigh_naively(&own));
            }
        }
    }
}
