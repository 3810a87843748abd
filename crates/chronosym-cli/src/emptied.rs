//! Names the filters that leave no sample.

use std::sync::Arc;

use chronosym::{Filter, Timeline};
use chronosym_export::beyond_memory;
use clap::ValueEnum;

use crate::args::{EventFilters, Filters, Selection};
use crate::units::show_time;

/// Removes a filter.
type Relax = fn(&mut Filter);
/// A filter of the command line, as it was given.
type Given = (String, Relax);

/// Returns why no sample of a timeline passes a selection.
pub fn reason(selection: &Selection, filter: &Filter, timeline: &Arc<Timeline>) -> String {
    let see_info = "`chronosym info TRACE` shows what the trace contains";
    if timeline.samples().is_empty() {
        let limit = beyond_memory(timeline);
        return format!("the trace has no samples{limit}; {see_info}");
    }
    let has_samples = |filter: &Filter| !timeline.counts(filter, None).entries.is_empty();
    if has_samples(filter) {
        let emptied_by = selection.shaping.stack_filters().join(", ");
        let limit = beyond_memory(timeline);
        return format!("no sample{limit} passes {emptied_by}; `chronosym top TRACE` lists names");
    }
    let given = given(selection);
    let alone = given.iter().filter(|(_, relax)| {
        let mut relaxed = filter.clone();
        relax(&mut relaxed);
        has_samples(&relaxed)
    });
    let mut names: Vec<&str> = alone.map(|(name, _)| &**name).collect();
    if names.is_empty() {
        names = given.iter().map(|(name, _)| &**name).collect();
    }
    match names.as_slice() {
        [] => format!("only the idle process has samples: add --idle; {see_info}"),
        names => format!(
            "no sample{} passes {}; {see_info}",
            beyond_memory(timeline),
            names.join(" and ")
        ),
    }
}

/// Returns the filters of samples that the command line states.
fn given(selection: &Selection) -> Vec<Given> {
    let samples = &selection.samples;
    let mut given = of_events(&selection.filters);
    let activity = match samples.activity.and_then(|a| a.to_possible_value()) {
        Some(value) => Some(format!("--activity {}", value.get_name())),
        None if samples.waiting => Some("--waiting".to_owned()),
        None => samples.activity().map(|_| "--running".to_owned()),
    };
    if let Some(name) = activity {
        given.push((name, |filter| filter.activity = None));
    }
    given
}

/// Returns the filters of events that the command line states.
pub fn of_events(filters: &EventFilters) -> Vec<Given> {
    let mut given = of_processes(&filters.processes);
    if let Some(tid) = filters.tid {
        given.push((format!("--tid {tid}"), |filter| filter.tid = None));
    }
    let events = filters.event.iter();
    given.extend(events.map(|event| (format!("--event {event}"), (|_| {}) as Relax)));
    given
}

/// Returns the filters of processes and times that the command line states.
pub fn of_processes(filters: &Filters) -> Vec<Given> {
    let mut given: Vec<Given> = Vec::new();
    if let Some((pid, at)) = filters.pid {
        let at = at.map(|at| format!("@{}", show_time(at)));
        let name = format!("--pid {pid}{}", at.unwrap_or_default());
        given.push((name, |filter| filter.pid = None));
    }
    if let Some(name) = &filters.process {
        given.push((format!("--process {name}"), |filter| filter.process = None));
    }
    let times = [("--from", filters.from), ("--to", filters.to)];
    let times = times.map(|(name, at)| at.map(|at| format!("{name} {}", show_time(at))));
    let times: Vec<_> = times.into_iter().flatten().collect();
    if !times.is_empty() {
        given.push((times.join(" "), |filter| {
            (filter.from_ns, filter.to_ns) = (None, None);
        }));
    }
    given
}

/// Names filters at the end of a sentence; nothing if there are none.
pub fn by(given: &[Given]) -> String {
    let names: Vec<&str> = given.iter().map(|(name, _)| &**name).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(" that passes {}", names.join(" and ")),
    }
}
