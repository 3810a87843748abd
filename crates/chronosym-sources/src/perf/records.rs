//! What the records of a perf.data are called, and what their samples count.

use std::sync::Arc;

use chronosym_events::{EventKey, EventSchema, PointerSize, RawEvent};
use chronosym_perf::{Event, EventAttr, Record, event_type};
use chronosym_types::hash::HashMap;

use super::switches::Tracepoint;
use chronosym_core::{EventTypeId, SampleKind, Weight, facts};

/// Whether an event is the processor's time, in ns.
pub(super) fn is_clock(attr: &EventAttr) -> bool {
    attr.kind == event_type::SOFTWARE && attr.config <= 1
}

/// Whether samples of an event say where a processor was busy.
pub(super) fn is_profile(attr: &EventAttr) -> bool {
    is_clock(attr)
        || matches!(attr.kind, event_type::HARDWARE | event_type::RAW)
        || attr.kind >= event_type::FIRST_DYNAMIC
}

/// What samples of an event are.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    pub event: EventTypeId,
    pub kind: SampleKind,
    pub is_clock: bool,
    /// Whether each event is a sample, not one of many.
    pub is_complete: bool,
    /// What it is to the scheduler.
    pub tracepoint: Option<Tracepoint>,
}

impl Counted {
    /// A sample that stands for `period` ns of a clock, or so many events.
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

/// What a record is called.
pub(super) fn record_name(kind: u32) -> String {
    chronosym_perf::record_name(kind).map_or_else(|| kind.to_string(), str::to_owned)
}

/// What stands for an event or a type of record in a session.
pub(super) fn schema(name: &str) -> Arc<EventSchema> {
    Arc::new(EventSchema::new(EventKey::Named {
        provider: "perf".into(),
        name: name.into(),
    }))
}

/// The schemas of a recording's records, made as they come up.
#[derive(Debug, Default)]
pub(super) struct Schemas(HashMap<(u32, Option<usize>), Arc<EventSchema>>);

impl Schemas {
    /// The schema of a record: samples are called after their event, others after what they are.
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

/// A record as an event without a payload, at a time in ns since the recording began.
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
