//! Samples with their stacks resolved.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::activity::Activity;
use crate::answers::Answers;
use crate::filter::Filter;
use crate::ids::ThreadIndex;
use crate::resolve::ALWAYS;
use crate::resolver::{ResolvedStack, Resolver};
use crate::samples::SampleClass;
use crate::symbol_source::SymbolSource;
use crate::terms::{SampleKind, Weight};
use crate::timeline::Timeline;

/// Samples of one thread with one resolved stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileEntry {
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: ResolvedStack,
    /// What the samples say of the thread.
    pub kind: SampleKind,
    /// What the thread did.
    pub activity: Activity,
    /// How many samples.
    pub samples: u64,
    /// The time in ns that those of them stand for of which it is known.
    pub time_ns: u64,
    /// How many of them have no such time.
    pub untimed: u64,
    /// Bytes that they stand for, such as those of allocations.
    pub bytes: u64,
    /// How many of them state bytes.
    pub sized: u64,
}

impl ProfileEntry {
    fn count(&mut self, weight: Weight) {
        self.samples += 1;
        match weight {
            Weight::Ns(ns) => self.time_ns = self.time_ns.saturating_add(ns),
            Weight::Bytes(bytes) => {
                self.bytes = self.bytes.saturating_add(bytes);
                self.sized += 1;
                self.untimed += 1;
            }
            _ => self.untimed += 1,
        }
    }
}

/// Samples, counted by thread, resolved stack and kind.
#[derive(Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The stacks, their frames, functions and binaries.
    pub resolver: Resolver,
    /// In no particular order.
    pub entries: Vec<ProfileEntry>,
    /// Distance of two samples in ns that was asked for, where it is known. What was achieved is in the entries.
    pub sample_interval_ns: Option<u64>,
    /// From the first sample to the last, ns since the trace began; empty without a sample.
    pub times: Range<u64>,
}

impl Profile {
    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.entries.iter().map(|e| e.samples).sum()
    }

    /// The time in ns that the samples stand for; `None` where that of any is unknown (rule 21).
    pub fn time_ns(&self) -> Option<u64> {
        let is_timed = self.entries.iter().all(|e| e.untimed == 0);
        let sum = |all: u64, e: &ProfileEntry| all.saturating_add(e.time_ns);
        is_timed.then(|| self.entries.iter().fold(0, sum))
    }
}

impl Timeline {
    /// Counts the samples that pass `filter` by resolved stack.
    pub fn profile(
        self: &Arc<Self>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Profile {
        let mut resolver = Resolver::new(self, symbols);
        resolver.prepare(filter);
        let passing = filter.classes(self);
        // For each class the answers so far; nearly always there is just one.
        let mut answers: Vec<Answers<usize>> = Vec::new();
        answers.resize_with(self.samples.classes().len(), Answers::default);
        let mut entries: Vec<ProfileEntry> = Vec::new();
        let mut index: FxHashMap<(ThreadIndex, ResolvedStack, SampleKind, Activity), usize> =
            FxHashMap::default();
        let activities = self.class_activities();
        let (mut first, mut last) = (u64::MAX, 0);
        for (class, time, weight) in self.weighed() {
            let at = class as usize;
            if !passing[at] || !filter.has_time(time) {
                continue;
            }
            (first, last) = (first.min(time), last.max(time));
            let time = time.min(ALWAYS.end - 1);
            if let Some((_, entry)) = answers[at].at(time) {
                entries[*entry].count(weight);
                continue;
            }
            let class = self.samples.classes()[at];
            let Some((stack, valid)) = resolver.resolve(&class, time) else {
                continue;
            };
            let entry = *index
                .entry((class.thread, stack, class.kind, activities[at]))
                .or_insert_with(|| {
                    entries.push(ProfileEntry {
                        thread: class.thread,
                        stack,
                        kind: class.kind,
                        activity: activities[at],
                        samples: 0,
                        time_ns: 0,
                        untimed: 0,
                        bytes: 0,
                        sized: 0,
                    });
                    entries.len() - 1
                });
            entries[entry].count(weight);
            answers[at].keep(time, valid, entry);
        }
        Profile {
            resolver,
            entries,
            sample_interval_ns: self.facts.sample_interval_ns,
            times: first.min(last)..last,
        }
    }

    /// Calls `each` for every sample that passes `filter`, in the order of time: (class, time in ns).
    pub fn for_each_sample(&self, filter: &Filter, mut each: impl FnMut(&SampleClass, u64)) {
        self.for_each_weighed_sample(filter, |class, time, _| each(class, time));
    }

    /// As [`Timeline::for_each_sample`], with what each sample stands for: of profilers' samples time, wherever it is known
    /// (rule 21).
    pub fn for_each_weighed_sample(
        &self,
        filter: &Filter,
        mut each: impl FnMut(&SampleClass, u64, Weight),
    ) {
        let passing = filter.classes(self);
        let mut samples: Vec<(u64, u32, Weight)> = self
            .weighed()
            .filter(|&(class, time, _)| passing[class as usize] && filter.has_time(time))
            .map(|(class, time, weight)| (time, class, weight))
            .collect();
        // Stable: samples of one time keep the order in which they came.
        samples.sort_by_key(|&(time, ..)| time);
        for (time, class, weight) in samples {
            let class = &self.samples.classes()[class as usize];
            each(class, time, weight);
        }
    }
}
