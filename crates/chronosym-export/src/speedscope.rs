//! speedscope's own format (speedscope.app/file-format-schema.json): a sampled profile for each thread.

use std::io::{self, Write};
use std::sync::Arc;

use chronosym_types::escape::push_json;

use crate::measure::Measure;
use crate::series::{Series, sum};
use crate::tables::Table;

/// A file, and the line where lines are apart.
type Place = (Arc<str>, Option<u32>);

/// Writes the samples of each thread by time; samples in a row with one stack become one. Frames are told apart by
/// function, file and, if they are to be apart, line.
pub fn write_speedscope(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let resolver = &series.resolver;
    let rows = series.rows();
    let labels = series.labels(&rows);
    let mut frames: Table<(u32, Option<Place>)> = Table::starting_with((u32::MAX, None));
    let of_frame: Vec<usize> = resolver
        .frames()
        .iter()
        .map(|frame| {
            let line = frame.line.as_ref().ok();
            let number = |line: u32| series.apart.lines.then_some(line);
            let place = line.map(|line| (Arc::clone(&line.file), number(line.line)));
            frames.id((rows.of[frame.function.id().index()], place)) - 1
        })
        .collect();
    let mut text = String::from(
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":",
    );
    push_json(
        &format!("chronosym {}", env!("CARGO_PKG_VERSION")),
        &mut text,
    );
    text.push_str(",\"name\":");
    push_json(&series.title(), &mut text);
    text.push_str(",\"shared\":{\"frames\":[");
    for (index, (row, place)) in frames.rows.iter().skip(1).enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str("\n{\"name\":");
        let line = place.as_ref().and_then(|(_, line)| *line);
        let label = &labels[*row as usize];
        match line {
            Some(line) => push_json(&format!("{label}:{line}"), &mut text),
            None => push_json(label, &mut text),
        }
        if let Some((file, _)) = place {
            text.push_str(",\"file\":");
            push_json(file, &mut text);
        }
        if let Some(line) = line {
            text.push_str(&format!(",\"line\":{line}"));
        }
        text.push('}');
    }
    text.push_str("]},\"profiles\":[");
    out.write_all(text.as_bytes())?;
    let tracks = series.tracks();
    let mut hottest = (0, 0);
    for (index, track) in tracks.iter().enumerate() {
        let total = sum(track.samples.iter().copied());
        hottest = hottest.max((total, tracks.len() - index));
        let (process, thread) = series.places(track.thread);
        let mut text = String::from(if index > 0 { "," } else { "" });
        text.push_str("\n{\"type\":\"sampled\",\"name\":");
        push_json(&format!("{process} {thread}"), &mut text);
        let unit = match series.measure {
            Measure::Time => "nanoseconds",
            Measure::Bytes => "bytes",
            Measure::Samples => "none",
        };
        out.write_all(text.as_bytes())?;
        write!(
            out,
            ",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{total},\"samples\":["
        )?;
        let (mut weights, mut stack) = (Vec::new(), Vec::new());
        for run in track.samples.chunk_by(|a, b| a.stack == b.stack) {
            if !weights.is_empty() {
                out.write_all(b",")?;
            }
            weights.push(sum(run.iter().copied()));
            stack.clear();
            let frames = resolver.stack(run[0].stack);
            stack.extend(frames.map(|frame| of_frame[frame.index()]));
            stack.reverse();
            serde_json::to_writer(&mut *out, &stack)?;
        }
        out.write_all(b"],\"weights\":")?;
        serde_json::to_writer(&mut *out, &weights)?;
        out.write_all(b"}")?;
    }
    let active = tracks.len().saturating_sub(hottest.1);
    writeln!(out, "],\"activeProfileIndex\":{active}}}")
}
