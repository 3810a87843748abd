//! Samples in the order of time, resolved and weighed: what pictures with a time axis are made of.

use std::ops::Range;
use std::sync::Arc;

use crate::shape::{Shape, Shaper};
use chronosym_core::{
    Filter, ResolvedStack, Resolver, SampleKind, SymbolSource, ThreadIndex, ThreadView, Timeline,
};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::function_groups::FunctionGroups;
use crate::header::title;
use crate::weight::{WeightUnit, add};

/// What pictures keep apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granularity {
    /// The threads of a process.
    pub threads: bool,
    /// Frames of one function by their source lines. What has a place for lines has them either way.
    pub lines: bool,
    /// Code without a name by address, not just by image.
    pub addresses: bool,
}

impl Default for Granularity {
    fn default() -> Self {
        Granularity {
            threads: true,
            lines: false,
            addresses: false,
        }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedSample {
    /// ns since the trace began.
    pub time_ns: u64,
    /// In the measure of the series.
    pub weight: u64,
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: ResolvedStack,
    /// What the sample says of the thread.
    pub kind: SampleKind,
}

/// Samples in the order of time, with their stacks resolved and what they weigh. Takes 32 bytes a sample beside the
/// distinct stacks.
#[derive(Debug)]
#[non_exhaustive]
pub struct Series {
    /// The stacks, their frames, functions and binaries.
    pub resolver: Resolver,
    /// By time.
    pub samples: Vec<TimedSample>,
    /// What they weigh: time if that of each is known, bytes if each states some, else one each.
    pub unit: WeightUnit,
    /// What is kept apart.
    pub granularity: Granularity,
    /// The times that the filter lets through, ns since the trace began.
    pub times: Range<u64>,
}

/// The samples of one thread, or of all threads of a process.
pub(crate) struct Track<'s> {
    /// The thread, or one of them.
    pub thread: ThreadIndex,
    /// By time.
    pub samples: Vec<&'s TimedSample>,
}

impl Series {
    /// The samples that pass `filter`, of stacks as `shape` makes them.
    pub fn new(
        timeline: &Arc<Timeline>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
        shape: &Shape,
        granularity: Granularity,
    ) -> Self {
        let mut resolver = Resolver::new(timeline, symbols);
        resolver.prepare(filter);
        let mut shaper = Shaper::new(shape);
        let (mut samples, mut unit) = (Vec::new(), None);
        timeline.for_each_weighed_sample(filter, |class, time_ns, weight| {
            let stack = resolver.resolve(class, time_ns).map(|(stack, _)| stack);
            let Some(stack) = stack.and_then(|stack| shaper.shape(&mut resolver, stack)) else {
                return;
            };
            let (own, weight) = WeightUnit::of_sample(weight);
            if *unit.get_or_insert(own) != own {
                unit = Some(WeightUnit::Samples);
            }
            samples.push(TimedSample {
                time_ns,
                weight,
                thread: class.thread,
                stack,
                kind: class.kind,
            });
        });
        let mut series = Series {
            resolver,
            samples,
            unit: unit.unwrap_or_default(),
            granularity,
            times: filter.from_ns.unwrap_or(0)..filter.to_ns.unwrap_or(u64::MAX),
        };
        // Where all of it is nothing, numbers say more.
        if series.unit == WeightUnit::Samples || series.total() == 0 {
            series.unit = WeightUnit::Samples;
            series.samples.iter_mut().for_each(|s| s.weight = 1);
        }
        series
    }

    /// The weight of all samples.
    pub fn total(&self) -> u64 {
        sum(self.samples.iter())
    }

    /// The samples by time of each thread, or process where threads are not apart; in the order in which they were first
    /// seen.
    pub(crate) fn tracks(&self) -> Vec<Track<'_>> {
        let timeline = self.resolver.timeline();
        let mut tracks: IndexMap<_, Track<'_>, FxBuildHasher> = IndexMap::default();
        for sample in &self.samples {
            let thread = sample.thread;
            let process = || timeline.thread_view(thread).map(|view| view.process);
            let key = (!self.granularity.threads).then(process).ok_or(thread);
            let track = tracks.entry(key);
            let samples = Vec::new();
            let track = track.or_insert_with(|| Track { thread, samples });
            track.samples.push(sample);
        }
        tracks.into_values().collect()
    }

    /// Which functions are one row.
    pub(crate) fn rows(&self) -> FunctionGroups {
        FunctionGroups::new(&self.resolver, self.granularity.addresses)
    }

    /// The text of each row.
    pub(crate) fn labels(&self, rows: &FunctionGroups) -> Vec<String> {
        let rows = rows.rows.iter();
        rows.map(|row| format!("{row}{}", row.signature)).collect()
    }

    /// What a process and one of its threads are called: `app (42)`, `worker (7)`; or what stands for all of its threads.
    pub(crate) fn places(&self, thread: ThreadIndex) -> (String, String) {
        let (process, own) = places(self.resolver.timeline(), thread);
        let shown = if self.granularity.threads {
            own
        } else {
            "all threads".to_owned()
        };
        (process, shown)
    }

    /// What the samples are and weigh, in a few words.
    pub fn title(&self) -> String {
        let kinds = self.samples.iter().map(|sample| sample.kind);
        let count = self.samples.len() as u64;
        title(kinds, count, self.unit, self.total())
    }
}

/// What samples weigh together.
pub(crate) fn sum<'s>(samples: impl Iterator<Item = &'s TimedSample>) -> u64 {
    let mut sum = 0;
    samples.for_each(|sample| add(&mut sum, sample.weight));
    sum
}

/// What a thread is called: `worker (7)`.
pub(crate) fn thread_label(thread: &ThreadView<'_>) -> String {
    format!("{} ({})", thread.name.unwrap_or("thread"), thread.tid)
}

/// What a process and one of its threads are called.
pub(crate) fn places(timeline: &Timeline, thread: ThreadIndex) -> (String, String) {
    let thread = timeline.thread_view(thread);
    let process = thread.as_ref();
    let process = process.and_then(|thread| timeline.process_view(thread.process));
    (
        process.map_or_else(|| "process".to_owned(), |process| process.label()),
        thread.map_or_else(|| "thread".to_owned(), |thread| thread_label(&thread)),
    )
}

/// Milliseconds to the ns.
pub(crate) fn millis(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}
