//! Samples and their stacks, batch by batch.

use std::collections::HashMap;
use std::sync::Arc;

use chronosym::{
    Activity, Filter, ResolvedStack, Resolver, SampleClass, SampleKind, ThreadActivity,
    ThreadIndex, Timeline, Weight,
};

use crate::arrow::{Array, Categories, Field, NONE};
use crate::columns::FrameColumns;

/// Rows of a batch.
pub const ROWS: usize = 1 << 16;

/// What is resolved of a timeline, and the columns of its frames: those of batches, and those of stacks.
pub struct Resolved {
    pub resolver: Resolver,
    pub table: FrameColumns,
    frames: FrameColumns,
    /// Stacks that samples have, in the order of their numbers.
    stacks: Vec<ResolvedStack>,
    numbers: HashMap<ResolvedStack, u32>,
}

/// A sample that is not resolved yet.
struct Sample {
    class: SampleClass,
    time_ns: u64,
    weight: Weight,
    activity: ThreadActivity,
}

impl Resolved {
    pub fn new(resolver: Resolver) -> Self {
        Resolved {
            resolver,
            table: FrameColumns::default(),
            frames: FrameColumns::default(),
            stacks: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// The number and the innermost frame of a sample's stack.
    fn stack_of(&mut self, class: &SampleClass, time_ns: u64) -> Option<(u32, u32)> {
        let (stack, _) = self.resolver.resolve(class, time_ns)?;
        let next = self.stacks.len() as u32;
        let number = *self.numbers.entry(stack).or_insert(next);
        if number == next {
            self.stacks.push(stack);
        }
        Some((number, self.resolver.leaf(stack).index() as u32))
    }

    /// Resolves the stacks of all samples, so that each has a number.
    pub fn resolve_all(&mut self) {
        let timeline = self.resolver.timeline().clone();
        timeline.for_each_sample(&Filter::default(), |class, time_ns| {
            self.stack_of(class, time_ns);
        });
        self.frames.add_frames(self.resolver.frames());
    }

    /// The columns of [`frames`](Self::frames).
    pub fn frame_fields() -> Field {
        let mut fields = vec![
            Field::u32("frame"),
            Field::u64("address"),
            Field::u64("offset").or_null(),
        ];
        fields.extend(FrameColumns::fields());
        Field::rows(fields)
    }

    /// A row for each frame from a number on; `None` after the last one.
    pub fn frames(&mut self, first: u32) -> Option<Array> {
        self.frames.add_frames(self.resolver.frames());
        let frames = self.resolver.frames();
        let last = frames.len().min(first as usize + ROWS) as u32;
        if first >= last {
            return None;
        }
        let numbers: Vec<u32> = (first..last).collect();
        let frames = &frames[first as usize..last as usize];
        let addresses = frames.iter().map(|it| it.address).collect();
        let offsets = frames
            .iter()
            .map(|it| it.offset.unwrap_or(u64::MAX))
            .collect();
        let mut columns = vec![
            Array::numbers(numbers.clone()),
            Array::numbers(addresses),
            Array::numbers_or_null::<u64>(offsets, u64::MAX),
        ];
        columns.extend(self.frames.rows(&numbers));
        Some(Array::rows(numbers.len(), columns))
    }

    /// The columns of [`stacks`](Self::stacks).
    pub fn stack_fields() -> Field {
        Field::rows(["stack", "depth", "frame"].map(Field::u32).into())
    }

    /// A row for each frame of the stacks from a number on, innermost first, and the number of the next stack; `None` after
    /// the last one.
    pub fn stacks(&self, mut stack: usize) -> Option<(Array, usize)> {
        let [mut numbers, mut depths, mut frames] = [Vec::new(), Vec::new(), Vec::new()];
        while numbers.len() < ROWS && stack < self.stacks.len() {
            for (depth, frame) in self.resolver.stack(self.stacks[stack]).enumerate() {
                numbers.push(stack as u32);
                depths.push(depth as u32);
                frames.push(frame.index() as u32);
            }
            stack += 1;
        }
        let rows = numbers.len();
        let columns = [numbers, depths, frames].map(Array::numbers);
        (rows > 0).then(|| (Array::rows(rows, columns.into()), stack))
    }
}

/// The samples of a timeline in time order.
pub struct Samples {
    timeline: Arc<Timeline>,
    /// The process id, if it is known, and the thread id of each thread so far.
    threads: HashMap<ThreadIndex, (u32, u64)>,
    samples: std::vec::IntoIter<Sample>,
    kinds: Categories,
    activities: Categories,
    events: Categories,
    /// The number of each event type in `events`.
    event_numbers: Vec<u32>,
}

impl Samples {
    /// Collects the samples, without their stacks.
    pub fn new(timeline: &Arc<Timeline>) -> Self {
        let mut samples = Vec::with_capacity(timeline.samples().len() as usize);
        timeline.for_each_weighed_sample(&Filter::default(), |sample| {
            samples.push(Sample {
                class: *sample.class,
                time_ns: sample.time_ns,
                weight: sample.weight,
                activity: timeline.activity(&sample),
            });
        });
        let mut events = Categories::default();
        let types = timeline.event_types().iter();
        let event_numbers = types.map(|it| events.number(&it.label())).collect();
        Samples {
            timeline: timeline.clone(),
            threads: HashMap::new(),
            samples: samples.into_iter(),
            kinds: Categories::of(SampleKind::ALL.map(SampleKind::as_str)),
            activities: Categories::of(Activity::ALL.map(Activity::as_str)),
            events,
            event_numbers,
        }
    }

    /// The columns of [`next`](Self::next).
    pub fn fields() -> Field {
        Field::rows(vec![
            Field::u64("time_ns"),
            Field::u32("pid").or_null(),
            Field::u64("thread"),
            Field::category("kind").or_null(),
            Field::category("event").or_null(),
            Field::category("activity").or_null(),
            Field::u64("weight_ns").or_null(),
            Field::u64("bytes").or_null(),
            Field::u64("events").or_null(),
            Field::u32("stack").or_null(),
            Field::category("module").or_null(),
            Field::category("method").or_null(),
        ])
    }

    /// The next samples; `None` after the last one.
    pub fn next(&mut self, resolved: &mut Resolved) -> Option<Array> {
        let rows = self.samples.len().min(ROWS);
        if rows == 0 {
            return None;
        }
        let column = || Vec::<u64>::with_capacity(rows);
        let [mut times, mut threads, mut weights, mut bytes, mut counts] =
            [column(), column(), column(), column(), column()];
        let column = || Vec::<u32>::with_capacity(rows);
        let [
            mut pids,
            mut kinds,
            mut events,
            mut activities,
            mut stacks,
            mut leaves,
        ] = [column(), column(), column(), column(), column(), column()];
        for sample in self.samples.by_ref().take(rows) {
            let class = &sample.class;
            let ids = self.threads.entry(class.thread);
            let (pid, thread) = *ids.or_insert_with(|| {
                let Some(thread) = self.timeline.thread_view(class.thread) else {
                    return (NONE, 0);
                };
                let process = self.timeline.process_view(thread.process);
                (process.and_then(|it| it.pid).unwrap_or(NONE), thread.tid)
            });
            let of = |wanted: fn(Weight) -> Option<u64>| wanted(sample.weight).unwrap_or(u64::MAX);
            times.push(sample.time_ns);
            threads.push(thread);
            pids.push(pid);
            kinds.push(class.kind as u32);
            events.push(
                self.event_numbers
                    .get(class.event.index())
                    .copied()
                    .unwrap_or(NONE),
            );
            activities.push(sample.activity.activity as u32);
            weights.push(of(|it| match it {
                Weight::Ns(ns) => Some(ns),
                _ => None,
            }));
            bytes.push(of(|it| match it {
                Weight::Bytes(bytes) => Some(bytes),
                _ => None,
            }));
            counts.push(of(|it| match it {
                Weight::Count(count) => Some(count),
                _ => None,
            }));
            let stack = resolved.stack_of(class, sample.time_ns);
            stacks.push(stack.map_or(NONE, |(stack, _)| stack));
            leaves.push(stack.map_or(NONE, |(_, leaf)| leaf));
        }
        resolved.frames.add_frames(resolved.resolver.frames());
        let [modules, methods] = resolved.frames.names(&leaves);
        let or_null = |values| Array::numbers_or_null(values, u64::MAX);
        let columns = vec![
            Array::numbers(times),
            Array::numbers_or_null(pids, NONE),
            Array::numbers(threads),
            self.kinds.column(kinds),
            self.events.column(events),
            self.activities.column(activities),
            or_null(weights),
            or_null(bytes),
            or_null(counts),
            Array::numbers_or_null(stacks, NONE),
            modules,
            methods,
        ];
        Some(Array::rows(rows, columns))
    }
}
