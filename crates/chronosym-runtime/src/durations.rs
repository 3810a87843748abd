//! Durations of activities as the weights of the stacks of their first events.

use std::collections::VecDeque;

use chronosym_core::{
    EventSelector, EventTypeId, Filter, Options, SampleSelection, ThreadIndex, Timeline, Weight,
};
use chronosym_events::{EventKey, EventSchema, Provider};
use chronosym_types::hash::HashMap;

use crate::contention::Contention;
use crate::jit::Jit;
use crate::report::{MAX_KEPT_BYTES, Report, id, is_runtime, selectors};

/// Makes a session keep the events that [`weigh_by_duration`] needs, if its options select the
/// stacks of ContentionStart or MethodJittingStarted, but not of the whole provider.
pub fn keep_for_durations(options: &mut Options) {
    let SampleSelection::Events(events) = &options.samples else {
        return;
    };
    let selects = |id| {
        let provider = Provider::Runtime;
        let key = EventKey::Manifest {
            provider,
            id,
            version: 1,
        };
        let schema = EventSchema::new(key);
        events
            .iter()
            .any(|selector: &EventSelector| selector.matches(&schema))
    };
    if selects(id::GC_START) {
        return;
    }
    for (id, report) in [
        (id::CONTENTION_START, Report::Contention),
        (id::METHOD_JITTING_STARTED, Report::Jit),
    ] {
        if selects(id) {
            options.keep.extend(selectors(report.events()));
            options.max_kept_bytes = MAX_KEPT_BYTES;
        }
    }
}

/// Weighs the stacks of ContentionStart by the duration of the wait, and those of
/// MethodJittingStarted by that of the compilation, if the session kept their events. The weight of
/// an activity without an end is unknown.
pub fn weigh_by_duration(timeline: &mut Timeline) {
    if timeline.kept_events().next().is_none() {
        return;
    }
    let filter = Filter::default();
    let mut durations: HashMap<(u32, ThreadIndex, u64), VecDeque<u64>> = HashMap::default();
    let waits = Contention::new(timeline, &filter).waits;
    let waits = waits.iter().filter_map(|it| {
        let key = (id::CONTENTION_START, it.waiter, it.start_ns);
        Some((key, it.duration_ns?))
    });
    let methods = Jit::new(timeline, &filter).methods;
    let methods = methods.iter().filter_map(|it| {
        let key = (id::METHOD_JITTING_STARTED, it.thread, it.start_ns?);
        Some((key, it.duration_ns?))
    });
    for (key, duration) in waits.chain(methods) {
        durations.entry(key).or_default().push_back(duration);
    }
    let ids: Vec<Option<u32>> = (timeline.event_types().iter())
        .map(|info| match info.schema.key() {
            EventKey::Manifest { provider, id, .. } if is_runtime(provider) => Some(*id),
            _ => None,
        })
        .collect();
    let id_of = |event: EventTypeId| ids.get(event.index()).copied().flatten();
    timeline.reweigh(|class, time_ns| {
        let id = id_of(class.event)?;
        if !matches!(id, id::CONTENTION_START | id::METHOD_JITTING_STARTED) {
            return None;
        }
        let of_event = durations.get_mut(&(id, class.thread, time_ns));
        let duration = of_event.and_then(VecDeque::pop_front);
        Some(duration.map_or(Weight::Unknown, Weight::Ns))
    });
}
