//! What the EventCounters of `System.Runtime` state about the process of a profile.

use std::collections::BTreeSet;

use chronosym_core::{Filter, ProcessIndex, Profile};
use chronosym_runtime::{Counter, Counters};

use crate::units::{counted, show_count};

/// Returns a line on processors, collections and the thread pool, as far as counters state them in
/// the time of the samples. `None` for samples of several processes.
pub(crate) fn counter_line(profile: &Profile) -> Option<String> {
    let timeline = profile.resolver.timeline();
    let views = profile.entries.iter();
    let views = views.filter_map(|entry| timeline.thread_view(entry.thread));
    let processes: BTreeSet<_> = views.map(|thread| thread.process).collect();
    let (Some(&process), 1) = (processes.first(), processes.len()) else {
        return None;
    };
    let mut filter = Filter::default();
    filter.from_ns = Some(profile.times.start);
    filter.to_ns = Some(profile.times.end.saturating_add(1));
    let counters = Counters::new(timeline, &filter);
    let usage = counters.of_runtime(process, "cpu-usage");
    let usage = usage.and_then(|it| capacity(it, timeline.facts().processors));
    let in_gc = counters.time_in_gc(process);
    let in_gc = in_gc.map(|percent| format!("time-in-gc {percent:.1} %"));
    let parts = [usage, in_gc, pool(&counters, process)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("by EventCounters: {}", parts.join("; ")))
}

/// Returns a sentence on the processors that a process used, if a counter states it: the runtime
/// publishes `cpu-usage` as a share of all processors.
pub(crate) fn capacity(counter: &Counter, processors: Option<u32>) -> Option<String> {
    let percent = counter.mean().filter(|_| counter.is_cpu_usage())?;
    Some(match processors {
        Some(processors) => {
            let used = percent * f64::from(processors) / 100.0;
            format!("cpu-usage {percent:.0} % of {processors} processors: {used:.2} processors")
        }
        None => format!("cpu-usage {percent:.0} % of all processors"),
    })
}

/// Returns the size of the thread pool and of its queue.
fn pool(counters: &Counters, process: ProcessIndex) -> Option<String> {
    let threads = counters.most_pool_threads(process)?;
    let threads = format!("at most {}", counted(threads, "thread"));
    Some(match counters.longest_queue(process) {
        Some(queue) => format!(
            "thread pool: {threads}, at most {} in the queue",
            show_count(queue)
        ),
        None => format!("thread pool: {threads}"),
    })
}
