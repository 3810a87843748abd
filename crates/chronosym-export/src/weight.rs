//! What samples are counted in.

use chronosym_core::{FrameId, Profile, ProfileEntry, Weight};
use chronosym_types::closed_list;
use serde::Serialize;
use serde_with::skip_serializing_none;

closed_list! {
    /// What the weight of a sample is.
    #[derive(Default)]
    WeightUnit {
        /// One.
        #[default]
        Samples = "samples",
        /// The time that it stands for, ns; nothing where that is not known.
        Time = "time",
        /// The bytes that its event states.
        Bytes = "bytes",
    }
}

impl WeightUnit {
    /// Time where that of all samples is known, bytes where all of them state some, samples otherwise.
    pub fn of(profile: &Profile) -> Self {
        let mut entries = profile.entries.iter();
        let states_bytes = entries.all(|entry| entry.sized == entry.samples)
            && WeightUnit::Bytes.total(profile) > 0;
        match profile.time_ns() {
            Some(time) if time > 0 => WeightUnit::Time,
            _ if states_bytes => WeightUnit::Bytes,
            _ => WeightUnit::Samples,
        }
    }

    /// That of two profiles, if they have the same one; samples otherwise.
    pub fn of_both(before: &Profile, after: &Profile) -> Self {
        match (WeightUnit::of(before), WeightUnit::of(after)) {
            (before, after) if before == after => before,
            _ => WeightUnit::Samples,
        }
    }

    /// What an entry comes to.
    pub fn weight(self, entry: &ProfileEntry) -> u64 {
        match self {
            WeightUnit::Samples => entry.samples,
            WeightUnit::Time => entry.time_ns,
            WeightUnit::Bytes => entry.bytes,
        }
    }

    /// What one sample comes to, and in what.
    pub(crate) fn of_sample(weight: Weight) -> (Self, u64) {
        match weight {
            Weight::Ns(ns) => (WeightUnit::Time, ns),
            Weight::Bytes(bytes) => (WeightUnit::Bytes, bytes),
            _ => (WeightUnit::Samples, 1),
        }
    }

    /// The type and unit of weights in pprof and OTLP, beside the number of samples.
    pub(crate) fn sample_type(self) -> Option<(&'static str, &'static str)> {
        match self {
            WeightUnit::Time => Some(("time", "nanoseconds")),
            WeightUnit::Bytes => Some(("space", "bytes")),
            WeightUnit::Samples => None,
        }
    }

    /// What all entries come to.
    pub fn total(self, profile: &Profile) -> u64 {
        let add = |all: u64, entry| all.saturating_add(self.weight(entry));
        profile.entries.iter().fold(0, add)
    }

    /// A weight in a column of its unit: ms, samples or bytes.
    pub fn show(self, weight: u64) -> String {
        match self {
            WeightUnit::Time => format!("{:.1}", weight as f64 / 1e6),
            _ => weight.to_string(),
        }
    }

    /// A weight with its unit and its share of the whole, in words.
    pub(crate) fn amount(self, weight: u64, whole: u64) -> String {
        let share = weight as f64 * 100.0 / whole.max(1) as f64;
        match self {
            WeightUnit::Time => format!("{:.1} ms, {share:.1} %", weight as f64 / 1e6),
            WeightUnit::Bytes => format!("{weight} bytes, {share:.1} %"),
            WeightUnit::Samples => format!("{weight} samples, {share:.1} %"),
        }
    }

    /// What stands above such a column.
    pub fn head(self, of: &str) -> String {
        let unit = match self {
            WeightUnit::Samples => return of.to_owned(),
            WeightUnit::Time => "ms",
            WeightUnit::Bytes => "bytes",
        };
        format!("{of} {unit}").trim_start().to_owned()
    }
}

/// What some samples of a profile come to.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Amount {
    /// How many there are.
    pub samples: u64,
    /// The time that they stand for, ns; `None` where that of any is unknown.
    pub time_ns: Option<u64>,
    /// The bytes that their events state; 0 where they state none.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes: u64,
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
        }
    }
}

impl Amount {
    /// What all samples of a profile come to.
    pub fn all(profile: &Profile) -> Self {
        let mut all = Amount::default();
        profile.entries.iter().for_each(|entry| all.add(entry));
        all
    }

    /// Adds the samples of an entry.
    pub(crate) fn add(&mut self, entry: &ProfileEntry) {
        self.samples += entry.samples;
        let known = self.time_ns.filter(|_| entry.untimed == 0);
        self.time_ns = known.map(|ns| ns.saturating_add(entry.time_ns));
        add(&mut self.bytes, entry.bytes);
    }

    /// What they come to in a measure.
    pub fn weight(&self, unit: WeightUnit) -> u64 {
        match unit {
            WeightUnit::Samples => self.samples,
            WeightUnit::Time => self.time_ns.unwrap_or(0),
            WeightUnit::Bytes => self.bytes,
        }
    }
}

/// What the samples of a piece of code come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Those whose innermost frame it is.
    #[serde(rename = "self")]
    pub own: Amount,
    /// Those on whose stack it is, each counted once.
    pub total: Amount,
}

/// What the frames of each key come to; frames without a key do not count.
pub(crate) fn tally(
    profile: &Profile,
    keys: usize,
    key: impl Fn(FrameId) -> Option<usize>,
) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); keys];
    // The entry in which a key was seen last, counted from 1: each sample counts once.
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

/// Adds up what a hostile trace may state beyond all bounds.
pub(crate) fn add(sum: &mut u64, weight: u64) {
    *sum = sum.saturating_add(weight);
}
