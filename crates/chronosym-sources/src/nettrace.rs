//! EventPipe traces: nettrace and netperf.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::panic::resume_unwind;
use std::sync::{Arc, mpsc};
use std::thread;

use chronosym_events::{EventKey, EventSchema, Provider, RawEvent};
use chronosym_nettrace::{
    Error, EventType, EventTypeIndex, Format, LossWindow, Options, Reader, Record, Region,
    TraceHeader,
};

use super::batch::{Batch, Feed, Filler, Rest};
use super::observe::{Observer, Seen};
use crate::error::ReadError;
use chronosym_core::DiagnosticKind::{Damage, Limit, LostEvents, Unused};
use chronosym_core::LiveSession;
use chronosym_core::Loss;
use chronosym_core::RecordingId;
use chronosym_core::Session;
use chronosym_core::{Diagnostic, Diagnostics};

/// The schemas of a reader's event types, made as they come up.
#[derive(Debug, Default)]
pub struct Schemas(OfTypes<Arc<EventSchema>>);

impl Schemas {
    /// The schema of a record's type.
    pub fn of(&mut self, types: &[EventType], record: &Record<'_>) -> &Arc<EventSchema> {
        self.0.add(types, Arc::new);
        self.0.of(types, record, Arc::new)
    }
}

/// What is made of the schemas of a reader's event types.
#[derive(Debug)]
pub(super) struct OfTypes<T> {
    of_type: Vec<T>,
    /// V6 labels can give an event another version than its type has.
    of_version: HashMap<(EventTypeIndex, u8), T>,
}

impl<T> Default for OfTypes<T> {
    fn default() -> Self {
        Self {
            of_type: Vec::new(),
            of_version: HashMap::new(),
        }
    }
}

impl<T> OfTypes<T> {
    /// Makes those of the types that are new.
    pub(super) fn add(&mut self, types: &[EventType], mut make: impl FnMut(EventSchema) -> T) {
        for event_type in &types[self.of_type.len()..] {
            self.of_type.push(make(schema(event_type, None)));
        }
    }

    /// That of a type that was added.
    pub(super) fn of_type(&self, index: EventTypeIndex) -> &T {
        &self.of_type[index.index()]
    }

    /// That of a record, whose type was added.
    pub(super) fn of(
        &mut self,
        types: &[EventType],
        record: &Record<'_>,
        make: impl FnOnce(EventSchema) -> T,
    ) -> &T {
        let index = record.event_type;
        match record.version_override() {
            None => self.of_type(index),
            Some(version) => self
                .of_version
                .entry((index, version))
                .or_insert_with(|| make(schema(&types[index.index()], Some(version)))),
        }
    }
}

/// What a reader of nettrace or netperf found wrong.
pub fn diagnostics(found: &chronosym_nettrace::Diagnostics) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.add_gaps(&found.gaps);
    let (lost, threads) = (found.lost_events(), found.losses.len());
    if lost > 0 {
        let text = format!("the runtime dropped {lost} events on {threads} threads");
        let mut dropped = Diagnostic::new(LostEvents, text);
        dropped.count = lost;
        diagnostics.push(dropped);
    }
    #[rustfmt::skip]
    let counts = [
        (found.bad_records, Damage, "rows of metadata and threads make no sense and were left out"),
        (found.unknown_blocks, Unused, "blocks are of an unknown kind"),
        (found.unknown_metadata, Unused, "events have a type that was never defined"),
        (found.unknown_stacks, Unused, "events name a stack that is not there"),
        (found.unknown_threads, Unused, "events name a thread that is not there"),
        (found.unknown_labels, Unused, "events name labels that are not there"),
        (found.unreadable_fields, Unused, "event types have a field that cannot be read"),
        (found.unknown_options, Unused, "options of event types and threads are of an unknown kind"),
        (found.forced_regions, Limit, "times the events were too many to be put in order as a whole"),
    ];
    diagnostics.add_counts(&counts);
    diagnostics
}

/// Reads a trace into a session, decoding on a thread of its own where there is a processor for it. Damage is counted in
/// the diagnostics; what was readable is in the session.
///
/// # Errors
///
/// Only when the source is no such trace or cannot be read, or when the session was read from another recording:
/// [`ReadError::AnotherRecording`]. A later session of the same process, by the same clock, may follow the first.
pub fn read(source: impl Read + Send, session: &mut Session) -> Result<Diagnostics, ReadError> {
    let mut reader = Reader::new(source, Options::default())?;
    let feed = begin(&mut reader, session, false)?;
    let (diagnostics, end) = read_all(reader, feed, session);
    end?;
    Ok(diagnostics)
}

/// Reads a trace into a session of several recordings. `began_ns` is when it began, in ns since the session's time 0;
/// `process` whose it is; `ticks` says whether its wall-clock samples are wanted.
pub(crate) fn read_joined<R: Read + Send>(
    reader: Reader<R>,
    session: &mut Session,
    began_ns: i64,
    process: Option<u32>,
    ticks: bool,
) -> (Diagnostics, Result<(), Error>) {
    let mut feed = Feed::new(reader.header().pointer_size, began_ns);
    (feed.own_id, feed.process) = (reader.header().process_id, process);
    feed.ticks = ticks;
    read_all(reader, feed, session)
}

fn read_all<R: Read + Send>(
    mut reader: Reader<R>,
    mut feed: Feed,
    session: &mut Session,
) -> (Diagnostics, Result<(), Error>) {
    select(&mut reader, session);
    let take = |batch: &mut Batch| {
        feed.take(batch, session);
    };
    let (found, end) = match thread::available_parallelism() {
        Ok(processors) if processors.get() > 1 => read_ahead(&mut reader, take),
        _ => read_in_turn(&mut reader, take),
    };
    note_losses(&found.loss_windows, &feed, session);
    (diagnostics(&found), end)
}

/// As [`read`], with options for the reader and an observer of every record, in the order of time, before it goes into the
/// session. It can end the reading: what came before is in the session, but for the region of the trace that it ended in.
///
/// # Errors
///
/// As [`read`].
pub fn read_with(
    source: impl Read,
    options: Options,
    session: &mut Session,
    observe: &mut Observer<'_>,
) -> Result<Diagnostics, ReadError> {
    let read = Cell::new(0);
    let source = Counted {
        source,
        read: &read,
    };
    let mut reader = Reader::new(source, options)?;
    let mut feed = begin(&mut reader, session, false)?;
    let (mut filler, mut batch) = (Filler::default(), Batch::default());
    let (mut schemas, mut stack) = (Schemas::default(), Vec::new());
    let (found, end) = each_region(&mut reader, |region| {
        for record in region.in_time_order() {
            let schema = schemas.of(region.event_types(), &record);
            stack.clear();
            if let Some(row) = record.stack {
                stack.extend(region.stack(row).iter());
            }
            let mut event = raw_event(region.header(), &record, schema);
            event.time_ns = feed.at(event.time_ns);
            let seen = Seen {
                event: &event,
                stack: &stack,
                bytes: read.get(),
            };
            if observe(seen).is_break() {
                return false;
            }
        }
        let mut rest = Rest::of(region);
        while !rest.is_taken() {
            filler.fill(&mut rest, &mut batch);
            feed.take(&mut batch, session);
        }
        true
    });
    note_losses(&found.loss_windows, &feed, session);
    end?;
    Ok(diagnostics(&found))
}

/// A source that counts what is read of it.
struct Counted<'c, R> {
    source: R,
    read: &'c Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

/// Reads a trace, perhaps while it is still being written, into a live session.
///
/// What a region of the trace says (its events up to a sequence point) is published when the region is complete: no
/// event of an earlier time can come after it.
///
/// Another trace of the same process can be read into the same session: its times are put into those of the first, by the clock
/// that both headers state.
///
/// # Errors
///
/// As [`read`].
pub fn read_live(source: impl Read, live: &mut LiveSession) -> Result<Diagnostics, ReadError> {
    let mut reader = Reader::new(source, Options::default())?;
    let mut feed = begin(&mut reader, live.session_mut(), true)?;
    select(&mut reader, live.session_mut());
    let (mut filler, mut batch) = (Filler::default(), Batch::default());
    let mut noted = 0;
    while let Some(region) = reader.next_region()? {
        let mut rest = Rest::of(&region);
        let mut last_ns = 0;
        while !rest.is_taken() {
            filler.fill(&mut rest, &mut batch);
            last_ns = feed.take(&mut batch, live.session_mut());
        }
        let losses = &reader.diagnostics().loss_windows;
        note_losses(&losses[noted..], &feed, live.session_mut());
        noted = losses.len();
        live.advance(last_ns);
        live.publish();
    }
    let losses = &reader.diagnostics().loss_windows;
    note_losses(&losses[noted..], &feed, live.session_mut());
    Ok(diagnostics(reader.diagnostics()))
}

/// Several traces of one process have one time: that of the first.
fn begin<R: Read>(
    reader: &mut Reader<R>,
    session: &mut Session,
    live: bool,
) -> Result<Feed, ReadError> {
    let header = reader.header();
    let identity = RecordingId::EventPipe {
        process_id: header.process_id,
        start: header.qpc_start,
        frequency: header.qpc_frequency,
        start_unix_ns: header.start.and_then(|start| start.unix_ns()),
    };
    let is_first = !session.has_recording();
    let began_ns = session.admit(identity, live)?;
    if is_first {
        describe(header, session);
    }
    Ok(Feed::new(header.pointer_size, began_ns))
}

/// Leaves it to the reader to count what the session has no use for.
fn select<R: Read>(reader: &mut Reader<R>, session: &Session) {
    let wanted = session.options().clone();
    reader.select(move |event_type| wanted.wants(&schema(event_type, None)));
}

/// What a reader found wrong, and how it ended.
type Finished = (chronosym_nettrace::Diagnostics, Result<(), Error>);

/// Hands every region to `each`, until that wants no more.
fn each_region<R: Read>(
    reader: &mut Reader<R>,
    mut each: impl FnMut(&Region<'_>) -> bool,
) -> Finished {
    let end = loop {
        match reader.next_region() {
            Ok(Some(region)) if each(&region) => {}
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    (reader.diagnostics().clone(), end)
}

fn read_in_turn<R: Read>(reader: &mut Reader<R>, mut take: impl FnMut(&mut Batch)) -> Finished {
    let (mut filler, mut batch) = (Filler::default(), Batch::default());
    each_region(reader, |region| {
        let mut rest = Rest::of(region);
        while !rest.is_taken() {
            filler.fill(&mut rest, &mut batch);
            take(&mut batch);
        }
        true
    })
}

/// Reads and decodes on another thread, `take` on this one; all on this one where there is no room for another.
fn read_ahead<R: Read + Send>(
    reader: &mut Reader<R>,
    mut take: impl FnMut(&mut Batch),
) -> Finished {
    let (filled, batches) = mpsc::sync_channel::<Batch>(1);
    let (used, spare) = mpsc::channel::<Batch>();
    let read = thread::scope(|scope| {
        let reader = &mut *reader;
        let work = move || {
            let mut filler = Filler::default();
            each_region(reader, |region| {
                let mut rest = Rest::of(region);
                while !rest.is_taken() {
                    let mut batch = spare.try_recv().unwrap_or_default();
                    filler.fill(&mut rest, &mut batch);
                    if filled.send(batch).is_err() {
                        return false;
                    }
                }
                true
            })
        };
        let ahead = thread::Builder::new().spawn_scoped(scope, work).ok()?;
        for mut batch in batches {
            take(&mut batch);
            // Its memory is used again.
            let _ = used.send(batch);
        }
        Some(ahead.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    read.unwrap_or_else(|| read_in_turn(reader, take))
}

fn note_losses(windows: &[LossWindow], feed: &Feed, session: &mut Session) {
    for window in windows {
        let (from, to) = (feed.at(window.from_ns), feed.at(window.to_ns));
        session.lost(Loss::of_events(from, to, window.events));
    }
}

/// A record as an event in bytes.
pub fn raw_event<'a>(
    header: &TraceHeader,
    record: &Record<'a>,
    schema: &'a EventSchema,
) -> RawEvent<'a> {
    RawEvent {
        time_ns: record.time_ns,
        process_id: record.process_id,
        thread_id: Some(record.thread_id),
        processor: record.processor,
        pointer_size: header.pointer_size,
        schema,
        payload: record.payload,
    }
}

pub(crate) fn describe(header: &TraceHeader, session: &mut Session) {
    let family = match header.format {
        Format::Netperf => "netperf",
        Format::Nettrace => "nettrace",
    };
    let facts = session.facts();
    facts.format = family.to_owned();
    facts.version = match header.version {
        (major, 0) => major.to_string(),
        (major, minor) => format!("{major}.{minor}"),
    };
    facts.start_unix_ns = header
        .start
        .and_then(|start| start.unix_ns())
        .map(i128::from);
    facts.pointer_size = Some(header.pointer_size.bytes() as u8);
    facts.processors = header.processors;
    facts.sample_interval_ns = header.sample_rate_ns.filter(|&ns| ns > 0).map(u64::from);
    facts.process_id = header.process_id;
}

/// What the session needs to know of an event type.
fn schema(event_type: &EventType, version: Option<u8>) -> EventSchema {
    let provider = provider_of(event_type);
    let version = version.map_or(event_type.version, u32::from);
    let key = match provider {
        Provider::UniversalSystem | Provider::UniversalEvents if !event_type.name.is_empty() => {
            EventKey::Named {
                provider: event_type.provider.as_str().into(),
                name: event_type.name.as_str().into(),
            }
        }
        provider => EventKey::Manifest {
            provider,
            id: event_type.id,
            version,
        },
    };
    let opcode = event_type.opcode.unwrap_or(0);
    let level = u8::try_from(event_type.level).unwrap_or(u8::MAX);
    let schema = EventSchema::new(key)
        .with_name(&event_type.name)
        .with_descriptor(opcode, level, event_type.keywords);
    match event_type
        .fields
        .as_deref()
        .filter(|fields| !fields.is_empty())
    {
        Some(fields) => schema.with_fields(fields),
        None => schema,
    }
}

fn provider_of(event_type: &EventType) -> Provider {
    match (
        Provider::from_name(&event_type.provider),
        event_type.provider_guid,
    ) {
        (Provider::Name(name), Some(guid)) => match Provider::from_guid(guid) {
            // A GUID says more than a name only where it is one that is known, or where it stands for the name (netperf V1).
            Provider::Guid(guid) if guid.to_string() != *name => Provider::Name(name),
            by_guid => by_guid,
        },
        (by_name, _) => by_name,
    }
}

#[cfg(test)]
mod tests {
    use chronosym_events::Guid;
    use chronosym_support::nettrace::NettraceWriter;

    use super::*;

    fn provider(name: &str, guid: Option<&Provider>) -> Provider {
        let mut event_type = EventType::default();
        event_type.provider = name.to_owned();
        event_type.provider_guid = guid.and_then(Provider::guid);
        provider_of(&event_type)
    }

    #[test]
    fn providers_are_known_by_name_or_by_guid() {
        let own = Provider::Guid(Guid([0xa5; 16]));
        let text = own.to_string();
        assert_eq!(
            provider("Microsoft-Windows-DotNETRuntime", None),
            Provider::Runtime
        );
        // Recorders for which a provider was named by its GUID write that.
        let braces = "{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}";
        assert_eq!(
            provider(braces, Some(&Provider::Runtime)),
            Provider::Runtime
        );
        assert_eq!(provider(&text, Some(&own)), own);
        assert_eq!(
            provider("Acme-Events", Some(&own)),
            Provider::Name("Acme-Events".into())
        );
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }

    #[test]
    fn one_thread_and_two_find_the_same() {
        let mut writer = NettraceWriter::v4();
        let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        let other = writer.event_type("P", 1, 0);
        for time in (0..200i64).step_by(10) {
            let stack = [0x1000 + time.unsigned_abs() % 3, 0x2000];
            writer.event(sample, time, 1, &stack, &[2, 0, 0, 0]);
            writer.event(other, time + 5, 1, &stack, &[]);
            writer.sequence_point();
        }
        let bytes = writer.finish();
        let found = |threads: bool, length: usize, fails: bool| {
            let end: Box<dyn Read + Send> = if fails {
                Box::new(Broken)
            } else {
                Box::new(io::empty())
            };
            let mut reader =
                Reader::new(bytes[..length].chain(end), Options::default()).expect("a trace");
            let mut session = Session::new(chronosym_core::Options::default());
            let mut feed = begin(&mut reader, &mut session, false).expect("the first");
            select(&mut reader, &session);
            let take = |batch: &mut Batch| {
                feed.take(batch, &mut session);
            };
            let (diagnostics, end) = if threads {
                read_ahead(&mut reader, take)
            } else {
                read_in_turn(&mut reader, take)
            };
            let types = session.event_types().iter();
            let counts: Vec<_> = types.map(|t| (t.schema.id(), t.count, t.stacks)).collect();
            let samples: Vec<_> = session.samples().iter().collect();
            let last = session.facts().duration_ns;
            let error = end.err().map(|error| error.to_string());
            (diagnostics, error, counts, samples, last)
        };
        for (length, fails) in [
            (bytes.len(), false),
            (bytes.len() / 2, false),
            (bytes.len() / 2, true),
        ] {
            let (one, two) = (found(false, length, fails), found(true, length, fails));
            assert_eq!(one, two);
            assert_eq!(one.1.is_some(), fails);
            assert!(one.3.len() >= 8, "what came before is kept");
        }
        let whole = found(true, bytes.len(), false);
        assert_eq!(whole.2, [(Some(0), 20, 20), (Some(1), 20, 20)]);
        assert_eq!((whole.3.len(), whole.4), (20, 195));
    }
}
