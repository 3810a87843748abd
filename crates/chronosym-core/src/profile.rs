//! Profiles: samples counted by resolved stack.

use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::activity::{Activity, ThreadActivity};
use crate::filter::{ActivityFilter, Filter};
use crate::ids::{EventTypeId, ResolvedStack};
use crate::profile_entry::ProfileEntry;
use crate::resolver::Resolver;
use crate::sample_counter::{Counted, SampleCounter, Slot};
use crate::samples::{ClassIndex, SampleClass};
use crate::symbol_source::SymbolSource;
use crate::terms::Weight;
use crate::timeline::Timeline;

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
        self.profile_of(samples, self.resolver(filter, symbols))
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
        self.profile_of_slots(samples, 0, self.resolver(filter, symbols))
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
        self.profile_of(wakers.into_iter(), resolver)
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
        let slots = self.samples.classes().len();
        let mut resolver = self.resolver(filter, symbols);
        let resolve = |class: &SampleClass, time| resolver.resolve(class, time);
        let mut counter = SampleCounter::new(self, None, resolve, slots);
        let is_counted = filter.has_all_times() && counter.count_classes(|class| passes(class, 0));
        if !is_counted {
            let samples = self.samples.iter();
            for (class, time) in samples.filter(|&(class, time)| passes(class, time)) {
                counter.count(Slot::of(class), time, Weight::Unknown);
            }
        }
        let counted = counter.finish();
        self.profile_of_counted(counted, resolver).0
    }

    fn profile_of(
        self: &Arc<Self>,
        samples: impl Iterator<Item = (ClassIndex, u64, Weight)>,
        resolver: Resolver,
    ) -> Profile {
        let samples = samples.map(|(class, time, weight)| (Slot::of(class), time, weight));
        let slots = self.samples.classes().len();
        self.profile_of_slots(samples, slots, resolver).0
    }

    /// Counts samples by stack and key. `slots` is the number of slots that are known.
    fn profile_of_slots<K: Copy + Eq + Hash>(
        self: &Arc<Self>,
        samples: impl Iterator<Item = (Slot<K>, u64, Weight)>,
        slots: usize,
        mut resolver: Resolver,
    ) -> (Profile, Vec<K>) {
        let activities = Some(self.class_activities());
        let resolve = |class: &SampleClass, time| resolver.resolve(class, time);
        let mut counter = SampleCounter::new(self, activities, resolve, slots);
        for (of, time, weight) in samples {
            counter.count(of, time, weight);
        }
        let counted = counter.finish();
        self.profile_of_counted(counted, resolver)
    }

    fn profile_of_counted<K>(
        &self,
        counted: Counted<K>,
        mut resolver: Resolver,
    ) -> (Profile, Vec<K>) {
        resolver.drop_stack_cache();
        let counter = match *counted.counters.as_slice() {
            [] => None,
            [first, ..] => {
                let counter = self.counter(first);
                let is_same = |event: &EventTypeId| self.counter(*event) == counter;
                let all_same = counted.counters.iter().all(is_same);
                all_same.then_some(counter).flatten()
            }
        };
        let profile = Profile {
            resolver,
            entries: counted.entries,
            sample_interval_ns: self.facts.sample_interval_ns,
            counter,
            times: counted.times,
        };
        (profile, counted.keys)
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
        if self.samples.is_in_time_order() || times.is_sorted() {
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
