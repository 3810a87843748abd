//! speedscope's own format (speedscope.app/file-format-schema.json): a sampled profile for each
//! thread.

use std::io::{self, Write};
use std::sync::Arc;

use chronosym_core::ResolvedStack;
use chronosym_types::append;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::json::{Quoted, write_list, write_parts};
use crate::series::{Series, Track, gap};
use crate::tables::Numbered;
use crate::weight::{WeightUnit, add};

/// A file and, where frames are distinguished by line, a line.
type FileLine = (Arc<str>, Option<u32>);

/// Writes the samples of all threads together, and those of each thread by time: consecutive
/// samples with the same stack are merged, and gaps between samples have no stack. Frames are
/// distinguished by function, file and, if requested, line.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_speedscope(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let resolver = &series.resolver;
    let groups = series.groups();
    let labels = series.labels(&groups);
    let mut frames: Numbered<(usize, Option<FileLine>)> = Numbered::default();
    let is_sampled = series.sampled_frames();
    let frame_ids = resolver.frames().iter().zip(is_sampled);
    let frame_ids = frame_ids.map(|(frame, is_sampled)| {
        if !is_sampled {
            return usize::MAX;
        }
        let line = frame.line.as_ref().ok();
        let number = |line: u32| series.granularity.lines.then_some(line);
        let file_line = line.map(|line| (Arc::clone(&line.file), number(line.line)));
        frames.insert_full((groups.of_frame(frame), file_line)).0
    });
    let of_frame: Vec<usize> = frame_ids.collect();
    write!(
        out,
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\
         \"exporter\":\"chronosym {}\",\"name\":{},\"shared\":{{\"frames\":[",
        env!("CARGO_PKG_VERSION"),
        Quoted(&series.title())
    )?;
    write_list(out, &frames, |out, (group, file_line)| {
        let label = &labels[*group];
        let line = file_line.as_ref().and_then(|(_, line)| *line);
        let of_line = line.map_or(String::new(), |line| format!(":{line}"));
        write!(out, "\n{{\"name\":{}", Quoted(&format!("{label}{of_line}")))?;
        if let Some((file, _)) = file_line {
            write!(out, ",\"file\":{}", Quoted(file))?;
        }
        if let Some(line) = line {
            write!(out, ",\"line\":{line}")?;
        }
        write!(out, "}}")
    })?;
    write!(out, "]}},\"profiles\":[")?;
    let unit = match series.unit {
        WeightUnit::Time => "nanoseconds",
        WeightUnit::Bytes => "bytes",
        WeightUnit::Samples | WeightUnit::Events => "none",
    };
    let tracks = series.tracks();
    let write_profile = |out: &mut dyn Write, name: &str, profile: &SampledProfile| {
        let end = profile
            .weights
            .iter()
            .fold(profile.start, |end, w| end.saturating_add(*w));
        write!(
            out,
            "\n{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{unit}\",\"startValue\":{},\"endValue\":{end},\"samples\":[",
            Quoted(name),
            profile.start,
        )?;
        let mut stack = Vec::new();
        write_parts(out, &profile.stacks, |part, of| {
            stack.clear();
            if let Some(of) = of {
                let frames = resolver.stack(*of);
                stack.extend(frames.map(|frame| of_frame[frame.index()]));
            }
            append::list(part, b"[]", stack.iter().rev(), |part, frame| {
                append::number(part, *frame as u64);
            });
        })?;
        write!(out, "],\"weights\":[")?;
        write_parts(out, &profile.weights, |part, weight| {
            append::number(part, *weight);
        })?;
        write!(out, "]}}")
    };
    if tracks.len() > 1 {
        write_profile(out, MERGED, &merged(series))?;
        write!(out, ",")?;
    }
    write_list(out, &tracks, |out, track| {
        let (process, thread) = series.thread_labels(track.thread);
        write_profile(out, &format!("{process} {thread}"), &by_time(series, track))
    })?;
    writeln!(out, "],\"activeProfileIndex\":0}}")
}

/// The name of the profile of all threads.
const MERGED: &str = "all threads";

/// A sampled profile of speedscope; time without a stack is a gap.
struct SampledProfile {
    start: u64,
    stacks: Vec<Option<ResolvedStack>>,
    weights: Vec<u64>,
}

impl SampledProfile {
    fn push(&mut self, stack: Option<ResolvedStack>, weight: u64) {
        match (self.stacks.last(), self.weights.last_mut()) {
            (Some(last), Some(sum)) if *last == stack => add(sum, weight),
            _ => {
                self.stacks.push(stack);
                self.weights.push(weight);
            }
        }
    }
}

/// Returns the samples of a track at their times in the trace, if their weights are times.
fn by_time(series: &Series, track: &Track<'_>) -> SampledProfile {
    let is_time = series.unit == WeightUnit::Time;
    let start = track.samples.first().filter(|_| is_time);
    let mut profile = SampledProfile {
        start: start.map_or(0, |sample| sample.time_ns),
        stacks: Vec::new(),
        weights: Vec::new(),
    };
    // Threads of a process overlap.
    let has_gaps = is_time && series.granularity.threads;
    let mut until = profile.start;
    let next = track.samples.iter().skip(1).map(Some).chain([None]);
    for (sample, next) in track.samples.iter().zip(next) {
        profile.push(Some(sample.stack), sample.weight);
        add(&mut until, sample.weight);
        let gap = next
            .filter(|_| has_gaps)
            .and_then(|next| gap(until, sample, next));
        if let Some(gap) = gap {
            profile.push(None, gap.end - gap.start);
            until = gap.end;
        }
    }
    profile
}

/// Returns each stack of all threads once.
fn merged(series: &Series) -> SampledProfile {
    let mut weights: IndexMap<ResolvedStack, u64, FxBuildHasher> = IndexMap::default();
    for sample in &series.samples {
        add(weights.entry(sample.stack).or_default(), sample.weight);
    }
    let (stacks, weights) = weights.into_iter().unzip::<_, _, Vec<_>, _>();
    SampledProfile {
        start: 0,
        stacks: stacks.into_iter().map(Some).collect(),
        weights,
    }
}
