//! speedscope's own format (speedscope.app/file-format-schema.json): a sampled profile for each
//! thread.

use std::io::{self, Write};
use std::sync::Arc;

use crate::json::{Quoted, write_list};
use crate::series::{Series, sum};
use crate::tables::Numbered;
use crate::weight::WeightUnit;

/// A file and, where frames are distinguished by line, a line.
type FileLine = (Arc<str>, Option<u32>);

/// Writes the samples of each thread by time; consecutive samples with the same stack are merged.
/// Frames are distinguished by function, file and, if requested, line.
pub fn write_speedscope(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let resolver = &series.resolver;
    let groups = series.groups();
    let labels = series.labels(&groups);
    let mut frames: Numbered<(usize, Option<FileLine>)> = Numbered::default();
    let frame_ids = resolver.frames().iter().map(|frame| {
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
    let mut hottest = (0, 0);
    write_list(out, tracks.iter().zip(0..), |mut out, (track, index)| {
        let total = sum(track.samples.iter().copied());
        hottest = hottest.max((total, tracks.len() - index));
        let (process, thread) = series.thread_labels(track.thread);
        write!(
            out,
            "\n{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{total},\"samples\":[",
            Quoted(&format!("{process} {thread}"))
        )?;
        let (mut weights, mut stack) = (Vec::new(), Vec::new());
        let runs = track.samples.chunk_by(|a, b| a.stack == b.stack);
        write_list(&mut out, runs, |out, run| {
            weights.push(sum(run.iter().copied()));
            stack.clear();
            let frames = resolver.stack(run[0].stack);
            stack.extend(frames.map(|frame| of_frame[frame.index()]));
            stack.reverse();
            Ok(serde_json::to_writer(out, &stack)?)
        })?;
        write!(out, "],\"weights\":")?;
        serde_json::to_writer(&mut out, &weights)?;
        write!(out, "}}")
    })?;
    let active = tracks.len().saturating_sub(hottest.1);
    writeln!(out, "],\"activeProfileIndex\":{active}}}")
}
