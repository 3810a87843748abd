//! pprof: gzipped protocol buffers, as `go tool pprof` reads them (github.com/google/pprof, proto/profile.proto).

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::series::{Series, Unit};
use crate::tables::Tables;
use crate::wire::Message;

// Field numbers of Profile.
const SAMPLE_TYPE: u32 = 1;
const SAMPLE: u32 = 2;
const MAPPING: u32 = 3;
const LOCATION: u32 = 4;
const FUNCTION: u32 = 5;
const STRING_TABLE: u32 = 6;
const TIME_NANOS: u32 = 9;
const DURATION_NANOS: u32 = 10;
const COMMENT: u32 = 13;
const DEFAULT_SAMPLE_TYPE: u32 = 14;

/// Writes the samples by thread and stack, each with their number and, where it is known, time or bytes. Labels say the
/// process, the thread and the tier of the innermost frame. Text stands as it is in the trace: viewers escape it.
pub fn write_pprof(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::fast());
    let (resolver, timeline) = (&series.resolver, series.resolver.timeline());
    let mut tables = Tables::new(series);
    let mut types = vec![("samples", "count")];
    match series.unit {
        Unit::Nanoseconds => types.push(("time", "nanoseconds")),
        Unit::Bytes => types.push(("space", "bytes")),
        Unit::Samples => {}
    }
    let mut message = Message::default();
    for (name, unit) in &types {
        let (name, unit) = (tables.text(name) as u64, tables.text(unit) as u64);
        message.message(SAMPLE_TYPE, |m| _ = m.int(1, name).int(2, unit));
    }
    for total in series.stacks() {
        let locations = tables.stack(resolver, total.stack);
        let (process, thread) = series.places(total.thread);
        let leaf = resolver.frame(resolver.leaf(total.stack));
        let tier = leaf.tier.map(|tier| tier.name());
        let mut labels = vec![("process", process.as_str()), ("thread", thread.as_str())];
        labels.extend(tier.map(|tier| ("tier", tier)));
        let labels = labels
            .into_iter()
            .map(|(key, text)| (tables.text(key) as u64, tables.text(text) as u64));
        let labels: Vec<_> = labels.collect();
        message.message(SAMPLE, |m| {
            m.packed(1, locations);
            m.packed(
                2,
                [total.samples, total.weight].into_iter().take(types.len()),
            );
            for (key, text) in labels {
                m.message(3, |m| _ = m.int(1, key).int(2, text));
            }
        });
        flush(&mut message, &mut out)?;
    }
    for (id, mapping) in tables.mappings.rows.iter().enumerate().skip(1) {
        message.message(MAPPING, |m| {
            m.int(1, id as u64)
                .int(2, mapping.start)
                .int(3, mapping.limit);
            m.int(5, mapping.path as u64)
                .int(6, mapping.identity as u64);
            // All that can be known of names is: nothing is to be looked up again.
            (7..=10).for_each(|field| _ = m.int(field, 1));
        });
    }
    for (id, location) in tables.locations.rows.iter().enumerate().skip(1) {
        message.message(LOCATION, |m| {
            m.int(1, id as u64)
                .int(2, location.mapping as u64)
                .int(3, location.address);
            for &(function, line, column) in &location.lines {
                m.message(4, |m| {
                    _ = m.int(1, function as u64).int(2, line).int(3, column)
                });
            }
        });
        flush(&mut message, &mut out)?;
    }
    for (id, function) in tables.functions.rows.iter().enumerate().skip(1) {
        message.message(FUNCTION, |m| {
            m.int(1, id as u64).int(2, function.name as u64);
            m.int(3, function.signature as u64)
                .int(4, function.file as u64);
        });
        flush(&mut message, &mut out)?;
    }
    let facts = timeline.facts();
    let start = facts.start_unix_ns.and_then(|ns| u64::try_from(ns).ok());
    message
        .int(TIME_NANOS, start.unwrap_or(0))
        .int(DURATION_NANOS, facts.duration_ns);
    let default = tables.text(types[types.len() - 1].0) as u64;
    let title = tables.text(&series.title()) as u64;
    message
        .packed(COMMENT, [title])
        .int(DEFAULT_SAMPLE_TYPE, default);
    for text in &tables.strings.rows {
        message.text(STRING_TABLE, text);
        flush(&mut message, &mut out)?;
    }
    out.finish()?;
    Ok(())
}

/// Fields of a message can be written one after another.
fn flush(message: &mut Message, out: &mut impl Write) -> io::Result<()> {
    out.write_all(message.bytes())?;
    *message = Message::default();
    Ok(())
}
