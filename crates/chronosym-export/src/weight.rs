//! Weights of samples, and sums of them.

use chronosym_core::{FrameId, Profile, ProfileEntry, Weight};
use chronosym_types::closed_list;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::units;

closed_list! {
    /// The unit of a sample's weight.
    #[derive(Default)]
    WeightUnit {
        /// The number of samples.
        #[default]
        Samples = "samples",
        /// The time that samples represent, in ns; 0 if unknown.
        Time = "time",
        /// The bytes that events state.
        Bytes = "bytes",
        /// The events of a counter, such as cycles, that samples represent: their periods.
        Events = "events",
    }
}

impl WeightUnit {
    /// Returns time if that of all samples is known, bytes if all samples state them, events if all
    /// state periods of one counter, samples otherwise.
    pub fn of(profile: &Profile) -> Self {
        let mut entries = profile.entries.iter();
        let states_bytes = entries.all(|entry| entry.sized == entry.samples)
            && WeightUnit::Bytes.total(profile) > 0;
        match profile.time_ns() {
            Some(time) if time > 0 => WeightUnit::Time,
            _ if states_bytes => WeightUnit::Bytes,
            _ if counts_events(profile) => WeightUnit::Events,
            _ => WeightUnit::Samples,
        }
    }

    /// Returns the unit of two profiles if they have the same, samples otherwise.
    pub fn of_both(before: &Profile, after: &Profile) -> Self {
        match (WeightUnit::of(before), WeightUnit::of(after)) {
            (before, after) if before == after => before,
            _ => WeightUnit::Samples,
        }
    }

    /// Returns the weight of an entry.
    pub fn weight(self, entry: &ProfileEntry) -> u64 {
        match self {
            WeightUnit::Samples => entry.samples,
            WeightUnit::Time => entry.time_ns,
            WeightUnit::Bytes => entry.bytes,
            WeightUnit::Events => entry.events,
        }
    }

    /// Returns the unit and the weight of one sample.
    pub(crate) fn of_sample(weight: Weight) -> (Self, u64) {
        match weight {
            Weight::Ns(ns) => (WeightUnit::Time, ns),
            Weight::Bytes(bytes) => (WeightUnit::Bytes, bytes),
            Weight::Count(events) => (WeightUnit::Events, events),
            _ => (WeightUnit::Samples, 1),
        }
    }

    /// Returns the type and unit of weights in pprof and OTLP, in addition to the number of
    /// samples.
    pub(crate) fn sample_type(self) -> Option<(&'static str, &'static str)> {
        match self {
            WeightUnit::Time => Some(("time", "nanoseconds")),
            WeightUnit::Bytes => Some(("space", "bytes")),
            WeightUnit::Events => Some(("events", "count")),
            WeightUnit::Samples => None,
        }
    }

    /// Returns the weight of all entries.
    pub fn total(self, profile: &Profile) -> u64 {
        let add = |all: u64, entry| all.saturating_add(self.weight(entry));
        profile.entries.iter().fold(0, add)
    }

    /// Formats a weight for a column of its unit: ms, samples, bytes, or events with a prefix.
    pub fn show(self, weight: u64) -> String {
        match self {
            WeightUnit::Time => format!("{:.1}", weight as f64 / 1e6),
            WeightUnit::Events => units::show_rounded(weight),
            _ => weight.to_string(),
        }
    }

    /// Formats a weight with its unit and its percentage of the whole.
    pub(crate) fn amount(self, weight: u64, whole: u64) -> String {
        let share = weight as f64 * 100.0 / whole.max(1) as f64;
        match self {
            WeightUnit::Time => format!("{:.1} ms, {share:.1} %", weight as f64 / 1e6),
            WeightUnit::Bytes => format!("{weight} bytes, {share:.1} %"),
            WeightUnit::Events => format!("{weight} events, {share:.1} %"),
            WeightUnit::Samples => format!("{weight} samples, {share:.1} %"),
        }
    }

    /// Returns the width of such a column.
    pub(crate) fn width(self) -> usize {
        match self {
            WeightUnit::Samples | WeightUnit::Time => 9,
            WeightUnit::Bytes | WeightUnit::Events => 12,
        }
    }

    /// Returns the head of such a column.
    pub fn head(self, of: &str) -> String {
        let unit = match self {
            WeightUnit::Samples => return of.to_owned(),
            WeightUnit::Time => "ms",
            WeightUnit::Bytes => "bytes",
            WeightUnit::Events => "events",
        };
        format!("{of} {unit}").trim_start().to_owned()
    }
}

/// Returns whether all samples state periods of one counter.
fn counts_events(profile: &Profile) -> bool {
    let all = profile.entries.iter().all(|it| it.counted == it.samples);
    all && profile.counter.is_some() && WeightUnit::Events.total(profile) > 0
}

/// The sum of samples of a profile.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Amount {
    /// The number of samples.
    pub samples: u64,
    /// The time that they represent, in ns; `None` if that of any is unknown.
    pub time_ns: Option<u64>,
    /// The bytes that their events state; 0 if they state none.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// The events of a counter that they represent; 0 if they state none.
    #[serde(skip_serializing_if = "is_zero")]
    pub events: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Default for Amount {
    fn default() -> Self {
        Amount {
            samples: 0,
            time_ns: Some(0),
            bytes: 0,
            events: 0,
        }
    }
}

impl Amount {
    /// Returns the sum of all samples of a profile.
    pub fn all(profile: &Profile) -> Self {
        let mut all = Amount::default();
        profile.entries.iter().for_each(|entry| all.add(entry));
        all
    }

    /// Returns the sum of two amounts.
    pub(crate) fn plus(&self, other: &Amount) -> Amount {
        let times = self.time_ns.zip(other.time_ns);
        Amount {
            samples: self.samples + other.samples,
            time_ns: times.map(|(a, b)| a.saturating_add(b)),
            bytes: self.bytes.saturating_add(other.bytes),
            events: self.events.saturating_add(other.events),
        }
    }

    /// Adds the samples of an entry.
    pub(crate) fn add(&mut self, entry: &ProfileEntry) {
        self.samples += entry.samples;
        let time = self.time_ns.filter(|_| entry.untimed == 0);
        self.time_ns = time.map(|ns| ns.saturating_add(entry.time_ns));
        add(&mut self.bytes, entry.bytes);
        add(&mut self.events, entry.events);
    }

    /// Returns the weight in a unit.
    pub fn weight(&self, unit: WeightUnit) -> u64 {
        match unit {
            WeightUnit::Samples => self.samples,
            WeightUnit::Time => self.time_ns.unwrap_or(0),
            WeightUnit::Bytes => self.bytes,
            WeightUnit::Events => self.events,
        }
    }
}

/// Self and total of a function or other code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Samples whose leaf it is.
    #[serde(rename = "self")]
    pub own: Amount,
    /// Samples whose stack contains it, each counted once.
    pub total: Amount,
}

/// Returns self and total of each key; frames without a key are not counted.
pub(crate) fn tally(
    profile: &Profile,
    keys: usize,
    key: impl Fn(FrameId) -> Option<usize>,
) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); keys];
    // The last entry that contains each key, from 1: each sample counts once.
    let mut seen = vec![0; keys];
    for (entry, at) in profile.entries.iter().zip(1u64..) {
        for (depth, frame) in profile.resolver.stack(entry.stack).enumerate() {
            let Some(key) = key(frame) else {
                continue;
            };
            if depth == 0 {
                counts[key].own.add(entry);
            }
            if std::mem::replace(&mut seen[key], at) != at {
                counts[key].total.add(entry);
            }
        }
    }
    counts
}

/// Adds weights, whose sum a hostile trace may make overflow.
pub(crate) fn add(sum: &mut u64, weight: u64) {
    *sum = sum.saturating_add(weight);
}
