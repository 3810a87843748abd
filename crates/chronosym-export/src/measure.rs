//! What samples are counted in.

use chronosym::{Profile, ProfileEntry, Weight};

/// What the weight of a sample is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// One.
    #[default]
    Samples,
    /// The time that it stands for, ns; nothing where that is not known.
    Time,
    /// The bytes that its event states.
    Bytes,
}

impl Measure {
    /// Time where that of all samples is known, bytes where all of them state some, samples otherwise.
    pub fn of(profile: &Profile) -> Self {
        let mut entries = profile.entries.iter();
        let states_bytes =
            entries.all(|entry| entry.sized == entry.samples) && Measure::Bytes.total(profile) > 0;
        match profile.time_ns() {
            Some(time) if time > 0 => Measure::Time,
            _ if states_bytes => Measure::Bytes,
            _ => Measure::Samples,
        }
    }

    /// What an entry comes to.
    pub fn weight(self, entry: &ProfileEntry) -> u64 {
        match self {
            Measure::Samples => entry.samples,
            Measure::Time => entry.time_ns,
            Measure::Bytes => entry.bytes,
        }
    }

    /// What one sample comes to, and in what.
    pub(crate) fn of_sample(weight: Weight) -> (Self, u64) {
        match weight {
            Weight::Ns(ns) => (Measure::Time, ns),
            Weight::Bytes(bytes) => (Measure::Bytes, bytes),
            _ => (Measure::Samples, 1),
        }
    }

    /// The type and unit of weights in pprof and OTLP, beside the number of samples.
    pub(crate) fn sample_type(self) -> Option<(&'static str, &'static str)> {
        match self {
            Measure::Time => Some(("time", "nanoseconds")),
            Measure::Bytes => Some(("space", "bytes")),
            Measure::Samples => None,
        }
    }

    /// What all entries come to.
    pub fn total(self, profile: &Profile) -> u64 {
        let add = |all: u64, entry| all.saturating_add(self.weight(entry));
        profile.entries.iter().fold(0, add)
    }

    /// A weight in a column of its unit: ms, samples or bytes.
    pub(crate) fn show(self, weight: u64) -> String {
        match self {
            Measure::Time => format!("{:.1}", weight as f64 / 1e6),
            _ => weight.to_string(),
        }
    }

    /// A weight with its unit and its share of the whole, in words.
    pub(crate) fn amount(self, weight: u64, whole: u64) -> String {
        let share = weight as f64 * 100.0 / whole.max(1) as f64;
        match self {
            Measure::Time => format!("{:.1} ms, {share:.1} %", weight as f64 / 1e6),
            Measure::Bytes => format!("{weight} bytes, {share:.1} %"),
            Measure::Samples => format!("{weight} samples, {share:.1} %"),
        }
    }

    /// What stands above such a column.
    pub(crate) fn head(self, of: &str) -> String {
        match self {
            Measure::Samples => of.to_owned(),
            Measure::Time => format!("{of} ms"),
            Measure::Bytes => format!("{of} bytes"),
        }
    }
}

/// Adds up what a hostile trace may state beyond all bounds.
pub(crate) fn add(sum: &mut u64, weight: u64) {
    *sum = sum.saturating_add(weight);
}
