//! Descriptions of a profile's samples.

use std::collections::BTreeSet;

use chronosym_core::{Activity, Profile, SampleKind, Timeline};
use chronosym_types::escape::terminal;

use crate::counter_line::counter_line;
use crate::units::{counted, show_count};
use crate::weight::WeightUnit;

/// Returns what to add to a statement that a trace lacks something, if the memory budget may have left
/// it out; otherwise nothing.
pub fn beyond_memory(timeline: &Timeline) -> &'static str {
    match timeline.is_cut_by_memory() {
        true => " before the memory limit (--max-memory raises it)",
        false => "",
    }
}

/// Returns the statement that a profile has no samples.
pub(crate) fn no_samples(timeline: &Timeline) -> String {
    format!("no samples{}", beyond_memory(timeline))
}

/// Describes the samples of a profile in a few lines: their kind and number, the number of threads
/// and the duration, the requested and the actual interval, how much ran and waited, and what
/// EventCounters state.
pub fn describe(profile: &Profile) -> String {
    let samples = profile.samples();
    if samples == 0 {
        return no_samples(profile.resolver.timeline());
    }
    let of = |is: &dyn Fn(SampleKind) -> bool| -> u64 {
        let entries = profile.entries.iter().filter(|entry| is(entry.kind));
        entries.map(|entry| entry.samples).sum()
    };
    let cpu = of(&|kind| kind == SampleKind::Cpu);
    let events = of(&|kind| kind == SampleKind::Event);
    let switched = of(&SampleKind::is_switched);
    let wakeups = of(&|kind| kind == SampleKind::Wakeup);
    let threads: BTreeSet<_> = profile.entries.iter().map(|entry| entry.thread).collect();
    let span = profile.times.end - profile.times.start;
    let mut over = format!("of {}", counted(threads.len() as u64, "thread"));
    // A profile need not state the times of its samples.
    if span > 0 {
        over += &format!(" over {}", seconds(span));
    }
    let requested = profile.sample_interval_ns.filter(|&ns| ns > 0).map(ms);
    let time = profile.time_ns().filter(|&ns| ns > 0);
    let mut lines = Vec::new();
    if wakeups == samples {
        lines.push(format!(
            "{} {over}: what ended the waits",
            counted(samples, "wake-up")
        ));
        lines.push(format!(
            "{} of waiting in total",
            seconds(time.unwrap_or(0))
        ));
    } else if cpu == samples {
        lines.push(format!(
            "{} {over}: where processors were busy",
            counted(samples, "CPU sample")
        ));
        lines.push(match (requested, time) {
            _ if WeightUnit::of(profile) == WeightUnit::Events => events_of(profile),
            (Some(every), Some(time)) => {
                format!("one per {every} of CPU time, {} in total", seconds(time))
            }
            (Some(every), None) => format!(
                "one per {every} of CPU time, or one per period of a counter: the time of {} is unknown",
                counted(untimed(profile), "sample")
            ),
            (None, Some(time)) => format!("{} in all", seconds(time)),
            (None, None) => "their time is unknown: the trace does not state the sampling rate".to_owned(),
        });
    } else if switched > 0 {
        let intervals = samples - cpu;
        lines.push(format!(
            "{} and {} {over}: on-CPU and off-CPU",
            counted(cpu, "CPU sample"),
            show_count(intervals) + " intervals between context switches",
        ));
        lines.push(split(profile));
    } else if events == 0 && cpu == 0 {
        lines.push(format!(
            "{} {over}: every thread, running or blocked",
            counted(samples, "wall-clock sample")
        ));
        let requested = requested.map_or("requested interval unknown".to_owned(), |every| {
            format!("requested interval {every}")
        });
        lines.push(match time {
            Some(time) => format!(
                "{requested}, actual {}; {} of thread time in total",
                ms(time / samples),
                seconds(time)
            ),
            None => format!(
                "{requested}; the time of {} is unknown: it takes two ticks to measure one",
                counted(untimed(profile), "sample")
            ),
        });
        lines.push(split(profile));
    } else {
        lines.push(format!(
            "{} {over}: stacks of the selected events",
            counted(samples, "event stack")
        ));
        if WeightUnit::of(profile) == WeightUnit::Events {
            lines.push(events_of(profile));
        }
        let bytes = WeightUnit::Bytes.total(profile);
        if bytes > 0 {
            lines.push(format!("{} bytes in total", show_count(bytes)));
        }
    }
    lines.extend(counter_line(profile));
    lines.join("\n")
}

fn events_of(profile: &Profile) -> String {
    let events = show_count(WeightUnit::Events.total(profile));
    let counter = terminal(profile.counter.as_deref().unwrap_or("events"));
    format!("{events} {counter} in total; shares are weighted by them")
}

/// Describes samples of these kinds in a few words: what they are, their number and their weight.
pub(crate) fn title(
    kinds: impl Iterator<Item = SampleKind>,
    samples: u64,
    unit: WeightUnit,
    weight: u64,
) -> String {
    let kinds: BTreeSet<SampleKind> = kinds.collect();
    let what = if kinds.contains(&SampleKind::Event) {
        "event stacks"
    } else if kinds.iter().all(|&kind| kind == SampleKind::Cpu) {
        "CPU samples"
    } else {
        "wall-clock samples"
    };
    match unit {
        WeightUnit::Time => format!("{samples} {what}, {:.1} ms", weight as f64 / 1e6),
        WeightUnit::Bytes => format!("{samples} {what}, {weight} bytes"),
        WeightUnit::Events => format!("{samples} {what}, {weight} events"),
        WeightUnit::Samples => format!("{samples} {what}"),
    }
}

/// Describes what the threads of wall-clock samples were doing, and on what evidence.
fn split(profile: &Profile) -> String {
    let unit = WeightUnit::of(profile);
    let of = |activity: Option<Activity>| -> (u64, u64) {
        let entries = profile.entries.iter();
        let entries = entries.filter(|entry| activity.is_none_or(|a| a == entry.activity));
        entries.fold((0, 0u64), |(samples, weight), entry| {
            (
                samples + entry.samples,
                weight.saturating_add(unit.weight(entry)),
            )
        })
    };
    let all = of(None).1;
    let part = |what: &str, activity| {
        let (samples, weight) = of(Some(activity));
        if samples == 0 {
            return None;
        }
        let share = weight as f64 * 100.0 / all.max(1) as f64;
        if unit != WeightUnit::Time {
            return Some(format!("{what} {share:.1}%"));
        }
        // The flag states that a thread was in managed code, not that it was on a processor; a CPU
        // sample, that it was at one moment.
        let exceeded = capacity(profile)
            .filter(|it| matches!(activity, Activity::OnCpu | Activity::Runnable) && weight > it.0)
            .map(|(ns, processors)| {
                let processors = counted(processors.into(), "processor");
                format!("; at most {} of it on {processors}", seconds(ns))
            });
        let (time, bound) = (seconds(weight), exceeded.unwrap_or_default());
        Some(format!("{what} {share:.1}% ({time}{bound})"))
    };
    let timeline = profile.resolver.timeline();
    let processes: BTreeSet<_> = profile
        .entries
        .iter()
        .filter_map(|entry| Some(timeline.thread_view(entry.thread)?.process))
        .collect();
    let flags = processes
        .iter()
        .filter_map(|&process| timeline.wall_flag(process));
    let doubts: BTreeSet<&str> = flags.filter_map(|flag| flag.reason()).collect();
    let unknown = if doubts.is_empty() {
        "native or blocked"
    } else {
        "unknown"
    };
    let parts = [
        part("on-CPU", Activity::OnCpu),
        part("runnable", Activity::Runnable),
        part("blocked", Activity::Blocked),
        part(unknown, Activity::Unknown),
    ];
    let mut line = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if !doubts.is_empty() {
        let doubts: Vec<&str> = doubts.into_iter().collect();
        line.push_str("\nwaits are inferred from method names: ");
        line.push_str(&doubts.join(", "));
    }
    line
}

/// Returns the time that the processors had while samples were taken, in ns, and their number.
fn capacity(profile: &Profile) -> Option<(u64, u32)> {
    let processors = profile.resolver.timeline().facts().processors?;
    let span = profile.times.end - profile.times.start;
    Some((span.saturating_mul(processors.into()), processors))
}

fn untimed(profile: &Profile) -> u64 {
    profile.entries.iter().map(|entry| entry.untimed).sum()
}

/// Returns a short time in ms.
fn ms(ns: u64) -> String {
    let number = format!("{:.3}", ns as f64 / 1e6);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number} ms")
}

/// Returns a long time in s.
fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}
