//! pprof: gzipped protocol buffers, as `go tool pprof` reads them (github.com/google/pprof,
//! proto/profile.proto).

use std::io::{self, Write};

use chronosym_core::Profile;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustc_hash::FxHashMap;

use crate::header::title;
use crate::series::{Granularity, thread_labels};
use crate::tables::Tables;
use crate::weight::WeightUnit;
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

/// Writes the samples by thread and stack, with their number and, where known, time or bytes.
/// Labels state the process, the thread, the tier of the leaf and, of wall-clock samples, the
/// activity. Text is as in the trace: viewers escape it.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_pprof(
    profile: &Profile,
    granularity: Granularity,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::fast());
    let (resolver, timeline) = (&profile.resolver, profile.resolver.timeline());
    let mut tables = Tables::new(resolver, granularity.addresses);
    tables.add_main(profile);
    let unit = WeightUnit::of(profile);
    let mut types = vec![("samples", "count")];
    types.extend(unit.sample_type());
    let mut message = Message::default();
    // The labels of each thread.
    let mut threads = FxHashMap::default();
    for (name, unit) in &types {
        let (name, unit) = (tables.text(name), tables.text(unit));
        message.message(SAMPLE_TYPE, |m| _ = m.int(1, name).int(2, unit));
    }
    for entry in &profile.entries {
        let locations = tables.stack(resolver, entry.stack);
        let of_thread = threads.entry(entry.thread).or_insert_with(|| {
            let (process, thread) = thread_labels(timeline, entry.thread);
            let thread = granularity.threads.then_some(thread);
            let labels = [("process", Some(process)), ("thread", thread)];
            labels.map(|(key, text)| text.map(|text| (tables.text(key), tables.text(&text))))
        });
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        let is_wall = entry.kind.is_wall();
        let own = [
            ("tier", leaf.tier.map(|tier| tier.name())),
            ("activity", is_wall.then(|| entry.activity.as_str())),
        ];
        let own = own.map(|(key, text)| text.map(|text| (tables.text(key), tables.text(text))));
        message.message(SAMPLE, |m| {
            m.packed(1, locations);
            let values = [entry.samples, unit.weight(entry)];
            m.packed(2, values.into_iter().take(types.len()));
            for &(key, text) in of_thread.iter().chain(&own).flatten() {
                m.message(3, |m| _ = m.int(1, key).int(2, text));
            }
        });
        flush(&mut message, &mut out)?;
    }
    for (mapping, id) in tables.mappings.iter().zip(0..).skip(1) {
        message.message(MAPPING, |m| {
            m.int(1, id).int(2, mapping.start).int(3, mapping.limit);
            m.int(5, mapping.path).int(6, mapping.identity);
            // Names are final: `pprof` must not symbolize again.
            (7..=10).for_each(|field| _ = m.int(field, 1));
        });
    }
    for (location, id) in tables.locations.iter().zip(0..).skip(1) {
        message.message(LOCATION, |m| {
            m.int(1, id)
                .int(2, location.mapping)
                .int(3, location.address);
            for &(function, line, column) in &location.lines {
                m.message(4, |m| _ = m.int(1, function).int(2, line).int(3, column));
            }
        });
        flush(&mut message, &mut out)?;
    }
    for (function, id) in tables.functions.iter().zip(0..).skip(1) {
        message.message(FUNCTION, |m| {
            m.int(1, id).int(2, function.name);
            m.int(3, function.signature).int(4, function.file);
        });
        flush(&mut message, &mut out)?;
    }
    let facts = timeline.facts();
    let start = facts.start_unix_ns.and_then(|ns| u64::try_from(ns).ok());
    message
        .int(TIME_NANOS, start.unwrap_or(0))
        .int(DURATION_NANOS, facts.duration_ns);
    let default = tables.text(types[types.len() - 1].0);
    let kinds = profile.entries.iter().map(|entry| entry.kind);
    let title = title(kinds, profile.samples(), unit, unit.total(profile));
    let title = tables.text(&title);
    message
        .packed(COMMENT, [title])
        .int(DEFAULT_SAMPLE_TYPE, default);
    for text in &tables.strings {
        message.text(STRING_TABLE, text);
        flush(&mut message, &mut out)?;
    }
    out.finish()?;
    Ok(())
}

/// Writes the fields so far: a message may be written in parts.
fn flush(message: &mut Message, out: &mut impl Write) -> io::Result<()> {
    out.write_all(message.bytes())?;
    *message = Message::default();
    Ok(())
}
