//! Rejects filters that select nothing, and lists what exists instead.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use chronosym::runtime::Report;
use chronosym::{EventSelector, EventTypeInfo, Timeline};
use chronosym_events::EventSchema;
use chronosym_export::{beyond_memory, to_record};

use crate::args::{EventFilters, Filters, Usage};
use crate::units::{show_count, show_time};

/// Maximum number of names in a list.
const SHOWN: usize = 8;

/// Rejects an interval that ends before it starts.
pub fn refuse_empty_span(filters: &Filters) -> Result<()> {
    match (filters.from, filters.to) {
        (Some(from), Some(to)) if from >= to => bail!(Usage(format!(
            "--from {} is not before --to {}",
            show_time(from),
            show_time(to)
        ))),
        _ => Ok(()),
    }
}

/// Rejects a time after the trace, and threads and events without samples.
pub fn refuse(filters: &EventFilters, timeline: &Timeline) -> Result<()> {
    refuse_late(&filters.processes, timeline)?;
    refuse_events(&filters.event, timeline)?;
    match filters.tid {
        Some(tid) => refuse_thread(tid, timeline),
        None => Ok(()),
    }
}

/// Rejects a time after the trace.
pub fn refuse_late(filters: &Filters, timeline: &Timeline) -> Result<()> {
    let duration = timeline.facts().duration_ns;
    match filters.from.filter(|&from| from > duration) {
        Some(from) => bail!(
            "--from {} is after the trace, which is {} long",
            show_time(from),
            show_time(duration)
        ),
        None => Ok(()),
    }
}

fn refuse_thread(tid: u64, timeline: &Timeline) -> Result<()> {
    let samples = timeline.samples();
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (class, count) in samples.classes().iter().zip(samples.counts()) {
        if let Some(thread) = timeline.thread_view(class.thread) {
            *counts.entry(thread.tid).or_default() += count;
        }
    }
    if counts.is_empty() || counts.contains_key(&tid) {
        return Ok(());
    }
    let mut counts: Vec<(u64, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|&(tid, samples)| (std::cmp::Reverse(samples), tid));
    let threads = counts.iter().map(|(tid, _)| tid.to_string());
    bail!(
        "no samples of thread {tid}{}; there are samples of {}",
        beyond_memory(timeline),
        some(threads)
    )
}

fn refuse_events(selectors: &[EventSelector], timeline: &Timeline) -> Result<()> {
    let types = || timeline.event_types().iter().filter(|t| t.count > 0);
    let is_selected = |t: &&EventTypeInfo| selectors.iter().any(|s| s.matches(&t.schema));
    let selected: Vec<_> = types().filter(is_selected).collect();
    let has_samples = !timeline.samples().is_empty();
    if selectors.is_empty() || has_samples || selected.iter().any(|t| t.stacks > 0) {
        return Ok(());
    }
    let mut with_stacks: Vec<_> = types().filter(|t| t.stacks > 0).collect();
    with_stacks.sort_by_key(|t| std::cmp::Reverse(t.stacks));
    let with_stacks: Vec<_> = with_stacks.iter().map(|t| &*t.schema).collect();
    let Some(first) = selected.first() else {
        return no_event(selectors, with_stacks, Some(timeline));
    };
    let (count, label) = (selected.iter().map(|t| t.count).sum(), named(&first.schema));
    let (count, limit) = (show_count(count), beyond_memory(timeline));
    match with_stacks.len() {
        0 => bail!(
            "none of the {count} {label} events has a stack{limit}; no event in the trace has one"
        ),
        _ => {
            let others = names(selectors, with_stacks);
            bail!(
                "none of the {count} {label} events has a stack{limit}; events with stacks are {others}"
            )
        }
    }
}

/// Fails because no event is selected; there are others. With the timeline, states how to record it if
/// a report of the runtime reads it.
pub fn no_event(
    selectors: &[EventSelector],
    others: Vec<&EventSchema>,
    timeline: Option<&Timeline>,
) -> Result<()> {
    let asked: Vec<_> = selectors.iter().map(EventSelector::to_string).collect();
    let asked = asked.join(", ");
    let limit = timeline.map_or("", beyond_memory);
    let how = timeline.zip(Report::reading(selectors));
    let how = how.map_or(String::new(), |(timeline, report)| {
        format!("; to record it: {}", to_record(report, timeline))
    });
    match others.len() {
        0 => bail!("the trace has no {asked} event{limit}, and no event has a stack{how}"),
        _ => bail!(
            "the trace has no {asked} event{limit}; there are {}{how}",
            names(selectors, others)
        ),
    }
}

/// Lists names of events, those like a requested one first.
fn names(selectors: &[EventSelector], mut others: Vec<&EventSchema>) -> String {
    let wanted = selectors.iter().map(|selector| {
        let selector = selector.to_string().to_ascii_lowercase();
        selector.rsplit('/').next().map(str::to_owned)
    });
    let wanted: Vec<String> = wanted.flatten().collect();
    others.sort_by_key(|schema| {
        let name = named(schema).to_ascii_lowercase();
        !wanted.iter().any(|wanted| name.contains(wanted))
    });
    let mut names: Vec<String> = others.into_iter().map(named).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    some(names.into_iter())
}

/// Returns `provider/name`, which `--event` accepts.
fn named(schema: &EventSchema) -> String {
    match schema.name() {
        // `Event(7)`: no name is known.
        name if name.contains('(') => chronosym::event_label(schema),
        name => format!("{}/{name}", schema.provider_name()),
    }
}

/// Joins the first names of a list.
pub fn some(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = all.take(SHOWN).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}
