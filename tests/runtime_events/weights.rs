//! Durations as weights of stacks.

use std::sync::Arc;

use chronosym::runtime::{Report, keep_for_durations, weigh_by_duration};
use chronosym::{EventSelector, Options, SampleSelection, Weight};
use chronosym_support::payload::Payload;
use chronosym_support::trace::{FieldKind, TypeSpec};

use crate::collections::{gc_end, gc_start, suspend};
use crate::compilations::{load, start};
use crate::exceptions::thrown;
use crate::trace::{RUNTIME, Trace, all, read};

#[test]
fn durations_weigh_the_stacks_of_starts() {
    let selector = |id| EventSelector::parse(&format!("{RUNTIME}/{id}")).unwrap();
    let weights = |events: Vec<EventSelector>| {
        let mut trace = Trace::new();
        let wait = Payload::new().u8(0).u16(7).finish();
        trace.event_with(&[0x10], (81, 1), (100, 1), &wait);
        trace.event_with(&[0x10], (81, 1), (110, 2), &wait);
        trace.event((91, 0), (130, 1), Payload::new().u8(0).u16(7));
        trace.event_with(&[0x20], (145, 1), (200, 1), &start(1, 1, "M"));
        trace.event_with(&[0x30], (80, 1), (205, 1), &thrown("A", "", 0).finish());
        trace.event((143, 1), (250, 1), load(1, 1, 8, "M"));
        let mut options = Options::from(SampleSelection::Events(events));
        keep_for_durations(&mut options);
        let mut timeline = read(&trace.writer.finish(), options);
        weigh_by_duration(Arc::get_mut(&mut timeline).unwrap());
        let mut weights = Vec::new();
        timeline.for_each_weighed_sample(&all(), |it| weights.push((it.time_ns, it.weight)));
        weights
    };
    assert_eq!(
        weights(vec![selector(81), selector(145), selector(80)]),
        [
            (100, Weight::Ns(30)),
            (110, Weight::Unknown),
            (200, Weight::Ns(50)),
            (205, Weight::One),
        ]
    );
    assert_eq!(weights(vec![selector(80)]), [(205, Weight::One)]);
    // All events of the provider have no common unit: each counts once.
    let provider = EventSelector::parse(RUNTIME).unwrap();
    assert!(
        weights(vec![provider])
            .iter()
            .all(|(_, weight)| *weight == Weight::One)
    );
}

/// Returns the weights of the stacks of selected events, and the report without durations.
fn weights(trace: Trace, ids: &[u32]) -> (Vec<(u64, Weight)>, Option<Report>) {
    let selector = |id| EventSelector::parse(&format!("{RUNTIME}/{id}")).unwrap();
    let events = ids.iter().map(selector).collect();
    let mut options = Options::from(SampleSelection::Events(events));
    keep_for_durations(&mut options);
    let mut timeline = read(&trace.writer.finish(), options);
    let without = weigh_by_duration(Arc::get_mut(&mut timeline).unwrap());
    let mut weights = Vec::new();
    timeline.for_each_weighed_sample(&all(), |it| weights.push((it.time_ns, it.weight)));
    (weights, without)
}

#[test]
fn pauses_weigh_what_triggers_collections() {
    let triggered = Payload::new().u32(1).u16(7).finish();
    let trace = || {
        let mut trace = Trace::new();
        // Another thread collects. A second trigger has no collection in the trace.
        trace.event_with(&[0x10], (35, 0), (100, 1), &triggered);
        trace.event_with(&[0x20], (9, 1), (110, 2), &suspend(1).finish());
        trace.event((8, 1), (115, 2), Payload::new().u16(7));
        trace.event_with(&[0x20], (1, 2), (120, 2), &gc_start(1, 0, 1, 0).finish());
        // The profiler's suspension waits for it.
        trace.event_with(&[0x30], (9, 1), (125, 3), &suspend(0).finish());
        trace.event((2, 1), (140, 2), gc_end(1));
        trace.event((3, 1), (150, 2), Payload::new().u16(7));
        trace.event((3, 1), (157, 3), Payload::new().u16(7));
        trace
    };
    assert_eq!(
        weights(trace(), &[35, 1]),
        (vec![(100, Weight::Ns(40)), (120, Weight::Ns(40))], None)
    );
    let suspended = vec![(110, Weight::Ns(40)), (125, Weight::Ns(7))];
    assert_eq!(weights(trace(), &[9]), (suspended, None));
    let mut open = trace();
    open.event_with(&[0x10], (35, 0), (200, 1), &triggered);
    let triggers = vec![(100, Weight::Ns(40)), (200, Weight::Unknown)];
    assert_eq!(weights(open, &[35]), (triggers, None));
}

#[test]
fn time_in_the_queue_weighs_what_queues_items() {
    let item = |id: u64| Payload::new().u64(id).u16(7).finish();
    let trace = || {
        let mut trace = Trace::new();
        trace.event_with(&[0x10], (61, 0), (100, 1), &item(1));
        trace.event_with(&[0x10], (63, 0), (105, 1), &item(1));
        trace.event_with(&[0x20], (61, 0), (110, 2), &item(2));
        trace
    };
    let mut taken = trace();
    taken.event_with(&[0x40], (62, 0), (130, 3), &item(2));
    taken.event_with(&[0x40], (62, 0), (170, 3), &item(1));
    taken.event_with(&[0x40], (64, 0), (180, 3), &item(1));
    let expected = [(100, 70), (105, 75), (110, 20)].map(|(at, ns)| (at, Weight::Ns(ns)));
    assert_eq!(weights(taken, &[61, 63]), (expected.to_vec(), None));
    // Nothing states when items are taken.
    let unknown = [100, 110].map(|at| (at, Weight::Unknown));
    let expected = (unknown.to_vec(), Some(Report::ThreadPool));
    assert_eq!(weights(trace(), &[61]), expected);
}

/// .NET Core queues items in its class library.
#[test]
fn items_of_the_class_library_wait_too() {
    const FRAMEWORK: &str = "System.Diagnostics.Eventing.FrameworkEventSource";
    for selected in ["30", "ThreadPoolEnqueueWork"] {
        let mut trace = Trace::new();
        let mut of_type = |id, name: &str| {
            let spec = TypeSpec::new(FRAMEWORK, id, 0).named(name);
            trace.writer.define(spec.field("workID", FieldKind::I64))
        };
        let enqueue = of_type(30, "ThreadPoolEnqueueWork");
        let dequeue = of_type(31, "ThreadPoolDequeueWork");
        let item = |id: u64| Payload::new().u64(id).finish();
        trace.writer.event(enqueue, 100, 1, &[0x10], &item(5));
        trace.writer.event(enqueue, 110, 1, &[0x10], &item(6));
        trace.writer.event(dequeue, 140, 2, &[0x20], &item(5));
        trace.writer.event(dequeue, 160, 2, &[0x20], &item(6));
        let selector = EventSelector::parse(&format!("{FRAMEWORK}/{selected}")).unwrap();
        assert_eq!(
            Report::reading(std::slice::from_ref(&selector)),
            Some(Report::ThreadPool)
        );
        let mut options = Options::from(SampleSelection::Events(vec![selector]));
        keep_for_durations(&mut options);
        let mut timeline = read(&trace.writer.finish(), options);
        assert_eq!(
            weigh_by_duration(Arc::get_mut(&mut timeline).unwrap()),
            None
        );
        let mut weights = Vec::new();
        timeline.for_each_weighed_sample(&all(), |it| weights.push((it.time_ns, it.weight)));
        assert_eq!(weights, [(100, Weight::Ns(40)), (110, Weight::Ns(50))]);
    }
}

#[test]
fn selected_events_have_the_report_that_reads_them() {
    let of = |names: &[&str]| {
        let events: Vec<_> = names
            .iter()
            .filter_map(|it| EventSelector::parse(it))
            .collect();
        Report::reading(&events)
    };
    let event = |id: &str| format!("{RUNTIME}/{id}");
    assert_eq!(of(&[&event("GCTriggered")]), Some(Report::Gc));
    assert_eq!(of(&[&event("61"), &event("62")]), Some(Report::ThreadPool));
    assert_eq!(of(&[&event("61"), &event("80")]), None);
    assert_eq!(of(&[RUNTIME]), None);
    assert_eq!(of(&["Other/61"]), None);
    assert_eq!(of(&[]), None);
}
