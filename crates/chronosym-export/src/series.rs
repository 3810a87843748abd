//! Samples in time order, resolved and weighted, for formats with a time axis.

use std::ops::Range;
use std::sync::Arc;

use crate::activities::ActivityRoots;
use crate::async_chains::AsyncStacks;
use crate::shape::{Shape, Shaper};
use chronosym_core::{
    Activity, EventTypeId, Filter, ResolvedStack, Resolver, SampleKind, SymbolSource, ThreadIndex,
    ThreadView, Timeline,
};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::function_groups::FunctionGroups;
use crate::header::title;
use crate::weight::{WeightUnit, add};

/// The level of detail of an output.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granularity {
    /// The threads of a process.
    pub threads: bool,
    /// Frames of one function, by source line. Formats with a field for lines have them anyway.
    pub lines: bool,
    /// Unnamed code by address, instead of by image.
    pub addresses: bool,
    /// Stacks by the activity that their thread carried, which is the outermost frame
    /// ([`Options::activity_ids`](chronosym_core::Options::activity_ids)).
    pub activities: bool,
}

impl Default for Granularity {
    fn default() -> Self {
        Granularity {
            threads: true,
            lines: false,
            addresses: false,
            activities: false,
        }
    }
}

/// A sample of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedSample {
    /// Time in ns from the start of the trace.
    pub time_ns: u64,
    /// The weight in the unit of the series.
    pub weight: u64,
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: ResolvedStack,
    /// The kind of the sample.
    pub kind: SampleKind,
    /// The activity of the thread.
    pub activity: Activity,
}

/// Samples in time order, with their resolved stacks and weights. Takes 32 bytes per sample, plus
/// the distinct stacks.
#[derive(Debug)]
#[non_exhaustive]
pub struct Series {
    /// The stacks, their frames, functions and binaries.
    pub resolver: Resolver,
    /// The samples by time.
    pub samples: Vec<TimedSample>,
    /// The unit of their weights: time if that of all is known, bytes or events if all state
    /// them, else samples.
    pub unit: WeightUnit,
    /// The level of detail.
    pub granularity: Granularity,
    /// The times that pass the filter, in ns from the start of the trace.
    pub times: Range<u64>,
}

/// The samples of one thread, or of all threads of a process.
pub(crate) struct Track<'s> {
    /// The thread, or one of them.
    pub thread: ThreadIndex,
    /// The samples by time.
    pub samples: Vec<&'s TimedSample>,
}

impl Series {
    /// Returns the samples that pass `filter`, with their stacks shaped by `shape`. Async methods are
    /// called by those that await them if `async_stacks` is given.
    pub fn new(
        timeline: &Arc<Timeline>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
        shape: &Shape,
        granularity: Granularity,
        mut async_stacks: Option<&mut AsyncStacks>,
    ) -> Self {
        let mut resolver = Resolver::new(timeline, symbols);
        resolver.prepare(filter);
        let (mut shaper, mut roots) = (Shaper::new(shape), ActivityRoots::default());
        let (mut samples, mut unit, mut last_counter) = (Vec::new(), None, None);
        let of_counter = |event: Option<EventTypeId>| timeline.counter(event?);
        timeline.for_each_weighed_sample(filter, |sample| {
            let (class, time_ns) = (sample.class, sample.time_ns);
            let resolver = &mut resolver;
            let stack = resolver.resolve(class, time_ns).map(|(stack, _)| stack);
            let stack = stack.and_then(|stack| match &mut async_stacks {
                Some(stacks) => stacks.stack(resolver, &sample, stack),
                None => Some(stack),
            });
            let Some(stack) = stack.and_then(|stack| shaper.shape(resolver, stack)) else {
                return;
            };
            let stack = match granularity.activities {
                true => {
                    let activity = timeline.activity_id_at(class.thread, time_ns);
                    roots.root(resolver, stack, activity)
                }
                false => stack,
            };
            let (own, weight) = WeightUnit::of_sample(sample.weight);
            let counter = (own == WeightUnit::Events).then_some(class.event);
            let is_other = *last_counter.get_or_insert(counter) != counter
                && last_counter.replace(counter).map(of_counter) != Some(of_counter(counter));
            if *unit.get_or_insert(own) != own || is_other {
                unit = Some(WeightUnit::Samples);
            }
            samples.push(TimedSample {
                time_ns,
                weight,
                thread: class.thread,
                stack,
                kind: class.kind,
                activity: timeline.activity(&sample).activity,
            });
        });
        let mut series = Series {
            resolver,
            samples,
            unit: unit.unwrap_or_default(),
            granularity,
            times: filter.from_ns.unwrap_or(0)..filter.to_ns.unwrap_or(u64::MAX),
        };
        // Numbers replace weights that are all 0.
        if series.unit == WeightUnit::Samples || series.total() == 0 {
            series.count_samples();
        }
        series
    }

    /// Replaces the weights by numbers of samples.
    pub fn count_samples(&mut self) {
        self.unit = WeightUnit::Samples;
        self.samples.iter_mut().for_each(|s| s.weight = 1);
    }

    /// Keeps the first of every `n` samples of each thread, with the weight of all `n`.
    pub fn thin(&mut self, n: u64) {
        if n <= 1 {
            return;
        }
        // Of each thread the sample that was kept last, and the number of those that it stands for.
        let mut kept: FxHashMap<ThreadIndex, (usize, u64)> = FxHashMap::default();
        let mut thinned: Vec<TimedSample> = Vec::new();
        for sample in self.samples.drain(..) {
            let (last, count) = kept.entry(sample.thread).or_insert((0, n));
            if *count < n {
                *count += 1;
                add(&mut thinned[*last].weight, sample.weight);
            } else {
                (*last, *count) = (thinned.len(), 1);
                thinned.push(sample);
            }
        }
        self.samples = thinned;
    }

    /// Returns the number of frames of all samples.
    pub fn frames(&self) -> u64 {
        let mut depths: Vec<u64> = Vec::with_capacity(self.resolver.stacks().len());
        for stack in self.resolver.stacks() {
            let caller = self.resolver.caller(stack);
            depths.push(1 + caller.map_or(0, |caller| depths[caller.index()]));
        }
        let depths = (self.samples.iter()).map(|sample| depths[sample.stack.index()]);
        depths.fold(0, u64::saturating_add)
    }

    /// Returns which frames of the resolver samples have.
    pub(crate) fn sampled_frames(&self) -> Vec<bool> {
        let resolver = &self.resolver;
        let mut stacks = vec![false; resolver.stacks().len()];
        let mut frames = vec![false; resolver.frames().len()];
        for sample in &self.samples {
            let mut next = Some(sample.stack);
            // The callers of a visited stack have been visited, too.
            while let Some(stack) = next
                && !std::mem::replace(&mut stacks[stack.index()], true)
            {
                frames[resolver.leaf(stack).index()] = true;
                next = resolver.caller(stack);
            }
        }
        frames
    }

    /// Returns the weight of all samples.
    pub fn total(&self) -> u64 {
        sum(self.samples.iter())
    }

    /// Returns the samples by time of each thread or, without threads, of each process, in the
    /// order of their first samples.
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

    /// Returns the groups of functions.
    pub(crate) fn groups(&self) -> FunctionGroups {
        FunctionGroups::new(&self.resolver, self.granularity.addresses)
    }

    /// Returns the label of each group.
    pub(crate) fn labels(&self, groups: &FunctionGroups) -> Vec<String> {
        let groups = groups.all.iter();
        groups
            .map(|group| format!("{group}{}", group.signature))
            .collect()
    }

    /// Returns the labels of a process and one of its threads: `app (42)` and `worker (7)` or,
    /// without threads, `all threads`.
    pub(crate) fn thread_labels(&self, thread: ThreadIndex) -> (String, String) {
        let (process, own) = thread_labels(self.resolver.timeline(), thread);
        let shown = if self.granularity.threads {
            own
        } else {
            "all threads".to_owned()
        };
        (process, shown)
    }

    /// Describes the samples in a few words.
    pub fn title(&self) -> String {
        let kinds = self.samples.iter().map(|sample| sample.kind);
        let count = self.samples.len() as u64;
        title(kinds, count, self.unit, self.total())
    }
}

/// Returns the gap between the time until which a sample's thread is known to have been in its
/// stack and the time from which it was seen again, if there is one: the thread had ended, was not
/// sampled, or was not on a processor. Sample times are not exact: differences up to half of a
/// weight are not gaps.
pub(crate) fn gap(until: u64, sample: &TimedSample, next: &TimedSample) -> Option<Range<u64>> {
    let is_gap = next.time_ns > until.saturating_add(sample.weight / 2);
    is_gap.then_some(until..next.time_ns)
}

/// Returns the weight of samples.
pub(crate) fn sum<'s>(samples: impl Iterator<Item = &'s TimedSample>) -> u64 {
    let mut sum = 0;
    samples.for_each(|sample| add(&mut sum, sample.weight));
    sum
}

/// Returns the label of a thread: `worker (7)`.
pub(crate) fn thread_label(thread: &ThreadView<'_>) -> String {
    format!("{} ({})", thread.name.unwrap_or("thread"), thread.tid)
}

/// Returns the labels of a process and one of its threads.
pub(crate) fn thread_labels(timeline: &Timeline, thread: ThreadIndex) -> (String, String) {
    let thread = timeline.thread_view(thread);
    let process = thread.as_ref();
    let process = process.and_then(|thread| timeline.process_view(thread.process));
    (
        process.map_or_else(|| "process".to_owned(), |process| process.label()),
        thread.map_or_else(|| "thread".to_owned(), |thread| thread_label(&thread)),
    )
}

/// Formats ns as milliseconds with six decimals.
pub(crate) fn millis(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}
