//! Names of the records of a perf.data, and the units of their samples.

use std::sync::Arc;

use chronosym_events::{EventKey, EventSchema, PointerSize, RawEvent};
use chronosym_perf::{Event, EventAttr, Record, event_type};
use chronosym_types::hash::HashMap;

use super::switches::Tracepoint;
use chronosym_core::{EventTypeId, SampleKind, Weight, facts};

/// Returns whether an event counts the processor's time in ns.
pub(super) fn is_clock(attr: &EventAttr) -> bool {
    attr.kind == event_type::SOFTWARE && attr.config <= 1
}

/// Returns whether samples of an event show where a processor was busy.
pub(super) fn is_profile(attr: &EventAttr) -> bool {
    is_clock(attr)
        || matches!(attr.kind, event_type::HARDWARE | event_type::RAW)
        || attr.kind >= event_type::FIRST_DYNAMIC
}

/// The meaning of an event's samples.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    pub event: EventTypeId,
    pub kind: SampleKind,
    pub is_clock: bool,
    /// Whether every event is recorded, not one of many.
    pub is_complete: bool,
    /// Its meaning for the scheduler.
    pub tracepoint: Option<Tracepoint>,
}

impl Counted {
    /// Returns a sample that represents `period` ns of a clock, or `period` events.
    pub fn sample(self, period: Option<u64>, idle: bool) -> facts::Sample {
        let weight = match (period, self.is_clock) {
            (Some(ns), true) => Weight::Ns(ns),
            (Some(events), false) => Weight::Count(events),
            (None, _) => Weight::One,
        };
        let mut sample = facts::Sample::new(self.kind).weighing(weight);
        sample.event = Some(self.event);
        sample.idle = idle;
        sample
    }
}

/// Returns the name of a record type.
pub(super) fn record_name(kind: u32) -> String {
    chronosym_perf::record_name(kind).map_or_else(|| kind.to_string(), str::to_owned)
}

/// Returns the schema of an event or a record type.
pub(super) fn schema(name: &str) -> Arc<EventSchema> {
    Arc::new(EventSchema::new(EventKey::Named {
        provider: "perf".into(),
        name: name.into(),
    }))
}

/// The schemas of a recording's records, built on first use.
#[derive(Debug, Default)]
pub(super) struct Schemas(HashMap<(u32, Option<usize>), Arc<EventSchema>>);

impl Schemas {
    /// Returns the schema of a record: samples are named after their event, others after their
    /// type.
    pub fn of(&mut self, record: &Record<'_>, attrs: &[EventAttr]) -> &Arc<EventSchema> {
        let is_sample = matches!(record.event, Event::Sample(_));
        let attr = record.attr.filter(|_| is_sample);
        let make = || match attr.and_then(|at| attrs.get(at)) {
            Some(attr) => schema(&event_name(attr)),
            None => schema(&record_name(record.kind)),
        };
        self.0.entry((record.kind, attr)).or_insert_with(make)
    }
}

/// Converts a record to an event without a payload, at a time in ns since the recording began.
pub(super) fn raw_event<'a>(
    record: &Record<'_>,
    time_ns: u64,
    schema: &'a EventSchema,
) -> RawEvent<'a> {
    RawEvent {
        time_ns,
        process_id: record.pid,
        thread_id: record.tid.map(u64::from),
        processor: record.cpu,
        pointer_size: PointerSize::Eight,
        schema,
        payload: &[],
    }
}

pub(super) fn event_name(attr: &EventAttr) -> String {
    let number = || format!("{}:{:#x}", attr.kind, attr.config);
    attr.name.clone().unwrap_or_else(number)
}
