//! speedscope's own format (speedscope.app/file-format-schema.json): a sampled profile for each thread.

use std::io::{self, Write};
use std::sync::Arc;

use chronosym_types::escape::push_json;

use crate::series::{Series, TimedSample, Unit};
use crate::tables::Table;

/// Writes the samples of each thread by time; samples in a row with one stack become one. Frames are told apart by
/// function and file.
pub fn write_speedscope(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let resolver = &series.resolver;
    let rows = series.rows();
    let labels = series.labels(&rows);
    let mut frames: Table<(u32, Option<Arc<str>>)> = Table::starting_with((u32::MAX, None));
    let of_frame: Vec<usize> = resolver
        .frames()
        .iter()
        .map(|frame| {
            let file = frame.line.as_ref().ok().map(|line| Arc::clone(&line.file));
            frames.id((rows.of[frame.function.id().index()], file)) - 1
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
    for (index, (row, file)) in frames.rows.iter().skip(1).enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str("\n{\"name\":");
        push_json(&labels[*row as usize], &mut text);
        if let Some(file) = file {
            text.push_str(",\"file\":");
            push_json(file, &mut text);
        }
        text.push('}');
    }
    text.push_str("]},\"profiles\":[");
    out.write_all(text.as_bytes())?;
    let threads = series.by_thread();
    let mut hottest = (0, 0);
    for (index, (thread, samples)) in threads.iter().enumerate() {
        let total = samples
            .iter()
            .fold(0, |sum: u64, s| sum.saturating_add(s.weight));
        hottest = hottest.max((total, threads.len() - index));
        let (process, thread) = series.places(*thread);
        let mut text = String::from(if index > 0 { "," } else { "" });
        text.push_str("\n{\"type\":\"sampled\",\"name\":");
        push_json(&format!("{process} {thread}"), &mut text);
        let unit = match series.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Samples => "none",
        };
        out.write_all(text.as_bytes())?;
        write!(
            out,
            ",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{total},\"samples\":["
        )?;
        let (mut weights, mut stack) = (Vec::new(), Vec::new());
        for run in samples.chunk_by(|a, b| a.stack == b.stack) {
            if !weights.is_empty() {
                out.write_all(b",")?;
            }
            weights.push(
                run.iter()
                    .fold(0, |sum: u64, s: &&TimedSample| sum.saturating_add(s.weight)),
            );
            stack.clear();
            stack.extend(
                resolver
                    .stack(run[0].stack)
                    .map(|frame| of_frame[frame.index()]),
            );
            stack.reverse();
            serde_json::to_writer(&mut *out, &stack)?;
        }
        out.write_all(b"],\"weights\":")?;
        serde_json::to_writer(&mut *out, &weights)?;
        out.write_all(b"}")?;
    }
    let active = threads.len().saturating_sub(hottest.1);
    writeln!(out, "],\"activeProfileIndex\":{active}}}")
}
