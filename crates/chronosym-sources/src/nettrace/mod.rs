//! EventPipe traces: nettrace and netperf.

mod batch;
mod methods;
mod types;

use std::io::Read;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use chronosym_core::DiagnosticKind::{Damage, Limit, LostEvents, Unused};
use chronosym_core::{Diagnostic, Diagnostics, Loss, LossScope, RecordingId, Session};
use chronosym_events::EventSchema;
use chronosym_nettrace::{Error, Format, LossWindow, Options, Reader, Region, TraceHeader};

use crate::error::ReadError;
use crate::stream::{EventStream, StreamEvent};

use batch::{Batch, Filler, Importer, RegionCursor};
pub(crate) use methods::{MethodAddresses, Methods};
use types::{Schemas, raw_event, schema};

/// The events of an EventPipe trace.
///
/// When read into a session, the trace is decoded on a second thread if a processor is available. A
/// batch is a region of the trace: its events up to a sequence point.
pub struct NettraceStream<R> {
    reader: Reader<R>,
    schemas: Schemas,
    stack: Vec<u64>,
    /// The next event of the current region, by time.
    next: usize,
    watermark_ns: u64,
    joined: Option<Joined>,
    filler: Filler,
    batch: Batch,
    /// Set once reading into a session has started.
    importer: Option<Importer>,
    /// Number of losses that have been added to the session, and the last one, which may grow.
    losses: usize,
    last_loss: Option<LossWindow>,
}

/// How a trace is read into a session of several recordings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    /// Start of the trace in ns since the session's time 0.
    pub began_ns: i64,
    /// The process in the session.
    pub process: Option<u32>,
    /// Whether its wall-clock samples are used.
    pub has_ticks: bool,
}

impl<R: Read> NettraceStream<R> {
    /// Opens a trace and reads its header.
    ///
    /// # Errors
    ///
    /// [`ReadError::Nettrace`] if the source is not such a trace or cannot be read.
    pub fn new(source: R, options: Options) -> Result<Self, ReadError> {
        Ok(NettraceStream::of(Reader::new(source, options)?))
    }

    /// Returns the events of a trace whose header has been read.
    pub fn of(reader: Reader<R>) -> Self {
        NettraceStream {
            reader,
            schemas: Schemas::default(),
            stack: Vec::new(),
            next: 0,
            watermark_ns: 0,
            joined: None,
            filler: Filler::default(),
            batch: Batch::default(),
            importer: None,
            losses: 0,
            last_loss: None,
        }
    }

    /// Like [`of`](Self::of), for a session of several recordings.
    pub(crate) fn joined(reader: Reader<R>, joined: Joined) -> Self {
        NettraceStream {
            joined: Some(joined),
            ..NettraceStream::of(reader)
        }
    }

    /// Returns the trace's reader.
    pub fn reader(&self) -> &Reader<R> {
        &self.reader
    }

    /// Starts reading into a session, unless that has started.
    fn begin(&mut self, session: &mut Session) -> Result<(), ReadError> {
        if self.importer.is_some() {
            return Ok(());
        }
        let header = self.reader.header();
        let importer = match self.joined {
            Some(joined) => {
                let mut importer = Importer::new(header.pointer_size, joined.began_ns);
                (importer.own_id, importer.process) = (header.process_id, joined.process);
                importer.ticks = joined.has_ticks;
                importer
            }
            None => {
                let is_first = !session.has_recording();
                let began_ns = session.admit(recording_id(header))?;
                if is_first {
                    describe(header, session);
                }
                Importer::new(header.pointer_size, began_ns)
            }
        };
        // The reader only counts events that the session does not use.
        let wanted = session.options().clone();
        self.filler.activity_ids = wanted.activity_ids;
        if let Some(times) = &wanted.times {
            let (wanted, times) = (wanted.clone(), importer.own_times(times));
            self.reader
                .select_times(times, move |it| wanted.skips_outside(&schema(it, None)));
        }
        self.reader
            .select(move |event_type| wanted.wants(&schema(event_type, None)));
        self.importer = Some(importer);
        Ok(())
    }

    /// Returns the time in the session until which the process's code is known completely, after
    /// all was read into it; `None` if events were lost.
    pub(crate) fn complete_until_ns(&self) -> Option<u64> {
        let counted = self.reader.diagnostics();
        let is_complete = counted.loss_windows.is_empty() && counted.unfollowed_threads == 0;
        let importer = self.importer.as_ref().filter(|_| is_complete);
        importer.map(|importer| importer.reached_ns)
    }

    /// Adds the losses since the last call to the session.
    fn note_losses(&mut self, session: &mut Session) {
        let Some(importer) = &self.importer else {
            return;
        };
        let windows = &self.reader.diagnostics().loss_windows;
        let grown = windows[..self.losses].last();
        let grown = grown.filter(|last| self.last_loss.as_ref() != Some(*last));
        for window in grown.into_iter().chain(&windows[self.losses..]) {
            let (from, to) = (importer.at(window.from_ns), importer.at(window.to_ns));
            let loss = Loss::of_events(from, to, window.events);
            session.lost(match self.joined.and_then(|joined| joined.process) {
                Some(pid) => loss.of_process(Some(pid)).scope(LossScope::Runtime),
                None => loss,
            });
        }
        self.losses = windows.len();
        self.last_loss = windows.last().copied();
    }
}

impl<R: Read + Send> EventStream for NettraceStream<R> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        while self.next >= self.reader.region().len() {
            self.next = 0;
            let Some(region) = self.reader.next_region()? else {
                return Ok(None);
            };
            self.watermark_ns = region.record_by_time(0).map_or(0, |first| first.time_ns);
        }
        let region = self.reader.region();
        let Some(record) = region.record_by_time(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        let schema = self.schemas.of(region.event_types(), &record);
        self.stack.clear();
        if let Some(stack) = record.stack {
            self.stack.extend(region.stack(stack).iter());
        }
        let event = raw_event(&record, region.header().pointer_size, schema);
        Ok(Some(StreamEvent {
            watermark_ns: self.watermark_ns,
            ..StreamEvent::new(event, schema, &self.stack)
        }))
    }

    fn diagnostics(&self) -> Diagnostics {
        diagnostics(self.reader.diagnostics())
    }

    fn select(&mut self, wants: Box<dyn Fn(&EventSchema) -> bool + Send>) {
        self.reader
            .select(move |event_type| wants(&schema(event_type, None)));
    }

    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        self.begin(session)?;
        let region = self.reader.next_region();
        let last_ns = match (&region, &mut self.importer) {
            (Ok(Some(region)), Some(importer)) => {
                let mut cursor = RegionCursor::of(region);
                let mut last_ns = None;
                while !cursor.is_done() && session.has_room(0) {
                    self.filler.fill(&mut cursor, &mut self.batch);
                    last_ns = Some(importer.take(&mut self.batch, session));
                }
                last_ns
            }
            _ => None,
        };
        let end = region.map(|_| last_ns);
        self.note_losses(session);
        Ok(end?)
    }

    fn read_into(&mut self, session: &mut Session) -> Result<(), ReadError> {
        self.begin(session)?;
        let (reader, filler) = (&mut self.reader, &mut self.filler);
        let end = match (thread::available_parallelism(), &mut self.importer) {
            (Ok(processors), Some(importer)) if processors.get() > 1 => {
                read_ahead(reader, filler, |batch| {
                    importer.take(batch, session);
                    session.has_room(0)
                })
            }
            (_, Some(importer)) => read_in_turn(reader, filler, |batch| {
                importer.take(batch, session);
                session.has_room(0)
            }),
            (_, None) => Ok(()),
        };
        self.note_losses(session);
        // Only the process itself writes a recording of one process: it lived until its last event.
        if let (Some(own), Some(importer)) = (self.reader.header().process_id, &self.importer) {
            let process = importer.process.unwrap_or(own);
            session.confirm_permanent_code(Some(process), importer.reached_ns);
        }
        Ok(end?)
    }
}

/// Reads a trace into a session; returns the diagnostics.
///
/// # Errors
///
/// As [`NettraceStream::new`] and [`EventStream::read_into`]. A later EventPipe session of the same
/// process, by the same clock, may be read into the same session.
pub fn read(source: impl Read + Send, session: &mut Session) -> Result<Diagnostics, ReadError> {
    let mut stream = NettraceStream::new(source, Options::default())?;
    stream.read_into(session)?;
    Ok(stream.diagnostics())
}

fn recording_id(header: &TraceHeader) -> RecordingId {
    RecordingId::EventPipe {
        process_id: header.process_id,
        start: header.qpc_start,
        frequency: header.qpc_frequency,
        start_unix_ns: header.start.and_then(|start| start.unix_ns()),
    }
}

/// Passes each region to `each` until it returns false.
fn each_region<R: Read>(
    reader: &mut Reader<R>,
    mut each: impl FnMut(&Region<'_>) -> bool,
) -> Result<(), Error> {
    while let Some(region) = reader.next_region()? {
        if !each(&region) {
            break;
        }
    }
    Ok(())
}

/// Reads and calls `take` on the same thread, until it returns false.
fn read_in_turn<R: Read>(
    reader: &mut Reader<R>,
    filler: &mut Filler,
    mut take: impl FnMut(&mut Batch) -> bool,
) -> Result<(), Error> {
    let mut batch = Batch::default();
    each_region(reader, |region| {
        let mut cursor = RegionCursor::of(region);
        while !cursor.is_done() {
            filler.fill(&mut cursor, &mut batch);
            if !take(&mut batch) {
                return false;
            }
        }
        true
    })
}

/// Reads and decodes on another thread and calls `take` on this one, until it returns false; reads
/// on this one if no thread can be spawned.
fn read_ahead<R: Read + Send>(
    reader: &mut Reader<R>,
    filler: &mut Filler,
    mut take: impl FnMut(&mut Batch) -> bool,
) -> Result<(), Error> {
    let (filled, batches) = mpsc::sync_channel::<Batch>(1);
    let (used, spare) = mpsc::channel::<Batch>();
    let read = thread::scope(|scope| {
        let (reader, filler) = (&mut *reader, &mut *filler);
        let work = move || {
            each_region(reader, |region| {
                let mut cursor = RegionCursor::of(region);
                while !cursor.is_done() {
                    let mut batch = spare.try_recv().unwrap_or_default();
                    filler.fill(&mut cursor, &mut batch);
                    if filled.send(batch).is_err() {
                        return false;
                    }
                }
                true
            })
        };
        let ahead = thread::Builder::new().spawn_scoped(scope, work).ok()?;
        for mut batch in batches {
            if !take(&mut batch) {
                break;
            }
            // Its memory is reused.
            let _ = used.send(batch);
        }
        Some(ahead.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    read.unwrap_or_else(|| read_in_turn(reader, filler, take))
}

/// Converts the diagnostics of the nettrace and netperf reader.
pub fn diagnostics(counted: &chronosym_nettrace::Diagnostics) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.add_gaps(&counted.gaps);
    let (lost, threads) = (counted.lost_events(), counted.losses.len());
    if lost > 0 {
        let text = format!("the runtime dropped {lost} events on {threads} threads");
        let mut dropped = Diagnostic::new(LostEvents, text);
        dropped.count = lost;
        diagnostics.push(dropped);
    }
    #[rustfmt::skip]
    let counts = [
        (counted.bad_records, Damage, "rows of metadata and threads are invalid and were skipped"),
        (counted.misaligned_blocks, Damage, "blocks are not aligned: bytes before them are missing from the file"),
        (counted.repeated_events, Damage, "events are duplicates and were skipped"),
        (counted.unknown_blocks, Unused, "blocks are of an unknown kind"),
        (counted.unknown_metadata, Unused, "events have a type that was never defined"),
        (counted.unknown_stacks, Unused, "events refer to a missing stack"),
        (counted.unknown_threads, Unused, "events refer to a missing thread"),
        (counted.unknown_labels, Unused, "events refer to missing labels"),
        (counted.unreadable_fields, Unused, "event types have a field that cannot be read"),
        (counted.unknown_options, Unused, "options of event types and threads are of an unknown kind"),
        (counted.unfollowed_threads, Limit, "runs of events belong to threads beyond 262,144, whose lost events are not detected"),
        (counted.event_types_left_out, Limit, "definitions of event types were skipped: at most 65,536 are read"),
        (counted.forced_regions, Limit, "times there were too many events to sort at once"),
    ];
    diagnostics.add_counts(&counts);
    diagnostics
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

#[cfg(test)]
mod tests {
    use std::io;

    use chronosym_support::nettrace::NettraceWriter;

    use super::*;

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
        let read = |threads: bool, length: usize, fails: bool| {
            let end: Box<dyn Read + Send> = if fails {
                Box::new(Broken)
            } else {
                Box::new(io::empty())
            };
            let source = bytes[..length].chain(end);
            let mut stream = NettraceStream::new(source, Options::default()).expect("a trace");
            let mut session = Session::new(chronosym_core::Options::default());
            stream.begin(&mut session).expect("the first");
            let mut importer = stream.importer.take().expect("it has begun");
            let take = |batch: &mut Batch| {
                importer.take(batch, &mut session);
                true
            };
            let end = if threads {
                read_ahead(&mut stream.reader, &mut stream.filler, take)
            } else {
                read_in_turn(&mut stream.reader, &mut stream.filler, take)
            };
            let types = session.event_types().iter();
            let counts: Vec<_> = types.map(|t| (t.schema.id(), t.count, t.stacks)).collect();
            let samples: Vec<_> = session.samples().iter().collect();
            let last = session.facts().duration_ns;
            let error = end.err().map(|error| error.to_string());
            (stream.diagnostics(), error, counts, samples, last)
        };
        for (length, fails) in [
            (bytes.len(), false),
            (bytes.len() / 2, false),
            (bytes.len() / 2, true),
        ] {
            let (one, two) = (read(false, length, fails), read(true, length, fails));
            assert_eq!(one, two);
            assert_eq!(one.1.is_some(), fails);
            assert!(one.3.len() >= 8, "what came before is kept");
        }
        let whole = read(true, bytes.len(), false);
        assert_eq!(whole.2, [(Some(0), 20, 20), (Some(1), 20, 20)]);
        assert_eq!((whole.3.len(), whole.4), (20, 195));
    }
}
