//! Counts samples by resolved stack.

use std::hash::Hash;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::activity::{Activity, ThreadActivity};
use crate::answers::Answers;
use crate::ids::{ActivityIdIndex, EventTypeId, ResolvedStack, ThreadIndex};
use crate::profile_entry::ProfileEntry;
use crate::resolve::ALWAYS;
use crate::samples::{ClassIndex, SampleClass};
use crate::terms::{SampleKind, Weight};
use crate::timeline::Timeline;

/// Where the resolved stacks of a sample are remembered: samples of one class and key share a slot.
#[derive(Clone, Copy)]
pub(crate) struct Slot<K> {
    pub class: ClassIndex,
    pub slot: usize,
    pub activity_id: Option<ActivityIdIndex>,
    pub key: K,
}

impl Slot<()> {
    /// Returns the slot of a class of samples without keys.
    pub fn of(class: ClassIndex) -> Self {
        Slot {
            class,
            slot: class as usize,
            activity_id: None,
            key: (),
        }
    }
}

/// What the samples of an entry have in common.
type EntryKey<K> = (
    (ThreadIndex, ResolvedStack, SampleKind, Activity),
    (Option<ActivityIdIndex>, K),
);

/// Counts samples by stack and key.
pub(crate) struct SampleCounter<'t, K, R> {
    timeline: &'t Timeline,
    activities: Option<&'t [ThreadActivity]>,
    /// Returns the resolved stack of a sample, and the times at which it is valid.
    resolve: R,
    /// The answers for each slot so far; nearly always one.
    answers: Vec<Answers<usize>>,
    index: FxHashMap<EntryKey<K>, usize>,
    /// The times of the first and the last sample.
    first: u64,
    last: u64,
    counted: Counted<K>,
}

/// The counted samples.
pub(crate) struct Counted<K> {
    pub entries: Vec<ProfileEntry>,
    /// The key of each entry.
    pub keys: Vec<K>,
    /// From the time of the first sample to that of the last.
    pub times: Range<u64>,
    /// The events of samples that state a period.
    pub counters: Vec<EventTypeId>,
}

impl<'t, K, R> SampleCounter<'t, K, R>
where
    K: Copy + Eq + Hash,
    R: FnMut(&SampleClass, u64) -> Option<(ResolvedStack, Range<u64>)>,
{
    /// Creates a counter. `slots` is the number of slots that are known.
    pub fn new(
        timeline: &'t Timeline,
        activities: Option<&'t [ThreadActivity]>,
        resolve: R,
        slots: usize,
    ) -> Self {
        let mut answers = Vec::new();
        answers.resize_with(slots, Answers::default);
        SampleCounter {
            timeline,
            activities,
            resolve,
            answers,
            index: FxHashMap::default(),
            first: u64::MAX,
            last: 0,
            counted: Counted {
                entries: Vec::new(),
                keys: Vec::new(),
                times: 0..0,
                counters: Vec::new(),
            },
        }
    }

    /// Counts a sample.
    #[inline]
    pub fn count(&mut self, of: Slot<K>, time: u64, weight: Weight) {
        if of.slot >= self.answers.len() {
            self.answers.resize_with(of.slot + 1, Answers::default);
        }
        (self.first, self.last) = (self.first.min(time), self.last.max(time));
        let time = time.min(ALWAYS.end - 1);
        let entry = match self.answers[of.slot].at(time) {
            Some((_, entry)) => Some(*entry),
            None => self.entry_of(of, time, weight).map(|(entry, _)| entry),
        };
        if let Some(entry) = entry {
            self.counted.entries[entry].count(weight);
        }
    }

    /// Returns the entry of a sample that has no answer yet, and the times at which it is valid.
    fn entry_of(&mut self, of: Slot<K>, time: u64, weight: Weight) -> Option<(usize, Range<u64>)> {
        let at = of.class as usize;
        let class = self.timeline.samples.classes()[at];
        let counters = &mut self.counted.counters;
        if matches!(weight, Weight::Count(_)) && !counters.contains(&class.event) {
            counters.push(class.event);
        }
        let (stack, valid) = (self.resolve)(&class, time)?;
        let activity = (self.activities).map_or(Activity::Unknown, |of| of[at].activity);
        let next = self.counted.entries.len();
        let entry = *self
            .index
            .entry((
                (class.thread, stack, class.kind, activity),
                (of.activity_id, of.key),
            ))
            .or_insert(next);
        if entry == next {
            self.counted.keys.push(of.key);
            self.counted.entries.push(ProfileEntry {
                thread: class.thread,
                stack,
                kind: class.kind,
                activity,
                activity_id: of.activity_id,
                samples: 0,
                time_ns: 0,
                untimed: 0,
                bytes: 0,
                sized: 0,
                events: 0,
                counted: 0,
            });
        }
        self.answers[of.slot].keep(time, valid.clone(), entry);
        Some((entry, valid))
    }

    /// Returns what was counted.
    pub fn finish(self) -> Counted<K> {
        Counted {
            times: self.first.min(self.last)..self.last,
            ..self.counted
        }
    }
}

impl<R> SampleCounter<'_, (), R>
where
    R: FnMut(&SampleClass, u64) -> Option<(ResolvedStack, Range<u64>)>,
{
    /// Counts all samples of the selected classes without their weights, class by class. Returns
    /// false if the stack of any class is not the same at all its times: then nothing is counted,
    /// and what is resolved is what the samples up to there resolve to, in their order.
    pub fn count_classes(&mut self, is_selected: impl Fn(ClassIndex) -> bool) -> bool {
        let timeline = self.timeline;
        for (class, span) in timeline.samples.spans().iter() {
            if !is_selected(class) {
                continue;
            }
            let first = span.first.min(ALWAYS.end - 1);
            match self.entry_of(Slot::of(class), first, Weight::Unknown) {
                Some((entry, valid)) if span.last < valid.end => {
                    let entry = &mut self.counted.entries[entry];
                    entry.samples += span.samples;
                    entry.untimed += span.samples;
                    self.first = self.first.min(span.first);
                    self.last = self.last.max(span.last);
                }
                _ => {
                    for entry in &mut self.counted.entries {
                        (entry.samples, entry.untimed) = (0, 0);
                    }
                    (self.first, self.last) = (u64::MAX, 0);
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::facts::{Action, At, Method, Sample};
    use crate::filter::Filter;
    use crate::profile::Profile;
    use crate::profile_entry::ProfileEntry;
    use crate::selection::Options;
    use crate::session::Session;
    use crate::timeline::Timeline;

    /// A timeline of one address at which bodies are loaded at some times, and its samples: (tid,
    /// depth, time).
    fn timeline(loads: &[u64], samples: &[(u64, usize, u64)]) -> Arc<Timeline> {
        let mut session = Session::new(Options::default());
        for (id, &time) in (1..).zip(loads) {
            let name = format!("Run{id}");
            let method = Method::new(Action::Load, id, 0x1000, 64).named("Ns.Type", &name, "");
            session.apply(At::new(time).process(1), method);
        }
        for &(tid, depth, time) in samples {
            let at = At::new(time).process(1).thread(tid);
            session.sample(at, &[0x1010, 0x9000, 0x9000][..depth], Sample::cpu());
        }
        session.finish()
    }

    fn rows(profile: &Profile) -> Vec<(u32, u64, u64, Vec<String>)> {
        let row = |entry: &ProfileEntry| {
            let frames = profile.resolver.stack(entry.stack);
            let names = frames.map(|frame| profile.resolver.frame(frame).label().to_string());
            (
                entry.thread.0,
                entry.samples,
                entry.untimed,
                names.collect(),
            )
        };
        profile.entries.iter().map(row).collect()
    }

    proptest::proptest! {
        #[test]
        fn counts_by_class_are_those_of_the_samples(
            mut loads in proptest::collection::vec(0..1_000_u64, 1..3),
            samples in proptest::collection::vec((1..3_u64, 1..4_usize, 0..1_000_u64), 0..30),
            in_order in proptest::bool::ANY,
        ) {
            loads.sort_unstable();
            let mut samples = samples;
            if in_order {
                samples.sort_by_key(|&(.., time)| time);
            }
            let timeline = timeline(&loads, &samples);
            let one_by_one = Filter {
                from_ns: Some(0),
                ..Filter::default()
            };
            let by_class = timeline.counts(&Filter::default(), None);
            let by_sample = timeline.counts(&one_by_one, None);
            proptest::prop_assert_eq!(rows(&by_class), rows(&by_sample));
            proptest::prop_assert_eq!(&by_class.times, &by_sample.times);
            let total = samples.len() as u64;
            proptest::prop_assert_eq!(rows(&by_class).iter().map(|row| row.1).sum::<u64>(), total);
        }
    }
}
