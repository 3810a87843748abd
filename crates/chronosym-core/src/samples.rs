//! The sample log. A sample takes a few bytes, so memory grows with the number of distinct stacks,
//! not with the size of the trace.

use std::borrow::Cow;
use std::hash::BuildHasher as _;
use std::ops::Range;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;

use crate::ids::{EventTypeId, StackId, ThreadIndex};
use crate::recording::TraceFacts;
use crate::sample_bytes;
use crate::spans::Spans;
use crate::stays::Stays;
use crate::terms::{SampleKind, Weight};
use crate::ticks::Tick;
use crate::window::Window;

/// The properties that samples of one kind, thread and stack share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SampleClass {
    /// The sampled thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: StackId,
    /// The event that carried the stack.
    pub event: EventTypeId,
    /// The kind of sample.
    pub kind: SampleKind,
    /// Whether the processor was idle.
    pub idle: bool,
    /// Whether CPU samples of a joined recording show the thread on a processor in the time that
    /// the sample represents.
    pub on_cpu: bool,
}

/// Index of a [`SampleClass`] in a [`SampleLog`], dense from 0.
pub type ClassIndex = u32;

/// Samples in order of arrival.
#[derive(Debug, Default)]
pub struct SampleLog {
    classes: Vec<SampleClass>,
    /// Positions in `classes`: few bytes each, since samples in random order miss the cache.
    index: HashTable<ClassIndex>,
    /// For each sample its class and the difference to the previous sample's time
    /// ([`sample_bytes`]).
    bytes: Vec<u8>,
    last_time: u64,
    /// Whether any sample in `bytes` is earlier than the one before it.
    is_unordered: bool,
    /// The samples in `bytes` of each class.
    spans: Spans,
    /// Changes of the weight: (position in `bytes`, weight from there on). The initial weight is
    /// one.
    weights: Vec<(usize, Weight)>,
    len: u64,
    /// Whether classes were added that may turn out to be equal to others.
    has_open_classes: bool,
    /// For each class in `bytes` the class that it was merged into.
    joined: Vec<ClassIndex>,
    /// If only samples of a time window are stored: data about the others.
    window: Option<Box<Window>>,
    /// The wake-ups that ended waits.
    wakeups: Vec<Wakeup>,
}

/// The wake-up that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wakeup {
    /// The class of the wait.
    pub wait: ClassIndex,
    /// The start of the wait, in ns since the trace began.
    pub start_ns: u64,
    /// Its length in ns.
    pub ns: u64,
    /// The class of the wake-up: the thread and stack that ended the wait.
    pub waker: ClassIndex,
}

impl SampleClass {
    /// Creates a class whose stack, and perhaps thread, are still unknown.
    pub fn open(
        thread: Option<ThreadIndex>,
        event: EventTypeId,
        kind: SampleKind,
        idle: bool,
    ) -> Self {
        SampleClass {
            thread: thread.unwrap_or(ThreadIndex(u32::MAX)),
            stack: StackId::PENDING,
            event,
            kind,
            idle,
            on_cpu: false,
        }
    }

    /// Returns whether the time of a sample of this weight follows from the samples around it.
    pub(crate) fn is_timed_by_ticks(&self, weight: Weight) -> bool {
        self.kind.is_wall() && weight == Weight::One
    }
}

impl SampleLog {
    /// Adds a sample of weight one; `time_ns` since the trace began.
    pub fn push(&mut self, class: SampleClass, time_ns: u64) {
        self.push_weighing(class, time_ns, Weight::One);
    }

    /// Adds a sample. A weight takes memory only if it differs from the previous sample's.
    pub fn push_weighing(&mut self, class: SampleClass, time_ns: u64, weight: Weight) {
        let class = self.class(class);
        self.log(class, time_ns, weight);
    }

    /// Returns the index of a class, which is added if it is new.
    pub(crate) fn class(&mut self, class: SampleClass) -> ClassIndex {
        intern(&mut self.index, &mut self.classes, class)
    }

    /// Returns the index of the class that differs from another in its stack only.
    #[inline]
    pub(crate) fn with_stack(&mut self, class: ClassIndex, stack: StackId) -> ClassIndex {
        let of = self.classes[class as usize];
        self.class(SampleClass { stack, ..of })
    }

    /// Stores only samples of a time window from now on.
    pub(crate) fn limit_to(&mut self, times: Range<u64>) {
        self.window = Some(Box::new(Window::new(times)));
    }

    /// Returns the time window, if only its samples are stored.
    pub(crate) fn window(&mut self) -> Option<&mut Window> {
        self.window.as_deref_mut()
    }

    /// Returns whether what is stored suffices for the samples of the time window.
    pub(crate) fn suffices(&self) -> bool {
        (self.window.as_ref()).is_none_or(|window| window.suffices)
    }

    /// Adds a sample of a tick to a log of a time window.
    pub(crate) fn log_tick(&mut self, class: ClassIndex, tick: Tick, facts: &TraceFacts) {
        let is_stored = self.window.as_mut().is_none_or(|window| {
            window.stays.add(class, tick.thread as usize, tick.ns);
            window.tick(tick, facts)
        });
        self.put(is_stored, class, tick.ns, Weight::One);
    }

    /// Returns the samples of each class, stored or not; none if they do not matter.
    pub(crate) fn stays(&self, matter: bool) -> Cow<'_, Stays> {
        if let Some(window) = &self.window {
            return Cow::Borrowed(&window.stays);
        }
        let mut stays = Stays::default();
        if matter {
            for (class, time) in self.iter() {
                stays.add(class, self.classes[class as usize].thread.index(), time);
            }
        }
        Cow::Owned(stays)
    }

    /// Returns the number of samples of each class, stored or not.
    pub fn counts(&self) -> Vec<u64> {
        let samples = |class| match &self.window {
            Some(window) => window.stays.of(class).samples,
            None => self.spans.samples(class),
        };
        (0..self.classes.len()).map(samples).collect()
    }

    /// Adds a class whose stack is still unknown.
    pub(crate) fn open_class(&mut self, class: SampleClass) -> ClassIndex {
        self.has_open_classes = true;
        self.classes.push(class);
        self.classes.len() as ClassIndex - 1
    }

    /// Returns a class added by [`SampleLog::open_class`].
    pub(crate) fn class_mut(&mut self, class: ClassIndex) -> &mut SampleClass {
        &mut self.classes[class as usize]
    }

    /// Merges classes that turned out equal, and drops those without a stack. No sample may follow.
    pub(crate) fn join_classes(&mut self) {
        if !self.has_open_classes {
            return;
        }
        self.index.clear();
        let mut kept = Vec::new();
        let mut joined = Vec::with_capacity(self.classes.len());
        for &class in &self.classes {
            if class.stack == StackId::PENDING {
                joined.push(ClassIndex::MAX);
                continue;
            }
            joined.push(intern(&mut self.index, &mut kept, class));
        }
        if kept.len() < self.classes.len() {
            let dropped = joined.contains(&ClassIndex::MAX);
            self.wakeups.retain_mut(|wakeup| {
                wakeup.wait = joined[wakeup.wait as usize];
                wakeup.waker = joined[wakeup.waker as usize];
                wakeup.wait != ClassIndex::MAX && wakeup.waker != ClassIndex::MAX
            });
            self.classes = kept;
            self.spans.join(&joined);
            self.joined = joined;
            if let Some(window) = &mut self.window {
                window.stays.join(&self.joined);
                let is_tick = |class: &SampleClass| class.kind.is_wall();
                window.suffices &= !self.classes.iter().any(is_tick);
            }
            if dropped {
                self.len = self.counts().iter().sum();
            }
        }
    }

    /// Records the wake-up that ended a wait.
    pub(crate) fn wakeup(&mut self, wakeup: Wakeup) {
        self.wakeups.push(wakeup);
    }

    /// Returns the wake-ups that ended waits.
    pub(crate) fn wakeups(&self) -> &[Wakeup] {
        &self.wakeups
    }

    /// Adds a sample of a class.
    #[inline]
    pub(crate) fn log(&mut self, class: ClassIndex, time_ns: u64, weight: Weight) {
        let is_stored = self.window.is_none() || self.is_inside(class, time_ns);
        self.put(is_stored, class, time_ns, weight);
    }

    #[cold]
    fn is_inside(&mut self, class: ClassIndex, time_ns: u64) -> bool {
        let Some(window) = &mut self.window else {
            return true;
        };
        match self.classes[class as usize] {
            SampleClass { stack, .. } if stack == StackId::PENDING => {
                window.stays.count(class);
            }
            SampleClass { thread, .. } => window.stays.add(class, thread.index(), time_ns),
        }
        window.has(time_ns)
    }

    #[inline]
    fn put(&mut self, is_stored: bool, class: ClassIndex, time_ns: u64, weight: Weight) {
        self.len += 1;
        if !is_stored {
            return;
        }
        if self.weights.last().map_or(Weight::One, |last| last.1) != weight {
            self.weights.push((self.bytes.len(), weight));
        }
        let difference = time_ns.wrapping_sub(self.last_time);
        sample_bytes::push(&mut self.bytes, class, difference);
        self.spans.add(class, time_ns);
        self.is_unordered |= time_ns < self.last_time;
        self.last_time = time_ns;
    }

    /// Returns the number and times of the stored samples of each class.
    pub(crate) fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Returns whether the samples arrived in the order of their times.
    pub(crate) fn is_in_time_order(&self) -> bool {
        !self.is_unordered
    }

    /// Returns the distinct classes.
    pub fn classes(&self) -> &[SampleClass] {
        &self.classes
    }

    /// Returns all samples in order of arrival: (class, time in ns since the trace began).
    pub fn iter(&self) -> impl Iterator<Item = (ClassIndex, u64)> {
        self.weighed().map(|(class, time, _)| (class, time))
    }

    /// Returns the weight after a number of changes.
    pub(crate) fn weight(&self, change: u32) -> Weight {
        let before = change.checked_sub(1).map(|at| self.weights[at as usize].1);
        before.unwrap_or_default()
    }

    /// Returns all samples with the number of weight changes up to each.
    pub(crate) fn weighed(&self) -> impl Iterator<Item = (ClassIndex, u64, u32)> {
        let mut rest = self.bytes.as_slice();
        let (mut time, mut changes) = (0u64, 0u32);
        let all = std::iter::from_fn(move || {
            let position = self.bytes.len() - rest.len();
            let next = self.weights.get(changes as usize);
            changes += u32::from(next.is_some_and(|next| next.0 == position));
            let (class, difference) = sample_bytes::take(&mut rest)?;
            time = time.wrapping_add(difference);
            let class = self.joined.get(class as usize).copied().unwrap_or(class);
            Some((class, time, changes))
        });
        all.filter(|&(class, ..)| class != ClassIndex::MAX)
    }

    /// Bytes of the logged samples without their classes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.weights.capacity() * size_of::<(usize, Weight)>()
    }

    /// Replaces weights: `weight` returns that of a sample of a class at a time, or `None` to keep
    /// it.
    pub(crate) fn reweigh(&mut self, mut weight: impl FnMut(&SampleClass, u64) -> Option<Weight>) {
        let mut weights: Vec<(usize, Weight)> = Vec::new();
        let (mut rest, mut time, mut changes) = (self.bytes.as_slice(), 0u64, 0u32);
        loop {
            let position = self.bytes.len() - rest.len();
            let next = self.weights.get(changes as usize);
            changes += u32::from(next.is_some_and(|next| next.0 == position));
            let Some((class, difference)) = sample_bytes::take(&mut rest) else {
                break;
            };
            time = time.wrapping_add(difference);
            let class = self.joined.get(class as usize).copied().unwrap_or(class);
            let of_class = self.classes.get(class as usize);
            let new = of_class.and_then(|class| weight(class, time));
            let new = new.unwrap_or_else(|| self.weight(changes));
            if weights.last().map_or(Weight::One, |last| last.1) != new {
                weights.push((position, new));
            }
        }
        self.weights = weights;
    }

    /// Marks samples, in order of arrival, as taken while their thread was on a processor.
    pub(crate) fn mark_on_cpu(&mut self, marks: impl Iterator<Item = bool>) {
        let mut marked = SampleLog::default();
        for ((class, time_ns, change), on_cpu) in self.weighed().zip(marks) {
            let class = SampleClass {
                on_cpu,
                ..self.classes[class as usize]
            };
            marked.push_weighing(class, time_ns, self.weight(change));
        }
        marked.wakeups = std::mem::take(&mut self.wakeups);
        for wakeup in &mut marked.wakeups {
            for class in [&mut wakeup.wait, &mut wakeup.waker] {
                let of = self.classes[*class as usize];
                *class = intern(&mut marked.index, &mut marked.classes, of);
            }
        }
        *self = marked;
    }

    /// Returns the number of samples, those outside of a time window among them.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Returns the index of a class, which is added if it is new.
fn intern(
    index: &mut HashTable<ClassIndex>,
    classes: &mut Vec<SampleClass>,
    class: SampleClass,
) -> ClassIndex {
    // Classes that differ in nothing else are few.
    let hash =
        |class: &SampleClass| FxBuildHasher.hash_one((class.thread, class.stack, class.event));
    let is_it = |&index: &ClassIndex| classes[index as usize] == class;
    let entry = index.entry(hash(&class), is_it, |&index| hash(&classes[index as usize]));
    match entry {
        Entry::Occupied(entry) => *entry.get(),
        Entry::Vacant(entry) => {
            let next = classes.len() as ClassIndex;
            classes.push(class);
            *entry.insert(next).get()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(stack: StackId) -> SampleClass {
        SampleClass {
            thread: ThreadIndex(0),
            stack,
            event: EventTypeId(0),
            kind: SampleKind::Cpu,
            idle: false,
            on_cpu: false,
        }
    }

    #[test]
    fn samples_round_trip() {
        let mut stacks = crate::stacks::StackTable::default();
        let a = class(stacks.intern([1].into_iter()).unwrap());
        let b = class(stacks.intern([2].into_iter()).unwrap());
        let mut log = SampleLog::default();
        let times = [5, 5, u64::MAX, 0, 1 << 40];
        for (i, &time) in times.iter().enumerate() {
            log.push(if i % 2 == 0 { a } else { b }, time);
        }
        assert_eq!(log.classes(), [a, b]);
        assert!(!log.is_in_time_order());
        let back: Vec<_> = log.iter().collect();
        assert_eq!(back, [(0, 5), (1, 5), (0, u64::MAX), (1, 0), (0, 1 << 40)]);
    }

    #[test]
    fn weights_take_memory_where_they_change() {
        let mut stacks = crate::stacks::StackTable::default();
        let class = class(stacks.intern([1].into_iter()).unwrap());
        let mut log = SampleLog::default();
        let weights = [Weight::One, Weight::Bytes(8), Weight::Bytes(8), Weight::One];
        for (time, &weight) in weights.iter().enumerate() {
            log.push_weighing(class, time as u64, weight);
        }
        assert!(log.is_in_time_order());
        assert!(log.weighed().map(|(.., at)| log.weight(at)).eq(weights));
        assert_eq!((log.classes().len(), log.weights.len()), (1, 2));
    }

    #[test]
    fn classes_that_turn_out_the_same_become_one() {
        let mut stacks = crate::stacks::StackTable::default();
        let stack = stacks.intern([1].into_iter()).unwrap();
        let other = stacks.intern([2].into_iter()).unwrap();
        let mut log = SampleLog::default();
        let opened: Vec<_> = (0..4)
            .map(|_| log.open_class(class(StackId::PENDING)))
            .collect();
        for (time, &class) in opened.iter().enumerate() {
            log.log(class, time as u64, Weight::One);
        }
        for (&opened, stack) in opened.iter().zip([stack, other, stack]) {
            log.class_mut(opened).stack = stack;
        }
        log.join_classes();
        assert_eq!(log.classes(), [class(stack), class(other)]);
        assert_eq!(log.len(), 3, "the one whose stack never came is gone");
        let back: Vec<_> = log.iter().collect();
        assert_eq!(back, [(0, 0), (1, 1), (0, 2)]);
    }
}
