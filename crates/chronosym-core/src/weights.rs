//! The time that samples represent (rule 21).

use crate::ids::ProcessIndex;
use crate::samples::SampleClass;
use crate::terms::{SampleKind, Weight};
use crate::timeline::Timeline;

/// Sampling was paused if a gap is longer than this many usual gaps…
const PAUSE_GAPS: u64 = 20;
/// …and than this, in ns.
const PAUSE_NS: u64 = 250_000_000;

/// Marks an unknown time.
const UNKNOWN: u64 = u64::MAX;

/// A wall-clock sample, and its index among all of them.
struct Seen {
    /// Its time; later the time that it represents. Both in ns.
    ns: u64,
    thread: u32,
    index: u32,
}

/// Whether a sample's time follows from the samples around it.
fn is_timed_by_ticks(class: &SampleClass, weight: Weight) -> bool {
    class.kind.is_wall() && weight == Weight::One
}

impl Timeline {
    /// Returns all samples in order of arrival, with the time that each represents, if known:
    /// (class, time in ns, weight).
    pub(crate) fn weighed(&self) -> impl Iterator<Item = (u32, u64, Weight)> {
        let mut timed = self.wall_times().iter();
        let classes = self.samples.classes();
        self.samples.weighed().map(move |(index, time, change)| {
            let class = &classes[index as usize];
            let stated = self.samples.weight(change);
            let weight = if is_timed_by_ticks(class, stated) {
                let ns = timed.next().filter(|&&ns| ns != UNKNOWN);
                ns.map_or(Weight::Unknown, |&ns| Weight::Ns(ns))
            } else if stated == Weight::One && class.kind == SampleKind::Cpu {
                let period = self.facts.sample_interval_at(time);
                period.map_or(Weight::Unknown, Weight::Ns)
            } else {
                stated
            };
            (index, time, weight)
        })
    }

    /// The time of each wall-clock sample in order of arrival, in ns.
    fn wall_times(&self) -> &[u64] {
        self.wall_times.get_or_init(|| {
            let classes = self.samples.classes();
            let samples = self.samples.weighed().filter(|&(class, _, change)| {
                is_timed_by_ticks(&classes[class as usize], self.samples.weight(change))
            });
            // Samples beyond 2^32 have no time.
            let mut seen: Vec<Seen> = (0..=u32::MAX)
                .zip(samples)
                .map(|(index, (class, ns, _))| Seen {
                    ns,
                    thread: classes[class as usize].thread.0,
                    index,
                })
                .collect();
            let mut processes = vec![ProcessIndex(u32::MAX); self.processes.threads.end()];
            for (index, thread) in self.processes.threads.indexed() {
                processes[index] = thread.process;
            }
            let process = |thread: u32| processes[thread as usize];
            seen.sort_unstable_by_key(|s| (process(s.thread), s.ns, s.index));
            let mut ticks = Ticks {
                next: vec![(0, 0); self.processes.threads.end()],
                ..Ticks::default()
            };
            let same = |a: &Seen, b: &Seen| process(a.thread) == process(b.thread);
            for of_process in seen.chunk_by_mut(same) {
                ticks.weigh(of_process, |time| self.facts.sample_interval_at(time));
            }
            seen.sort_unstable_by_key(|s| s.index);
            let mut times: Vec<u64> = seen.into_iter().map(|s| s.ns).collect();
            // Reuses the memory of the samples.
            times.shrink_to_fit();
            times
        })
    }
}

/// The ticks of one process at a time.
#[derive(Default)]
struct Ticks {
    /// Index of the first sample of each tick.
    ticks: Vec<usize>,
    gaps: Vec<u64>,
    /// For each thread, the number of the last tick that sampled it, from 1, and its time.
    next: Vec<(usize, u64)>,
}

impl Ticks {
    /// Replaces the time of each sample of a process, ordered by time, by the time that it
    /// represents.
    fn weigh(&mut self, seen: &mut [Seen], asked_for: impl Fn(u64) -> Option<u64>) {
        let ticks = &mut self.ticks;
        ticks.clear();
        for at in 0..seen.len() {
            let Seen { ns, thread, .. } = seen[at];
            // A tick samples each thread once, and all of them without a pause.
            let comes_again = self.next[thread as usize].0 == ticks.len();
            let paused = || {
                let pause = ns - seen[at - 1].ns;
                asked_for(ns).is_some_and(|interval| pause > interval / 2)
            };
            if comes_again || paused() {
                ticks.push(at);
            }
            self.next[thread as usize].0 = ticks.len();
        }
        for s in &*seen {
            self.next[s.thread as usize].0 = 0;
        }
        self.gaps.clear();
        let gap = |pair: &[usize]| seen[pair[1]].ns - seen[pair[0]].ns;
        self.gaps.extend(ticks.windows(2).map(gap));
        let median = self.gaps.len() / 2;
        let Some(&mut usual) =
            (!self.gaps.is_empty()).then(|| self.gaps.select_nth_unstable(median).1)
        else {
            seen.iter_mut().for_each(|s| s.ns = UNKNOWN);
            return;
        };
        let pause = usual.saturating_mul(PAUSE_GAPS).max(PAUSE_NS);
        // From the last tick to the first, so that the next one is known.
        let (mut end, mut next_start) = (seen.len(), None);
        for (tick, &start) in ticks.iter().enumerate().rev() {
            let first = seen[start].ns;
            for s in &mut seen[start..end] {
                let next = &mut self.next[s.thread as usize];
                let to_next_tick = next_start.map_or(usual, |start| start - s.ns);
                let gap = match *next {
                    (of, ns) if of == tick + 2 => ns - s.ns,
                    // It may have ended at any time before the next tick, which can be late.
                    (0, _) => usual.min(to_next_tick),
                    _ => to_next_tick,
                };
                *next = (tick + 1, s.ns);
                s.ns = if gap > pause { usual } else { gap };
            }
            (end, next_start) = (start, Some(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time that each (time in ms, thread) represents, in ms.
    fn weigh(samples: &[(u64, u32)], asked_for: Option<u64>) -> Vec<Option<u64>> {
        let mut ticks = Ticks {
            next: vec![(0, 0); 8],
            ..Ticks::default()
        };
        let mut seen: Vec<Seen> = (0..)
            .zip(samples)
            .map(|(index, &(ms, thread))| Seen {
                ns: ms * 1_000_000,
                thread,
                index,
            })
            .collect();
        ticks.weigh(&mut seen, |_| asked_for.map(|ms| ms * 1_000_000));
        let ms = |s: &Seen| (s.ns != UNKNOWN).then_some(s.ns / 1_000_000);
        seen.iter().map(ms).collect()
    }

    #[test]
    fn rule_21_a_sample_lasts_to_the_threads_next_one_in_the_next_tick() {
        let samples = [(0, 1), (1, 2), (10, 1), (11, 2), (30, 1), (32, 2)];
        let times = weigh(&samples, Some(4));
        assert_eq!(times, [10, 10, 20, 21, 20, 20].map(Some));
    }

    #[test]
    fn rule_21_a_thread_that_a_tick_does_not_see_ends_where_it_begins() {
        // Thread 2 disappears at 10 and returns at 20.
        let samples = [(0, 1), (1, 2), (10, 1), (20, 1), (21, 2), (30, 1)];
        let times = weigh(&samples, None);
        assert_eq!(times, [10, 9, 10, 10, 9, 10].map(Some));
    }

    #[test]
    fn rule_21_a_late_tick_adds_no_time_to_a_thread_that_has_gone() {
        let samples = [(0, 1), (1, 2), (10, 1), (11, 2), (20, 1), (21, 2), (110, 1)];
        let times = weigh(&samples, None);
        assert_eq!(times, [10, 10, 10, 10, 90, 10, 10].map(Some));
    }

    #[test]
    fn rule_21_a_pause_ends_a_tick_in_which_no_thread_comes_again() {
        let times = weigh(&[(0, 1), (10, 2), (20, 3)], Some(10));
        assert_eq!(times, [10, 10, 10].map(Some));
    }

    #[test]
    fn rule_21_a_pause_of_the_sampler_is_nobodys_time() {
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
    fn rule_21_one_tick_alone_says_nothing_of_time() {
        assert_eq!(weigh(&[(5, 1), (5, 2)], Some(1)), [None, None]);
    }
}
