//! Samples with their stacks resolved.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::answers::Answers;
use crate::filter::Filter;
use crate::process::ThreadIndex;
use crate::resolve::ALWAYS;
use crate::resolver::{ResolvedStack, Resolver};
use crate::samples::{SampleClass, SampleKind, Weight};
use crate::symbol_source::SymbolSource;
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
    /// How many samples.
    pub samples: u64,
}

/// Samples, counted by thread, resolved stack and kind.
#[derive(Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The stacks, their frames, functions and binaries.
    pub resolver: Resolver,
    /// In no particular order.
    pub entries: Vec<ProfileEntry>,
    /// Distance of two samples in ns, where it is known.
    pub sample_interval_ns: Option<u64>,
}

impl Profile {
    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.entries.iter().map(|e| e.samples).sum()
    }

    /// Whether the samples say where processors were busy, and not just where threads stood.
    pub fn is_cpu(&self) -> bool {
        self.entries.iter().any(|e| e.kind == SampleKind::Cpu)
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
        let mut index: FxHashMap<(ThreadIndex, ResolvedStack, SampleKind), usize> =
            FxHashMap::default();
        for (class, time) in self.samples.iter() {
            let at = class as usize;
            if !passing[at] || !filter.has_time(time) {
                continue;
            }
            let time = time.min(ALWAYS.end - 1);
            if let Some((_, entry)) = answers[at].at(time) {
                entries[*entry].samples += 1;
                continue;
            }
            let class = self.samples.classes()[at];
            let Some((stack, valid)) = resolver.resolve(&class, time) else {
                continue;
            };
            let entry = *index
                .entry((class.thread, stack, class.kind))
                .or_insert_with(|| {
                    entries.push(ProfileEntry {
                        thread: class.thread,
                        stack,
                        kind: class.kind,
                        samples: 0,
                    });
                    entries.len() - 1
                });
            entries[entry].samples += 1;
            answers[at].keep(time, valid, entry);
        }
        Profile {
            resolver,
            entries,
            sample_interval_ns: self.facts.sample_interval_ns,
        }
    }

    /// Calls `each` for every sample that passes `filter`, in the order of time: (class, time in ns).
    pub fn for_each_sample(&self, filter: &Filter, mut each: impl FnMut(&SampleClass, u64)) {
        self.for_each_weighed_sample(filter, |class, time, _| each(class, time));
    }

    /// As [`Timeline::for_each_sample`], with what each sample stands for.
    pub fn for_each_weighed_sample(
        &self,
        filter: &Filter,
        mut each: impl FnMut(&SampleClass, u64, Weight),
    ) {
        let passing = filter.classes(self);
        let mut samples: Vec<(u64, u32, u32)> = self
            .samples
            .rows()
            .filter(|&(class, time, _)| passing[class as usize] && filter.has_time(time))
            .map(|(class, time, weight)| (time, class, weight))
            .collect();
        // Stable: samples of one time keep the order in which they came.
        samples.sort_by_key(|&(time, ..)| time);
        for (time, class, weight) in samples {
            let class = &self.samples.classes()[class as usize];
            each(class, time, self.samples.weight(weight));
        }
    }
}
