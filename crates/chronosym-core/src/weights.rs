//! The time that samples represent (rule 21).

use crate::samples::SampleClass;
use crate::terms::{SampleKind, Weight};
use crate::ticks::{Represents, Tick, TickCounter, WallTimes, Weigher, weigh_sorted};
use crate::timeline::Timeline;

/// A sample with its weight as logged: (class, time in ns, weight).
type Logged = (u32, u64, Weight);

impl Timeline {
    /// Returns all samples in order of arrival, with the time that each represents, if known:
    /// (class, time in ns, weight).
    pub(crate) fn weighed(&self) -> impl Iterator<Item = Logged> {
        match self.wall_times() {
            WallTimes::None => Weighed::Alone(self.logged()),
            WallTimes::Ticks(ticks) => Weighed::Ticks(Weigher::new(ticks, self.ticked())),
            WallTimes::Kept(times) => Weighed::Kept(self.ticked(), times.iter()),
        }
        .map(|(sample, represents)| self.weigh(sample, represents))
    }

    fn weigh(&self, (index, time, stated): Logged, represents: Represents) -> Logged {
        let class = &self.samples.classes()[index as usize];
        let weight = match represents {
            Represents::Ns(ns) => Weight::Ns(ns),
            Represents::Unknown => Weight::Unknown,
            Represents::NoTick if stated == Weight::One && class.kind == SampleKind::Cpu => {
                let period = self.facts.sample_interval_at(time);
                period.map_or(Weight::Unknown, Weight::Ns)
            }
            Represents::NoTick => stated,
        };
        (index, time, weight)
    }

    fn logged(&self) -> impl Iterator<Item = Logged> {
        let samples = self.samples.weighed();
        samples.map(|(class, time, change)| (class, time, self.samples.weight(change)))
    }

    /// Returns all samples with their ticks.
    fn ticked(&self) -> impl Iterator<Item = (Logged, Option<Tick>)> {
        // The process and thread of each class of wall-clock samples.
        let owner = |class: &SampleClass| {
            let process = || self.thread(class.thread).process.0;
            (class.kind.is_wall()).then(|| (process(), class.thread.0))
        };
        let owners: Vec<_> = self.samples.classes().iter().map(owner).collect();
        self.logged().map(move |sample @ (class, ns, weight)| {
            let owner = owners[class as usize].filter(|_| weight == Weight::One);
            let tick = owner.map(|(process, thread)| Tick {
                process,
                thread,
                ns,
                asked_for: self.facts.sample_interval_at(ns),
            });
            (sample, tick)
        })
    }

    fn wall_times(&self) -> &WallTimes {
        self.wall_times.get_or_init(|| {
            if !self.samples.classes().iter().any(|c| c.kind.is_wall()) {
                return WallTimes::None;
            }
            let mut counter = TickCounter::default();
            let mut ticks = self.ticked().filter_map(|(_, tick)| tick);
            if ticks.all(|tick| counter.count(tick)) {
                return WallTimes::Ticks(counter.finish());
            }
            WallTimes::Kept(weigh_sorted(self.ticked().filter_map(|(_, tick)| tick)))
        })
    }
}

/// The samples with their times.
enum Weighed<'t, A, I: Iterator<Item = (Logged, Option<Tick>)>> {
    Alone(A),
    Ticks(Weigher<'t, I, Logged>),
    Kept(I, std::slice::Iter<'t, Represents>),
}

impl<A, I> Iterator for Weighed<'_, A, I>
where
    A: Iterator<Item = Logged>,
    I: Iterator<Item = (Logged, Option<Tick>)>,
{
    type Item = (Logged, Represents);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Weighed::Alone(samples) => Some((samples.next()?, Represents::NoTick)),
            Weighed::Ticks(weigher) => weigher.next(),
            Weighed::Kept(samples, times) => {
                let (sample, tick) = samples.next()?;
                let represents = tick.and_then(|_| times.next());
                Some((sample, represents.copied().unwrap_or(Represents::NoTick)))
            }
        }
    }
}
