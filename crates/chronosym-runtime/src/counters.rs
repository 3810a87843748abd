//! EventCounters: values that EventSources publish at an interval.
//!
//! The payload is that of dotnet/runtime, `System/Diagnostics/Tracing/CounterPayload.cs`.

use std::collections::BTreeMap;

use chronosym_core::{EventSelector, Filter, Options, ProcessIndex, Timeline};
use chronosym_events::{EventSchema, FieldList, Value};

use crate::events::{RuntimeEvent, for_each_of, passes, text_of};
use crate::report::{COUNTERS, MAX_KEPT_BYTES};
use crate::unused::Unused;

/// The counters of a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Counters {
    /// By process, provider and name.
    pub counters: Vec<Counter>,
    /// Events that could not be used.
    pub unused: Unused,
}

/// A counter of one process.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Counter {
    /// The process.
    pub process: ProcessIndex,
    /// The EventSource, such as `System.Runtime`.
    pub provider: String,
    /// The name, such as `cpu-usage`.
    pub name: String,
    /// The name for people, such as `CPU Usage`.
    pub display_name: Option<String>,
    /// The unit, such as `%` or `MB`.
    pub unit: Option<String>,
    /// The meaning of the values.
    pub kind: CounterKind,
    /// In time order.
    pub values: Vec<CounterValue>,
}

/// The meaning of a counter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterKind {
    /// The mean of what was measured in the interval.
    Mean,
    /// The increase in the interval.
    Increment,
}

/// A value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CounterValue {
    /// When it was published, at the end of its interval; ns since the trace began.
    pub time_ns: u64,
    /// Length of the interval in seconds; 0 if unknown.
    pub interval_s: f64,
    /// The mean, or the increase.
    pub value: f64,
}

/// The provider of the runtime's own counters.
const SYSTEM_RUNTIME: &str = "System.Runtime";
const CPU_USAGE: &str = "cpu-usage";

/// Makes a session keep the events that [`Counters`] needs.
pub fn keep_counters(options: &mut Options) {
    options.keep.extend(EventSelector::parse(COUNTERS));
    options.max_kept_bytes = MAX_KEPT_BYTES;
}

impl Counters {
    /// Returns the share of all processors that a process used, in percent, if the runtime
    /// published it as `cpu-usage`.
    pub fn cpu_usage(&self, process: ProcessIndex) -> Option<f64> {
        self.of_runtime(process, CPU_USAGE)?.mean()
    }

    /// Returns the share of the time that a process spent in collections, in percent, if the runtime
    /// published it as `time-in-gc`.
    pub fn time_in_gc(&self, process: ProcessIndex) -> Option<f64> {
        self.of_runtime(process, "time-in-gc")?.mean()
    }

    /// Returns the largest number of threads of a process's thread pool, if the runtime published it
    /// as `threadpool-thread-count`.
    pub fn most_pool_threads(&self, process: ProcessIndex) -> Option<u64> {
        self.most(process, "threadpool-thread-count")
    }

    /// Returns the largest number of work items that waited for the thread pool of a process, if the
    /// runtime published it as `threadpool-queue-length`.
    pub fn longest_queue(&self, process: ProcessIndex) -> Option<u64> {
        self.most(process, "threadpool-queue-length")
    }

    /// Returns a counter of `System.Runtime`.
    pub fn of_runtime(&self, process: ProcessIndex, name: &str) -> Option<&Counter> {
        let mut of_process = self.counters.iter().filter(|it| it.process == process);
        of_process.find(|it| (&*it.provider, &*it.name) == (SYSTEM_RUNTIME, name))
    }

    fn most(&self, process: ProcessIndex, name: &str) -> Option<u64> {
        let (_, most) = self.of_runtime(process, name)?.range()?;
        Some(most.max(0.0).round() as u64)
    }

    /// Reads the values that were published within a filter.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let mut unused = Unused::default();
        let mut all: BTreeMap<(ProcessIndex, String, String), Counter> = BTreeMap::new();
        let types = timeline.event_types();
        let id_of = |schema: &EventSchema| (schema.name() == COUNTERS).then_some(0);
        for_each_of(timeline, filter, id_of, &mut unused, |event, unused| {
            if !passes(filter, timeline, event.thread, event.time_ns) {
                return;
            }
            let schema = &types[event.event_type.index()].schema;
            let Some(read) = payload(event).and_then(Read::of) else {
                unused.incomplete += 1;
                return;
            };
            let provider = schema.provider_name().to_string();
            let key = (event.process, provider, read.name);
            let counter = all
                .entry(key)
                .or_insert_with_key(|(process, provider, name)| Counter {
                    process: *process,
                    provider: provider.clone(),
                    name: name.clone(),
                    display_name: read.display_name,
                    unit: read.unit,
                    kind: read.kind,
                    values: Vec::new(),
                });
            counter.values.push(CounterValue {
                time_ns: event.time_ns,
                interval_s: read.interval_s,
                value: read.value,
            });
        });
        Counters {
            counters: all.into_values().collect(),
            unused,
        }
    }
}

impl Counter {
    /// Returns whether it is the runtime's `cpu-usage`, a share of all processors in percent.
    pub fn is_cpu_usage(&self) -> bool {
        (&*self.provider, &*self.name) == (SYSTEM_RUNTIME, CPU_USAGE)
    }

    /// Returns the mean of the values, each weighted by its interval; for increments, the increase
    /// per second. `None` if no interval is known.
    ///
    /// The first `cpu-usage` of a process is left out: the runtime divides its processor time by
    /// the time since the machine started (`SystemNative_GetCpuUtilization`).
    pub fn mean(&self) -> Option<f64> {
        let first = usize::from(self.is_cpu_usage());
        let values = self.values.iter().skip(first);
        let known = values.filter(|it| it.interval_s > 0.0);
        let (sum, seconds) = known.fold((0.0, 0.0), |(sum, seconds), it| {
            let part = match self.kind {
                CounterKind::Mean => it.value * it.interval_s,
                CounterKind::Increment => it.value,
            };
            (sum + part, seconds + it.interval_s)
        });
        (seconds > 0.0).then(|| sum / seconds)
    }

    /// Returns the sum of the values: the increase of a counter of increments.
    pub fn sum(&self) -> f64 {
        self.values.iter().map(|it| it.value).sum()
    }

    /// Returns the lowest and the highest value; `None` without values.
    pub fn range(&self) -> Option<(f64, f64)> {
        let values = || self.values.iter().map(|it| it.value);
        Some((values().reduce(f64::min)?, values().reduce(f64::max)?))
    }
}

/// Returns the fields of a counter: `Payload`, in the unnamed argument of EventSource.Write.
fn payload<'e>(event: &'e RuntimeEvent<'_>) -> Option<&'e FieldList<'e>> {
    let mut fields = event.fields();
    // `{Payload={Name=…}}`: at most two levels above the fields.
    for _ in 0..3 {
        if fields.get("Name").is_some() {
            return Some(fields);
        }
        fields = fields.iter().find_map(|(_, value)| match value {
            Value::Object(inner) => Some(inner),
            _ => None,
        })?;
    }
    None
}

/// The fields of an event.
struct Read {
    name: String,
    display_name: Option<String>,
    unit: Option<String>,
    kind: CounterKind,
    interval_s: f64,
    value: f64,
}

impl Read {
    fn of(fields: &FieldList<'_>) -> Option<Self> {
        let text = |name| text_of(fields, name);
        let number = |name| match fields.get(name)? {
            Value::F64(n) => Some(*n).filter(|n| n.is_finite()),
            Value::F32(n) => Some(f64::from(*n)).filter(|n| n.is_finite()),
            _ => None,
        };
        let (kind, value) = match number("Increment") {
            Some(value) => (CounterKind::Increment, value),
            None => (CounterKind::Mean, number("Mean")?),
        };
        Some(Read {
            name: text("Name")?,
            display_name: text("DisplayName"),
            unit: text("DisplayUnits"),
            kind,
            interval_s: number("IntervalSec").unwrap_or(0.0).max(0.0),
            value,
        })
    }
}
