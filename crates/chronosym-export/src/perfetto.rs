//! Traces for Perfetto and Chrome: the JSON of the Trace Event Format, with a slice for each call that
//! samples show, and the runtime's activities.

use std::io::{self, Write};

use chronosym_core::{Marker, ResolvedStack};

use crate::json::Quoted;
use crate::series::{Series, Track, gap};
use crate::track_markers::Markers;
use crate::weight::{WeightUnit, add};

/// Writes a track for each thread. Consecutive samples share the slices of their common callers;
/// gaps between samples end them. The innermost slices take the time of the
/// samples to the nanosecond. The series has a track per thread.
///
/// Markers with an end are asynchronous slices, because those of a thread can overlap its calls;
/// others are instants.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] if weights are not times, and those of `out`.
pub fn write_perfetto(series: &Series, out: &mut impl Write) -> io::Result<()> {
    if series.unit != WeightUnit::Time && !series.samples.is_empty() {
        let error = "a Perfetto trace needs the time of each sample: use folded or speedscope";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    let groups = series.groups();
    let labels = series.labels(&groups);
    let labels: Vec<String> = labels
        .iter()
        .map(|label| Quoted(label).to_string())
        .collect();
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let markers = Markers::new(series);
    let (mut comma, mut number) = ("", 0u64);
    for track in series.tracks() {
        let timeline = series.resolver.timeline();
        let thread = timeline.thread_view(track.thread);
        let process = thread
            .as_ref()
            .and_then(|it| timeline.process_view(it.process));
        let pid = process.and_then(|process| process.pid).unwrap_or(0);
        let ids = format!(
            "\"pid\":{pid},\"tid\":{}",
            thread.map_or(0, |thread| thread.tid)
        );
        let (process, thread) = series.thread_labels(track.thread);
        for (kind, name) in [("process_name", &process), ("thread_name", &thread)] {
            let name = Quoted(name);
            write!(
                out,
                "{comma}\n{{\"ph\":\"M\",{ids},\"name\":\"{kind}\",\"args\":{{\"name\":{name}}}}}"
            )?;
            comma = ",";
        }
        let group = |stack| groups.of_frame(series.resolver.frame(series.resolver.leaf(stack)));
        calls(series, &track, group, |phase, group, time| {
            let (name, time) = (&labels[group], micros(time));
            write!(
                out,
                ",\n{{\"ph\":\"{phase}\",{ids},\"ts\":{time},\"name\":{name}}}"
            )
        })?;
        for marker in markers.of(track.thread) {
            number += 1;
            write_marker(marker, &ids, number, out)?;
        }
    }
    writeln!(out, "\n]}}")
}

/// Writes a marker; `number` is that of an asynchronous slice.
fn write_marker(
    marker: &Marker<'_>,
    ids: &str,
    number: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let (kind, time) = (marker.kind.as_str(), micros(marker.start_ns));
    let text = Quoted(marker.text.unwrap_or_default());
    let what = format!("{ids},\"cat\":\"runtime\",\"name\":\"{kind}\"");
    match marker.end_ns {
        None => write!(
            out,
            ",\n{{\"ph\":\"i\",\"s\":\"t\",{what},\"ts\":{time},\"args\":{{\"text\":{text}}}}}"
        ),
        Some(end) => write!(
            out,
            ",\n{{\"ph\":\"b\",\"id\":{number},{what},\"ts\":{time},\"args\":{{\"text\":{text}}}}},\n{{\"ph\":\"e\",\"id\":{number},{what},\"ts\":{}}}",
            micros(end.max(marker.start_ns))
        ),
    }
}

/// Passes the calls of a track in time order: `B` where a function begins or `E` where the innermost
/// one ends, the function, and the time in ns.
fn calls(
    series: &Series,
    track: &Track<'_>,
    group: impl Fn(ResolvedStack) -> usize,
    mut call: impl FnMut(char, usize, u64) -> io::Result<()>,
) -> io::Result<()> {
    // Functions that have begun, outermost first.
    let mut open: Vec<usize> = Vec::new();
    let mut stack = Vec::new();
    let mut at = track.samples.first().map_or(0, |sample| sample.time_ns);
    let nexts = track.samples.iter().skip(1).map(Some).chain([None]);
    for (sample, next) in track.samples.iter().zip(nexts) {
        stack.clear();
        let mut caller = Some(sample.stack);
        while let Some(of) = caller {
            stack.push(group(of));
            caller = series.resolver.caller(of);
        }
        stack.reverse();
        let both = open.iter().zip(&stack);
        let common = both.take_while(|(open, called)| open == called).count();
        let mut ended = open.drain(common..).rev();
        ended.try_for_each(|function| call('E', function, at))?;
        drop(ended);
        for &function in &stack[common..] {
            call('B', function, at)?;
            open.push(function);
        }
        add(&mut at, sample.weight);
        let gap = next.and_then(|next| gap(at, sample, next));
        if gap.is_some() || next.is_none() {
            let mut ended = open.drain(..).rev();
            ended.try_for_each(|function| call('E', function, at))?;
        }
        at = gap.map_or(at, |gap| gap.end);
    }
    Ok(())
}

/// Formats ns as microseconds with three decimals.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}
