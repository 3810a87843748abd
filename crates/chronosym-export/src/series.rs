//! Samples in the order of time, resolved and weighed: what every picture is made of.

use std::sync::Arc;

use chronosym::{
    Filter, ResolvedStack, Resolver, SampleKind, Shape, Shaper, SymbolSource, ThreadIndex,
    Timeline, Weight,
};
use rustc_hash::FxHashMap;

use crate::rows::Rows;

/// What weights are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Time: of each sample it is known.
    Nanoseconds,
    /// Bytes, such as those of allocations.
    Bytes,
    /// Each sample weighs one: what they stand for is not known of all.
    Samples,
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedSample {
    /// ns since the trace began.
    pub time_ns: u64,
    /// In the unit of the series.
    pub weight: u64,
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: ResolvedStack,
    /// What the sample says of the thread.
    pub kind: SampleKind,
}

/// The samples of one thread with one stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackTotal {
    pub thread: ThreadIndex,
    pub stack: ResolvedStack,
    pub samples: u64,
    pub weight: u64,
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
    /// What they weigh in.
    pub unit: Unit,
    /// Code without a name is apart by address, not by image.
    pub addresses: bool,
}

impl Series {
    /// The samples that pass `filter`, of stacks as `shape` makes them.
    pub fn new(
        timeline: &Arc<Timeline>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
        shape: &Shape,
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
            let (own, weight) = weigh(weight);
            if *unit.get_or_insert(own) != own {
                unit = Some(Unit::Samples);
            }
            samples.push(TimedSample {
                time_ns,
                weight,
                thread: class.thread,
                stack,
                kind: class.kind,
            });
        });
        let unit = unit.unwrap_or(Unit::Samples);
        if unit == Unit::Samples {
            samples.iter_mut().for_each(|sample| sample.weight = 1);
        }
        Series {
            resolver,
            samples,
            unit,
            addresses: false,
        }
    }

    /// The weight of all samples.
    pub fn total(&self) -> u64 {
        let weights = self.samples.iter().map(|sample| sample.weight);
        weights.fold(0, u64::saturating_add)
    }

    /// The samples of each thread by time; threads in the order in which they were first seen.
    pub(crate) fn by_thread(&self) -> Vec<(ThreadIndex, Vec<&TimedSample>)> {
        let mut index: FxHashMap<ThreadIndex, usize> = FxHashMap::default();
        let mut threads: Vec<(ThreadIndex, Vec<&TimedSample>)> = Vec::new();
        for sample in &self.samples {
            let at = *index.entry(sample.thread).or_insert_with(|| {
                threads.push((sample.thread, Vec::new()));
                threads.len() - 1
            });
            threads[at].1.push(sample);
        }
        threads
    }

    /// The samples by thread and stack, in the order in which they were first seen.
    pub(crate) fn stacks(&self) -> Vec<StackTotal> {
        let mut index: FxHashMap<(ThreadIndex, ResolvedStack), usize> = FxHashMap::default();
        let mut stacks: Vec<StackTotal> = Vec::new();
        for sample in &self.samples {
            let key = (sample.thread, sample.stack);
            let at = *index.entry(key).or_insert_with(|| {
                stacks.push(StackTotal {
                    thread: sample.thread,
                    stack: sample.stack,
                    samples: 0,
                    weight: 0,
                });
                stacks.len() - 1
            });
            stacks[at].samples += 1;
            stacks[at].weight = stacks[at].weight.saturating_add(sample.weight);
        }
        stacks
    }

    /// Which functions are one row.
    pub(crate) fn rows(&self) -> Rows {
        Rows::new(&self.resolver, self.addresses)
    }

    /// The text of each row.
    pub(crate) fn labels(&self, rows: &Rows) -> Vec<String> {
        let rows = rows.rows.iter();
        rows.map(|row| format!("{row}{}", row.signature)).collect()
    }

    /// What a process and one of its threads are called: `app (42)`, `worker (7)`.
    pub(crate) fn places(&self, thread: ThreadIndex) -> (String, String) {
        let timeline = self.resolver.timeline();
        let view = timeline.thread_view(thread);
        let process = view
            .as_ref()
            .and_then(|thread| timeline.process_view(thread.process));
        let process = process.map_or_else(|| "process".to_owned(), |process| process.label());
        let thread = view.map_or_else(
            || "thread".to_owned(),
            |thread| format!("{} ({})", thread.name.unwrap_or("thread"), thread.tid),
        );
        (process, thread)
    }

    /// What the samples are and weigh, in a few words.
    pub fn title(&self) -> String {
        let cpu = self.samples.iter().all(|s| s.kind == SampleKind::Cpu);
        let event = self.samples.iter().any(|s| s.kind == SampleKind::Event);
        let what = match (cpu, event) {
            (true, _) => "CPU samples",
            (_, true) => "event stacks",
            _ => "wall-clock samples",
        };
        let number = self.samples.len();
        match self.unit {
            Unit::Nanoseconds => format!("{number} {what}, {} ms", millis(self.total(), 1)),
            Unit::Bytes => format!("{number} {what}, {} bytes", self.total()),
            Unit::Samples => format!("{number} {what}"),
        }
    }
}

/// Milliseconds with this many digits after the point, cut off.
pub(crate) fn millis(ns: u64, digits: usize) -> String {
    let mut text = format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
    text.truncate(text.len() - (6 - digits));
    text
}

/// What a sample weighs, and in what.
fn weigh(weight: Weight) -> (Unit, u64) {
    match weight {
        Weight::Ns(ns) => (Unit::Nanoseconds, ns),
        Weight::Bytes(bytes) => (Unit::Bytes, bytes),
        _ => (Unit::Samples, 1),
    }
}
