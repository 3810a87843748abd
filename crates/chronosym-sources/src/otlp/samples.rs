//! The thread of an OTLP sample, and its weight.

use std::borrow::Cow;

use chronosym_core::Weight;
use chronosym_otlp::{Attribute, AttributeValue, Profile, ValueType};

/// Process and thread of a sample, as its attributes and its resource state them.
#[derive(Clone, Debug, Default)]
pub(super) struct Owner<'p> {
    pub pid: Option<u32>,
    pub tid: Option<u64>,
    pub thread_name: Cow<'p, str>,
    pub process_name: Cow<'p, str>,
}

impl<'p> Owner<'p> {
    /// Adds attributes, which take precedence.
    pub fn with(mut self, attributes: impl Iterator<Item = Attribute<'p>>) -> Self {
        for Attribute { key, value } in attributes {
            match (&*key, value) {
                ("process.pid", AttributeValue::Int(pid)) => self.pid = pid.try_into().ok(),
                ("thread.id", AttributeValue::Int(tid)) => self.tid = tid.try_into().ok(),
                ("thread.name", AttributeValue::Text(name)) => self.thread_name = name,
                ("process.executable.name", AttributeValue::Text(name)) => self.process_name = name,
                ("service.name", AttributeValue::Text(name)) if self.process_name.is_empty() => {
                    self.process_name = name;
                }
                _ => {}
            }
        }
        self
    }
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Time, in so many ns each.
    Time(u64),
    Bytes,
    /// A number of samples.
    Samples,
    /// A number of other events.
    Events,
}

impl Unit {
    fn of(of: &ValueType<'_>) -> Self {
        match (&*of.unit, &*of.name) {
            ("nanoseconds" | "ns", _) => Unit::Time(1),
            ("microseconds" | "us", _) => Unit::Time(1_000),
            ("milliseconds" | "ms", _) => Unit::Time(1_000_000),
            ("seconds" | "s", _) => Unit::Time(1_000_000_000),
            ("bytes" | "By", _) => Unit::Bytes,
            (_, "samples" | "sample" | "events") => Unit::Samples,
            _ => Unit::Events,
        }
    }

    fn weight(self, value: u64) -> Weight {
        match self {
            Unit::Time(ns) => Weight::Ns(value.saturating_mul(ns)),
            Unit::Bytes => Weight::Bytes(value),
            Unit::Samples | Unit::Events => Weight::Count(value),
        }
    }
}

/// How the values of a profile become samples with weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    unit: Unit,
    /// What a second profile of the same samples measures.
    other: Option<Unit>,
    /// The time that each sample represents, in ns.
    pub period_ns: Option<u64>,
}

impl Measure {
    pub fn new(profile: &Profile<'_>, other: Option<&Profile<'_>>) -> Self {
        let period = match Unit::of(&profile.period_type()) {
            Unit::Time(ns) => Some(profile.period().saturating_mul(ns)),
            _ => None,
        };
        Measure {
            unit: Unit::of(&profile.sample_type()),
            other: other.map(|other| Unit::of(&other.sample_type())),
            period_ns: period.filter(|&ns| ns > 0),
        }
    }

    /// Returns the number of samples of a value without times.
    pub fn count(&self, value: u64) -> u64 {
        match self.unit {
            Unit::Samples => value,
            _ => 1,
        }
    }

    /// Returns the weight of one of `count` samples that share these values.
    pub fn weight(&self, value: u64, other: Option<u64>, (index, count): (u64, u64)) -> Weight {
        let share = |total: u64| {
            let rest = total.checked_rem(count).unwrap_or(0);
            total.checked_div(count).unwrap_or(0) + u64::from(index < rest)
        };
        match (self.other.zip(other), self.unit) {
            (Some((unit, total)), _) => unit.weight(share(total)),
            (None, Unit::Samples) => self.period_ns.map_or(Weight::Unknown, Weight::Ns),
            (None, unit) => unit.weight(value),
        }
    }
}

/// Returns whether a profile is of threads on processors.
pub(super) fn is_cpu(profile: &Profile<'_>) -> bool {
    let [sampled, period] = [profile.sample_type().name, profile.period_type().name];
    let names = ["samples", "sample", "cpu"];
    period == "cpu" || names.contains(&&*sampled)
}

/// Returns whether a profile has samples with times or sizes of the samples that another counts.
pub(super) fn measures_same(counted: &Profile<'_>, other: &Profile<'_>) -> bool {
    if Unit::of(&counted.sample_type()) != Unit::Samples
        || !matches!(Unit::of(&other.sample_type()), Unit::Time(_) | Unit::Bytes)
    {
        return false;
    }
    let (mut a, mut b) = (counted.samples(), other.samples());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) => {
                if a.stack != b.stack
                    || !a.attribute_indices().eq(b.attribute_indices())
                    || !a.times_unix_ns().eq(b.times_unix_ns())
                {
                    return false;
                }
            }
            _ => return false,
        }
    }
}
