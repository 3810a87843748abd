//! Profiles: samples counted by resolved stack.

use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::activity::{Activity, ThreadActivity};
use crate::answers::Answers;
use crate::filter::{ActivityFilter, Filter};
use crate::ids::{ActivityIdIndex, EventTypeId, ThreadIndex};
use crate::resolve::ALWAYS;
use crate::resolver::{ResolvedStack, Resolver};
use crate::samples::{ClassIndex, SampleClass};
use crate::symbol_source::SymbolSource;
use crate::terms::{SampleKind, Weight};
use crate::timeline::Timeline;

/// The samples of one thread with one resolved stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileEntry {
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: ResolvedStack,
    /// The kind of samples.
    pub kind: SampleKind,
    /// The activity of the thread.
    pub activity: Activity,
    /// The activity that the thread carried, by the id that its events state
    /// ([`Options::activity_ids`](crate::Options::activity_ids)).
    pub activity_id: Option<ActivityIdIndex>,
    /// Number of samples.
    pub samples: u64,
    /// Sum of the times, in ns, of the samples whose time is known.
    pub time_ns: u64,
    /// Number of samples whose time is unknown.
    pub untimed: u64,
    /// Sum of the bytes, such as those of allocations.
    pub bytes: u64,
    /// Number of samples that state bytes.
    pub sized: u64,
    /// Sum of the events that a counter counted from one sample to the next: its periods.
    pub events: u64,
    /// Number of samples that state a period.
    pub counted: u64,
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
            Weight::Count(events) => {
                self.events = self.events.saturating_add(events);
                self.counted += 1;
                self.untimed += 1;
            }
            _ => self.untimed += 1,
        }
    }
}

/// A sample with its weight.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WeighedSample<'t> {
    /// The properties that it shares with other samples.
    pub class: &'t SampleClass,
    index: ClassIndex,
    /// ns since the trace began.
    pub time_ns: u64,
    /// For profiler samples a time, if known (rule 21).
    pub weight: Weight,
}

/// Samples, counted by thread, resolved stack and kind.
///
/// # Examples
///
/// ```
/// use chronosym_core::facts::{At, Method, Sample};
/// use chronosym_core::{Action, Filter, Options, Session};
///
/// let mut session = Session::new(Options::default());
/// let at = At::new(0).process(42).thread(7);
/// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
/// session.apply(at, Method::new(Action::Load, 2, 0x2000, 64).named("Ns.Type", "Main", ""));
/// for time in [100, 200] {
///     session.sample(at.at(time), &[0x1010, 0x2020], Sample::cpu());
/// }
///
/// let profile = session.finish().profile(&Filter::default(), None);
/// let [entry] = &profile.entries[..] else { panic!("several stacks") };
/// assert_eq!(entry.samples, 2);
/// let stack = profile.resolver.stack(entry.stack);
/// let names: Vec<_> = stack.map(|frame| profile.resolver.frame(frame).label()).collect();
/// assert_eq!(names, ["Ns.Type.Run", "Ns.Type.Main"]);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Profile {
    /// The stacks, their frames, functions and binaries.
    pub resolver: Resolver,
    /// In no particular order.
    pub entries: Vec<ProfileEntry>,
    /// The requested sampling interval in ns, if known. The actual interval follows from the
    /// entries.
    pub sample_interval_ns: Option<u64>,
    /// The unit of [`ProfileEntry::events`], such as `cycles`. `None` if there are none, or if they
    /// come from several counters, whose events cannot be added.
    pub counter: Option<Box<str>>,
    /// From the first sample to the last, ns since the trace began; empty without a sample.
    pub times: Range<u64>,
}

impl Profile {
    /// Returns the number of samples.
    pub fn samples(&self) -> u64 {
        self.entries.iter().map(|e| e.samples).sum()
    }

    /// Returns the time in ns that the samples represent; `None` if the time of any is unknown
    /// (rule 21).
    pub fn time_ns(&self) -> Option<u64> {
        let is_timed = self.entries.iter().all(|e| e.untimed == 0);
        let sum = |all: u64, e: &ProfileEntry| all.saturating_add(e.time_ns);
        is_timed.then(|| self.entries.iter().fold(0, sum))
    }
}

/// Where the resolved stacks of a sample are remembered: samples of one class and key share a slot.
struct Slot<K> {
    class: ClassIndex,
    slot: usize,
    activity_id: Option<ActivityIdIndex>,
    key: K,
}

impl Timeline {
    /// Counts the samples that pass `filter` by resolved stack.
    pub fn profile(
        self: &Arc<Self>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Profile {
        if !self.activity_ids.is_empty() {
            return self.profile_by(filter, symbols, |_, _| Some(())).0;
        }
        let passes = self.passing(filter);
        let samples = self
            .weighed()
            .filter(|&(class, time, _)| passes(class, time));
        self.profile_of(samples, true, self.resolver(filter, symbols))
    }

    /// Counts the samples that pass `filter` by resolved stack, separately for each key that
    /// `key_of` returns for their properties and time; samples without a key are left out. The
    /// second value has the key of each entry.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Sample};
    /// use chronosym_core::{Filter, Options, Session};
    /// # use std::sync::Arc;
    ///
    /// let mut session = Session::new(Options::default());
    /// for time in [100, 200, 300] {
    ///     session.sample(At::new(time).process(42).thread(7), &[0x1010], Sample::cpu());
    /// }
    ///
    /// let timeline = session.finish();
    /// let (profile, halves) =
    ///     timeline.profile_by(&Filter::default(), None, |_, time_ns| Some(time_ns >= 200));
    /// let samples: Vec<_> = profile.entries.iter().map(|entry| entry.samples).collect();
    /// assert_eq!((samples, halves), (vec![1, 2], vec![false, true]));
    /// ```
    pub fn profile_by<K: Copy + Eq + Hash>(
        self: &Arc<Self>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
        mut key_of: impl FnMut(&SampleClass, u64) -> Option<K>,
    ) -> (Profile, Vec<K>) {
        let passes = self.passing(filter);
        let mut slots: FxHashMap<_, usize> = FxHashMap::default();
        let samples = self.weighed().filter_map(|(class, time, weight)| {
            let of = &self.samples.classes()[class as usize];
            let key = match passes(class, time) {
                true => key_of(of, time)?,
                false => return None,
            };
            let activity_id = match self.activity_ids.is_empty() {
                true => None,
                false => self.activity_id_at(of.thread, time),
            };
            let next = slots.len();
            let slot = *slots.entry((class, activity_id, key)).or_insert(next);
            let slot = Slot {
                class,
                slot,
                activity_id,
                key,
            };
            Some((slot, time, weight))
        });
        self.profile_of_slots(samples, 0, true, self.resolver(filter, symbols))
    }

    /// Counts the wake-ups that ended the selected waits: the threads and stacks that called the
    /// scheduler, each with the length of the wait (rule 25). `filter` and `is_wanted` select waits;
    /// the latter by their resolved stacks.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::At;
    /// use chronosym_core::{Filter, Options, Session, ThreadSwitch};
    /// # use std::sync::Arc;
    /// # use chronosym_events::{EventKey, EventSchema, Provider};
    /// # let schema = EventSchema::new(EventKey::Named {
    /// #     provider: "sched".into(),
    /// #     name: "sched_switch".into(),
    /// # });
    ///
    /// let mut options = Options::default();
    /// options.switches = true;
    /// let mut session = Session::new(options);
    /// # let event = session.event_type(Arc::new(schema));
    /// let (waits, wakes) = (session.intern([0x1010].into_iter()), session.intern([0x2010].into_iter()));
    /// let at = At::new(100).process(42).thread(7);
    /// session.switch(at, ThreadSwitch::Block, waits.map(|stack| (event, stack)));
    /// let waker = at.at(900).thread(8);
    /// session.wake(at.at(900), |session| session.waker_class(waker, event, wakes));
    ///
    /// let wakers = session.finish().wakers(&Filter::default(), None, |_, _| true);
    /// assert_eq!(wakers.time_ns(), Some(800));
    /// ```
    pub fn wakers(
        self: &Arc<Self>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
        mut is_wanted: impl FnMut(&Resolver, ResolvedStack) -> bool,
    ) -> Profile {
        let mut waits = filter.clone();
        waits.activity = Some(ActivityFilter::Only(Activity::Blocked));
        let passes = self.passing(&waits);
        let mut resolver = self.resolver(&waits, symbols);
        let mut wakers = Vec::new();
        for wakeup in self.samples.wakeups() {
            if !passes(wakeup.wait, wakeup.start_ns) {
                continue;
            }
            let class = self.samples.classes()[wakeup.wait as usize];
            let stack = resolver.resolve(&class, wakeup.start_ns);
            if stack.is_some_and(|(stack, _)| is_wanted(&resolver, stack)) {
                let end_ns = wakeup.start_ns.saturating_add(wakeup.ns);
                wakers.push((wakeup.waker, end_ns, Weight::Ns(wakeup.ns)));
            }
        }
        self.profile_of(wakers.into_iter(), true, resolver)
    }

    /// Returns a test whether a sample passes a filter.
    fn passing(&self, filter: &Filter) -> impl Fn(ClassIndex, u64) -> bool + use<> {
        let (classes, filter) = (filter.classes(self), filter.clone());
        move |class, time| classes[class as usize] && filter.has_time(time)
    }

    fn resolver(
        self: &Arc<Self>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Resolver {
        let mut resolver = Resolver::new(self, symbols);
        resolver.prepare(filter);
        resolver
    }

    /// Counts the samples that pass `filter` by resolved stack, without determining the times,
    /// bytes and activities of the samples, which are unknown in all entries.
    pub fn counts(
        self: &Arc<Self>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Profile {
        let passes = self.passing(filter);
        let samples = self.samples.iter();
        let samples = samples.filter(|&(class, time)| passes(class, time));
        let samples = samples.map(|(class, time)| (class, time, Weight::Unknown));
        self.profile_of(samples, false, self.resolver(filter, symbols))
    }

    fn profile_of(
        self: &Arc<Self>,
        samples: impl Iterator<Item = (ClassIndex, u64, Weight)>,
        activities: bool,
        resolver: Resolver,
    ) -> Profile {
        let samples = samples.map(|(class, time, weight)| {
            let slot = Slot {
                class,
                slot: class as usize,
                activity_id: None,
                key: (),
            };
            (slot, time, weight)
        });
        let slots = self.samples.classes().len();
        self.profile_of_slots(samples, slots, activities, resolver)
            .0
    }

    /// Counts samples by stack and key. `slots` is the number of slots that are known.
    fn profile_of_slots<K: Copy + Eq + Hash>(
        self: &Arc<Self>,
        samples: impl Iterator<Item = (Slot<K>, u64, Weight)>,
        slots: usize,
        activities: bool,
        mut resolver: Resolver,
    ) -> (Profile, Vec<K>) {
        // The answers for each slot so far; nearly always one.
        let mut answers: Vec<Answers<usize>> = Vec::new();
        answers.resize_with(slots, Answers::default);
        let mut entries: Vec<ProfileEntry> = Vec::new();
        let mut keys: Vec<K> = Vec::new();
        let mut index: FxHashMap<_, usize> = FxHashMap::default();
        let activities = activities.then(|| self.class_activities());
        let activity = |class: usize| activities.map_or(Activity::Unknown, |of| of[class].activity);
        let (mut first, mut last) = (u64::MAX, 0);
        let mut counters: Vec<EventTypeId> = Vec::new();
        for (of, time, weight) in samples {
            let Slot {
                class,
                slot,
                activity_id,
                key,
            } = of;
            if slot >= answers.len() {
                answers.resize_with(slot + 1, Answers::default);
            }
            let at = class as usize;
            (first, last) = (first.min(time), last.max(time));
            let time = time.min(ALWAYS.end - 1);
            if let Some((_, entry)) = answers[slot].at(time) {
                entries[*entry].count(weight);
                continue;
            }
            let class = self.samples.classes()[at];
            if matches!(weight, Weight::Count(_)) && !counters.contains(&class.event) {
                counters.push(class.event);
            }
            let Some((stack, valid)) = resolver.resolve(&class, time) else {
                continue;
            };
            let entry = *index
                .entry((
                    (class.thread, stack, class.kind, activity(at)),
                    (activity_id, key),
                ))
                .or_insert_with(|| {
                    keys.push(key);
                    entries.push(ProfileEntry {
                        thread: class.thread,
                        stack,
                        kind: class.kind,
                        activity: activity(at),
                        activity_id,
                        samples: 0,
                        time_ns: 0,
                        untimed: 0,
                        bytes: 0,
                        sized: 0,
                        events: 0,
                        counted: 0,
                    });
                    entries.len() - 1
                });
            entries[entry].count(weight);
            answers[slot].keep(time, valid, entry);
        }
        resolver.drop_stack_cache();
        let profile = Profile {
            resolver,
            entries,
            sample_interval_ns: self.facts.sample_interval_ns,
            counter: match *counters.as_slice() {
                [] => None,
                [first, ..] => {
                    let counter = self.counter(first);
                    let is_same = |event: &EventTypeId| self.counter(*event) == counter;
                    counters.iter().all(is_same).then_some(counter).flatten()
                }
            },
            times: first.min(last)..last,
        };
        (profile, keys)
    }

    /// Returns the unit of a counter's events, such as `cycles`: its name without the processor's
    /// unit, since cores of two kinds count `cpu_core/cycles/` and `cpu_atom/cycles/`.
    pub fn counter(&self, event: EventTypeId) -> Option<Box<str>> {
        let name = self.types.get(event.index())?.schema.name();
        let counter = name.split_once('/').map_or(&*name, |(_, counter)| counter);
        Some(counter.strip_suffix('/').unwrap_or(counter).into())
    }

    /// Calls `each` for every sample that passes `filter`, in time order: (class, time in ns).
    pub fn for_each_sample(&self, filter: &Filter, mut each: impl FnMut(&SampleClass, u64)) {
        self.for_each_weighed_sample(filter, |sample| each(sample.class, sample.time_ns));
    }

    /// Calls `each` for every sample that passes `filter`, in time order, with its weight: for
    /// profiler samples a time, if known (rule 21).
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Sample};
    /// use chronosym_core::{Filter, Options, Session, Weight};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(100).process(42).thread(7);
    /// session.sample(at, &[0x1010], Sample::cpu().weighing(Weight::Ns(1_000_000)));
    ///
    /// let timeline = session.finish();
    /// let mut total = 0;
    /// timeline.for_each_weighed_sample(&Filter::default(), |sample| {
    ///     if let Weight::Ns(ns) = sample.weight {
    ///         total += ns;
    ///     }
    /// });
    /// assert_eq!(total, 1_000_000);
    /// ```
    pub fn for_each_weighed_sample(
        &self,
        filter: &Filter,
        mut each: impl FnMut(WeighedSample<'_>),
    ) {
        let passes = self.passing(filter);
        let samples = self.weighed();
        let samples = samples.filter(|&(class, time, _)| passes(class, time));
        let mut each = |(index, time_ns, weight): (ClassIndex, u64, Weight)| {
            each(WeighedSample {
                class: &self.samples.classes()[index as usize],
                index,
                time_ns,
                weight,
            });
        };
        let times = self.samples.iter();
        let times = times.filter_map(|(class, time)| passes(class, time).then_some(time));
        if times.is_sorted() {
            samples.for_each(each);
            return;
        }
        let mut samples: Vec<_> = samples.collect();
        // Stable: samples of one time keep their order of arrival.
        samples.sort_by_key(|&(_, time, _)| time);
        samples.into_iter().for_each(&mut each);
    }

    /// Returns the activity of a sample's thread, and its evidence (rule 22).
    pub fn activity(&self, sample: &WeighedSample<'_>) -> ThreadActivity {
        let activities = self.class_activities();
        let of_class = activities.get(sample.index as usize);
        of_class.copied().unwrap_or(ThreadActivity::UNKNOWN)
    }
}
