//! The time that samples stand for (rule 21).

use crate::samples::SampleClass;
use crate::terms::{SampleKind, Weight};
use crate::timeline::Timeline;

/// Sampling had paused where a gap is longer than this many usual ones…
const PAUSE_GAPS: u64 = 20;
/// …and than this, in ns.
const PAUSE_NS: u64 = 250_000_000;

/// Stands for a time that is not known.
const UNKNOWN: u64 = u64::MAX;

/// A wall-clock sample, and its place among all of them.
struct Seen {
    /// Its time; later the time that it stands for. Both in ns.
    ns: u64,
    thread: u32,
    place: u32,
}

/// Whether a sample's time follows from the samples around it.
fn is_timed_by_ticks(class: &SampleClass, weight: Weight) -> bool {
    let is_wall = matches!(
        class.kind,
        SampleKind::WallManaged | SampleKind::WallExternal
    );
    is_wall && weight == Weight::One
}

impl Timeline {
    /// All samples in the order in which they came, with the time that each stands for wherever that is known: (class, time in
    /// ns, weight).
    pub(crate) fn weighed(&self) -> impl Iterator<Item = (u32, u64, Weight)> {
        let mut timed = self.wall_times().iter();
        let classes = self.samples.classes();
        self.samples.rows().map(move |(index, time, change)| {
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

    /// Of each sample that ticks give a time, in the order in which they came, that time in ns.
    fn wall_times(&self) -> &[u64] {
        self.wall_times.get_or_init(|| {
            let classes = self.samples.classes();
            let rows = self.samples.rows().filter(|&(class, _, change)| {
                is_timed_by_ticks(&classes[class as usize], self.samples.weight(change))
            });
            // What comes after 2^32 samples has no time.
            let mut seen: Vec<Seen> = (0..=u32::MAX)
                .zip(rows)
                .map(|(place, (class, ns, _))| Seen {
                    ns,
                    thread: classes[class as usize].thread.0,
                    place,
                })
                .collect();
            let process = |thread: u32| self.processes.threads[thread as usize].process;
            seen.sort_unstable_by_key(|s| (process(s.thread), s.ns, s.place));
            let mut ticks = Ticks {
                next: vec![(0, 0); self.processes.threads.len()],
                ..Ticks::default()
            };
            let same = |a: &Seen, b: &Seen| process(a.thread) == process(b.thread);
            for of_process in seen.chunk_by_mut(same) {
                ticks.weigh(of_process, |time| self.facts.sample_interval_at(time));
            }
            seen.sort_unstable_by_key(|s| s.place);
            let mut times: Vec<u64> = seen.into_iter().map(|s| s.ns).collect();
            // They stand in the memory of what they were worked out from.
            times.shrink_to_fit();
            times
        })
    }
}

/// The ticks of one process after the other.
#[derive(Default)]
struct Ticks {
    /// Where each tick begins.
    begins: Vec<usize>,
    gaps: Vec<u64>,
    /// Of each thread, the tick in which it was met last, counted from 1, and when.
    next: Vec<(usize, u64)>,
}

impl Ticks {
    /// Puts in place of the time of each sample of a process, ordered by time, the time that it stands for.
    fn weigh(&mut self, seen: &mut [Seen], asked_for: impl Fn(u64) -> Option<u64>) {
        let begins = &mut self.begins;
        begins.clear();
        for at in 0..seen.len() {
            let Seen { ns, thread, .. } = seen[at];
            // A tick looks at each thread once, and at all of them without a pause.
            let comes_again = self.next[thread as usize].0 == begins.len();
            let paused = || {
                let pause = ns - seen[at - 1].ns;
                asked_for(ns).is_some_and(|interval| pause > interval / 2)
            };
            if comes_again || paused() {
                begins.push(at);
            }
            self.next[thread as usize].0 = begins.len();
        }
        for s in &*seen {
            self.next[s.thread as usize].0 = 0;
        }
        self.gaps.clear();
        let gap = |pair: &[usize]| seen[pair[1]].ns - seen[pair[0]].ns;
        self.gaps.extend(begins.windows(2).map(gap));
        let median = self.gaps.len() / 2;
        let Some(&mut usual) =
            (!self.gaps.is_empty()).then(|| self.gaps.select_nth_unstable(median).1)
        else {
            seen.iter_mut().for_each(|s| s.ns = UNKNOWN);
            return;
        };
        let pause = usual.saturating_mul(PAUSE_GAPS).max(PAUSE_NS);
        // From the last tick to the first: what follows is known then.
        let (mut end, mut next_begin) = (seen.len(), None);
        for (tick, &begin) in begins.iter().enumerate().rev() {
            let first = seen[begin].ns;
            for s in &mut seen[begin..end] {
                let next = &mut self.next[s.thread as usize];
                let until = match *next {
                    (of, ns) if of == tick + 2 => Some(ns),
                    _ => next_begin,
                };
                *next = (tick + 1, s.ns);
                let gap = until.map_or(usual, |until| until - s.ns);
                s.ns = if gap > pause { usual } else { gap };
            }
            (end, next_begin) = (begin, Some(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of (time in ms, thread) stands for, in ms.
    fn weigh(samples: &[(u64, u32)], asked_for: Option<u64>) -> Vec<Option<u64>> {
        let mut ticks = Ticks {
            next: vec![(0, 0); 8],
            ..Ticks::default()
        };
        let mut seen: Vec<Seen> = (0..)
            .zip(samples)
            .map(|(place, &(ms, thread))| Seen {
                ns: ms * 1_000_000,
                thread,
                place,
            })
            .collect();
        ticks.weigh(&mut seen, |_| asked_for.map(|ms| ms * 1_000_000));
        let ms = |s: &Seen| (s.ns != UNKNOWN).then_some(s.ns / 1_000_000);
        seen.iter().map(ms).collect()
    }

    #[test]
    fn rule_21_a_sample_lasts_to_the_threads_next_one_in_the_next_tick() {
        let samples = [(0, 1), (1, 2), (10, 1), (11, 2), (30, 1), (32, 2)];
        let found = weigh(&samples, Some(4));
        assert_eq!(found, [10, 10, 20, 21, 20, 20].map(Some));
    }

    #[test]
    fn rule_21_a_thread_that_a_tick_does_not_see_ends_where_it_begins() {
        // Thread 2 is gone at 10 and comes back at 20.
        let samples = [(0, 1), (1, 2), (10, 1), (20, 1), (21, 2), (30, 1)];
        let found = weigh(&samples, None);
        assert_eq!(found, [10, 9, 10, 10, 9, 10].map(Some));
    }

    #[test]
    fn rule_21_a_pause_ends_a_tick_in_which_no_thread_comes_again() {
        let found = weigh(&[(0, 1), (10, 2), (20, 3)], Some(10));
        assert_eq!(found, [10, 10, 10].map(Some));
    }

    #[test]
    fn rule_21_a_pause_of_the_sampler_is_nobodys_time() {
        let found = weigh(&[(0, 1), (10, 1), (20, 1), (2_000, 1), (2_010, 1)], None);
        assert_eq!(found, [10, 10, 10, 10, 10].map(Some));
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
