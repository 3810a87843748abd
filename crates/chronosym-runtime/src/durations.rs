//! Durations of activities as the weights of the stacks of their first events.

use std::collections::VecDeque;

use chronosym_core::{
    EventTypeId, Filter, Options, SampleSelection, ThreadIndex, Timeline, Weight,
};
use chronosym_types::hash::{HashMap, HashSet};

use crate::contention::Contention;
use crate::gc::Collections;
use crate::jit::Jit;
use crate::report::{MAX_KEPT_BYTES, Report, id, id_of, selects, selects_provider};
use crate::threadpool::{QueuedItem, ThreadPool};

/// The events whose stacks are weighed by durations, and the report that pairs them with others.
const WEIGHED: [(u32, Report); 7] = [
    (id::GC_TRIGGERED, Report::Gc),
    (id::GC_START, Report::Gc),
    (id::GC_SUSPEND_EE_BEGIN, Report::Gc),
    (id::CONTENTION_START, Report::Contention),
    (id::METHOD_JITTING_STARTED, Report::Jit),
    (id::ENQUEUE, Report::ThreadPool),
    (id::IO_ENQUEUE, Report::ThreadPool),
];

/// The event of a thread at a time. Several of one type are in order of arrival.
type Key = (u32, ThreadIndex, u64);

/// Makes a session keep the events that [`weigh_by_duration`] needs, if its options select the
/// stacks of events that it weighs, but not of the whole provider.
pub fn keep_for_durations(options: &mut Options) {
    let SampleSelection::Events(events) = &options.samples else {
        return;
    };
    if events.iter().any(selects_provider) {
        return;
    }
    let is_selected = |id| events.iter().any(|selector| selects(selector, id));
    for report in Report::ALL {
        let mut weighed = WEIGHED.iter().filter(|(_, of)| *of == report);
        if weighed.any(|&(id, _)| is_selected(id)) {
            options.keep.extend(report.kept());
            options.max_kept_bytes = MAX_KEPT_BYTES;
        }
    }
}

/// Weighs the stacks of events that start an activity by its duration, if the session kept its
/// events: ContentionStart by the wait, MethodJittingStarted by the compilation, GCTriggered and
/// GCStart by the pauses of the collection, GCSuspendEEBegin by the suspension, ThreadPoolEnqueue and
/// ThreadPoolIOEnqueue by the time in the queue. The weight of an activity without an end is unknown.
///
/// Returns a report whose activities have no duration at all, if there is one: the trace lacks the
/// events that end them.
pub fn weigh_by_duration(timeline: &mut Timeline) -> Option<Report> {
    let types = timeline.event_types().iter();
    let ids: Vec<Option<u32>> = types.map(|info| id_of(&info.schema)).collect();
    let id_of = |event: EventTypeId| ids.get(event.index()).copied().flatten();
    let kept = timeline.kept_events();
    let kept: HashSet<u32> = kept.filter_map(|event| id_of(event.event_type)).collect();
    let mut durations: HashMap<Key, VecDeque<u64>> = HashMap::default();
    for report in Report::ALL {
        if WEIGHED
            .iter()
            .any(|(id, of)| *of == report && kept.contains(id))
        {
            for (key, ns) in durations_of(report, timeline) {
                durations.entry(key).or_default().push_back(ns);
            }
        }
    }
    // By report, whether any of its activities has a duration.
    let mut seen: HashMap<&str, (Report, bool)> = HashMap::default();
    timeline.reweigh(|class, time_ns| {
        let id = id_of(class.event).filter(|id| kept.contains(id))?;
        let (_, report) = WEIGHED.iter().find(|(weighed, _)| *weighed == id)?;
        let of_event = durations.get_mut(&(id, class.thread, time_ns));
        let duration = of_event.and_then(VecDeque::pop_front);
        let (_, has_any) = seen.entry(report.as_str()).or_insert((*report, false));
        *has_any |= duration.is_some();
        Some(duration.map_or(Weight::Unknown, Weight::Ns))
    });
    let mut without = seen.into_values().filter(|(_, has_any)| !has_any);
    without.next().map(|(report, _)| report)
}

/// Returns the durations of the activities of a report, by the events whose stacks they weigh.
fn durations_of(report: Report, timeline: &Timeline) -> Vec<(Key, u64)> {
    let filter = Filter::default();
    match report {
        Report::Contention => {
            let waits = Contention::new(timeline, &filter).waits;
            let waits = waits.iter().filter_map(|it| {
                let key = (id::CONTENTION_START, it.waiter, it.start_ns);
                Some((key, it.duration_ns?))
            });
            waits.collect()
        }
        Report::Jit => {
            let methods = Jit::new(timeline, &filter).methods;
            let methods = methods.iter().filter_map(|it| {
                let key = (id::METHOD_JITTING_STARTED, it.thread, it.start_ns?);
                Some((key, it.duration_ns?))
            });
            methods.collect()
        }
        Report::Gc => {
            let gc = Collections::new(timeline, &filter);
            let pauses = gc.collections.iter().flat_map(|it| {
                let trigger = it.trigger_thread.zip(it.trigger_ns);
                let trigger = trigger.map(|(thread, ns)| (id::GC_TRIGGERED, thread, ns));
                let start = (id::GC_START, it.thread, it.start_ns);
                let keys = [trigger, Some(start)].into_iter().flatten();
                keys.filter_map(|key| Some((key, it.pause_ns?)))
            });
            let suspensions = gc.pauses.list.iter().chain(&gc.others.list);
            let suspensions = suspensions.map(|it| {
                let key = (id::GC_SUSPEND_EE_BEGIN, it.thread, it.requested_ns);
                (key, it.duration_ns())
            });
            pauses.chain(suspensions).collect()
        }
        Report::ThreadPool => {
            let pool = ThreadPool::new(timeline, &filter);
            let of = |id: u32, items: &[QueuedItem]| -> Vec<(Key, u64)> {
                let items = items.iter();
                items
                    .map(|it| ((id, it.queued_by, it.queued_ns), it.waited_ns()))
                    .collect()
            };
            let mut all = of(id::ENQUEUE, &pool.work.items);
            all.extend(of(id::IO_ENQUEUE, &pool.io.items));
            all
        }
        _ => Vec::new(),
    }
}
