//! Merges all streams of a recording by time.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "streams and traces are named by places of their lists, which never shrink; counts of what was read"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

use crate::diagnostics::Diagnostics;
use crate::error::Error;
use crate::metadata::{EventType, Metadata};
use crate::options::Options;
use crate::stream::Stream;
use crate::value::Fields;

/// Clocks of one name whose origins are this close in wall time are the same: tracers read the wall
/// clock one after another.
const SAME_CLOCK_NS: u128 = 5_000_000_000;

/// An event, borrowed from the reader until the next one.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// ns on the clock of the first trace; never earlier than the previous event.
    pub time_ns: u64,
    /// Ticks of the trace's own clock.
    pub ticks: u64,
    /// Index of its trace in [`Source::traces`].
    pub trace: usize,
    /// Processor that recorded it.
    pub cpu: Option<u32>,
    /// Index of its type in [`Metadata::event_types`].
    pub type_index: usize,
    /// Its type.
    pub event_type: &'a EventType,
    /// Fields that the tracer adds to all events: process, thread.
    pub context: Fields<'a>,
    /// Its own fields.
    pub fields: Fields<'a>,
}

/// Traces and their streams.
///
/// Closed: callers build it as a literal.
#[derive(Debug)]
pub struct Source<R> {
    /// Traces that were recorded together.
    pub traces: Vec<Metadata>,
    /// Their streams: the files of channels, in any order. The first packet of each names its
    /// trace.
    pub streams: Vec<R>,
}

/// Reads the streams of traces that were recorded together, in time order.
///
/// LTTng records one trace of user space and one of the kernel, each with a stream for every
/// processor and channel.
#[derive(Debug)]
pub struct Reader<R> {
    traces: Vec<Metadata>,
    /// Offset of each trace's clock from that of the first, in ns.
    offset_ns: Vec<i128>,
    /// With the index of their trace.
    streams: Vec<(usize, Stream<R>)>,
    /// Streams without a trace yet, and the next event of the others.
    new: Vec<usize>,
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
    time_ns: u64,
    /// Bytes of packets.
    held: usize,
    registers: Vec<i128>,
    options: Options,
    diagnostics: Diagnostics,
}

impl<R: Read> Reader<R> {
    /// Opens the streams of traces. Nothing is read yet.
    ///
    /// # Errors
    /// [`Error::NothingDescribed`] if there is no trace.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_ctf::{Metadata, Options, Reader, Source, Value};
    /// # use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
    /// # let mut trace = CtfTrace::new(CtfLayout::default(), &[("vpid", CtfType::Signed(32))]);
    /// # let id = trace.event("app:request", &[("path", CtfType::Text)]);
    /// # let event = |time, path| CtfEvent { time, id, context: vec![CtfValue::Number(10)], fields: vec![CtfValue::Text(path)] };
    /// # let metadata = trace.metadata();
    /// # let (first, second) = (trace.packet(0, 0, 0, &[event(100, "/a")]), trace.packet(0, 0, 1, &[event(50, "/b")]));
    ///
    /// // The file `metadata` of a trace, and its streams, one for each processor.
    /// let traces = vec![Metadata::parse(&metadata, Options::default())?];
    /// let mut reader = Reader::new(Source { traces, streams: vec![&first[..], &second[..]] }, Options::default())?;
    /// let mut paths = Vec::new();
    /// while let Some(event) = reader.next_event()? {
    ///     assert_eq!(event.event_type.name, "app:request");
    ///     assert_eq!(event.context.get("vpid").and_then(|pid| pid.as_u64()), Some(10));
    ///     if let Some(Value::Text(path)) = event.fields.get("path") {
    ///         paths.push(path.to_vec());
    ///     }
    /// }
    /// assert_eq!(paths, [b"/b", b"/a"]); // in time order
    /// # Ok::<(), chronosym_ctf::Error>(())
    /// ```
    pub fn new(source: Source<R>, options: Options) -> Result<Self, Error> {
        let Source { traces, streams } = source;
        let first = traces.first().ok_or(Error::NothingDescribed)?;
        let first = first.clock().clone();
        let offset_ns = traces.iter().map(|trace| {
            let clock = trace.clock();
            let apart = clock.wall_ns - first.wall_ns;
            let is_same = clock.name == first.name && apart.unsigned_abs() < SAME_CLOCK_NS;
            if is_same { 0 } else { apart }
        });
        let diagnostics = Diagnostics {
            bad_definitions: traces.iter().map(Metadata::bad_definitions).sum(),
            ..Diagnostics::default()
        };
        let streams = streams.into_iter().map(|source| (0, Stream::new(source)));
        let streams: Vec<_> = streams.collect();
        Ok(Reader {
            offset_ns: offset_ns.collect(),
            traces,
            new: (0..streams.len()).collect(),
            streams,
            heads: BinaryHeap::new(),
            current: None,
            time_ns: 0,
            held: 0,
            registers: Vec::new(),
            options,
            diagnostics,
        })
    }

    /// Returns the traces.
    pub fn traces(&self) -> &[Metadata] {
        &self.traces
    }

    /// Returns the diagnostics so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Returns the time of the next event, in ns on the clock of the first trace; `None` at the
    /// end.
    pub fn next_time_ns(&mut self) -> Option<u64> {
        self.look();
        self.heads.peek().map(|Reverse((time_ns, _))| *time_ns)
    }

    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if a source failed, after everything read before has been delivered.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        self.look();
        let Some(Reverse((time_ns, at))) = self.heads.pop() else {
            return self.take_failure().map_or(Ok(None), Err);
        };
        self.current = Some(at);
        self.diagnostics.events += 1;
        self.diagnostics.late_events += u64::from(time_ns < self.time_ns);
        self.time_ns = time_ns.max(self.time_ns);
        let (trace, stream) = &self.streams[at];
        let metadata = &self.traces[*trace];
        let fields = |fields| Fields {
            fields,
            packet: stream.content(),
            metadata,
        };
        Ok(Some(Event {
            time_ns: self.time_ns,
            ticks: stream.time,
            trace: *trace,
            cpu: stream.cpu(),
            type_index: stream.event,
            event_type: &metadata.event_types()[stream.event],
            context: fields(stream.context()),
            fields: fields(stream.fields()),
        }))
    }

    /// Decodes each stream's next event.
    fn look(&mut self) {
        for at in std::mem::take(&mut self.new) {
            let (trace, stream) = &mut self.streams[at];
            let uuid = stream.uuid();
            self.diagnostics.bytes_read += stream.window.end_offset();
            let is_own = |it: &Metadata| it.uuid.is_none() || it.uuid == uuid;
            match self.traces.iter().position(is_own) {
                Some(own) => {
                    *trace = own;
                    self.advance(at);
                }
                None => self.diagnostics.unknown_streams += 1,
            }
        }
        if let Some(at) = self.current.take() {
            self.advance(at);
        }
    }

    fn advance(&mut self, at: usize) {
        let (trace, stream) = &mut self.streams[at];
        let metadata = &self.traces[*trace];
        let diagnostics = &mut self.diagnostics;
        let (bytes, losses) = (stream.window.end_offset(), diagnostics.losses.len());
        let others = self.held.saturating_sub(stream.window.capacity());
        let room = self.options.open_limit.saturating_sub(others);
        stream.swap_registers(&mut self.registers);
        let is_there = stream.advance(metadata, self.options.packet_limit.min(room), diagnostics);
        stream.swap_registers(&mut self.registers);
        self.held = others.saturating_add(stream.window.capacity());
        diagnostics.bytes_read += stream.window.end_offset() - bytes;
        let offset_ns = self.offset_ns[*trace];
        let on_first = |ns: u64| {
            let ns = i128::from(ns) + offset_ns;
            u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
        };
        for loss in &mut diagnostics.losses[losses..] {
            (loss.from_ns, loss.to_ns) = (on_first(loss.from_ns), on_first(loss.to_ns));
        }
        if is_there {
            let ns = on_first(metadata.clock().ns(stream.time));
            self.heads.push(Reverse((ns, at)));
        }
    }

    fn take_failure(&mut self) -> Option<Error> {
        let streams = self.streams.iter_mut().enumerate();
        streams.into_iter().find_map(|(at, (_, stream))| {
            let source = stream.window.take_failure()?;
            Some(Error::Io {
                stream: at,
                offset: stream.window.end_offset(),
                source,
            })
        })
    }
}
