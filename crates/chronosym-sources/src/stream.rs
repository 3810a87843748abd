//! The events of a recording, whatever its format.

use std::sync::Arc;

use chronosym_core::facts::At;
use chronosym_core::{Diagnostics, EventTypeId, LiveSession, Payload, Session};
use chronosym_events::{EventSchema, RawEvent};

use crate::error::ReadError;

/// An event, borrowed from its stream until the next one.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StreamEvent<'a> {
    /// The event; [`RawEvent::decode`] and [`RawEvent::fields`] return its content.
    pub event: RawEvent<'a>,
    /// Its type, shared by all events of the type.
    pub schema: &'a Arc<EventSchema>,
    /// Addresses of the stack that the record itself carries, leaf first. In .etl files most stacks
    /// are separate events.
    pub stack: &'a [u64],
    /// No later event of the stream is earlier than this, in ns since the recording began. It
    /// equals the event's time if events are in time order.
    pub watermark_ns: u64,
}

impl<'a> StreamEvent<'a> {
    /// Creates an event of a stream in time order.
    pub fn new(event: RawEvent<'a>, schema: &'a Arc<EventSchema>, stack: &'a [u64]) -> Self {
        StreamEvent {
            event,
            schema,
            stack,
            watermark_ns: event.time_ns,
        }
    }

    /// Pushes the event into a session, under the id that the session has for its type.
    pub fn push(&self, id: EventTypeId, session: &mut Session) {
        let event = &self.event;
        let mut at = At::new(event.time_ns);
        (at.process, at.thread) = (event.process_id, event.thread_id);
        let payload = Payload {
            pointer_size: event.pointer_size,
            bytes: event.payload,
        };
        let stack = match session.wants_stack(id) {
            true => session.intern(self.stack.iter().copied()),
            false => None,
        };
        session.push(id, at, payload, stack);
    }
}

/// The events of a recording, whatever its format.
///
/// [`next_event`](Self::next_event) returns one event at a time.
/// [`read_into`](Self::read_into) reads all of them into a [`Session`], at the speed of the format:
/// some decode on a second thread, and some know more of stacks and processes than single events
/// state. Use one of the two on a stream: each continues where the stream is.
///
/// [`Recording::into_events`](crate::open::Recording::into_events) has an example.
pub trait EventStream {
    /// Returns the next event; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the source fails: nothing follows. Damaged parts are skipped and counted in
    /// [`diagnostics`](Self::diagnostics).
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError>;

    /// Returns the diagnostics so far.
    fn diagnostics(&self) -> Diagnostics;

    /// Restricts [`next_event`](Self::next_event) to types of events that `wants` returns true for,
    /// if the format can skip others faster than a caller can; otherwise nothing changes. Call it
    /// before the first event.
    fn select(&mut self, wants: Box<dyn Fn(&EventSchema) -> bool + Send>) {
        let _ = wants;
    }

    /// Restarts with the first event; returns false if the source cannot be read twice.
    fn rewind(&mut self) -> bool {
        false
    }

    /// Reads the next batch of events into a session. Returns a lower bound for the times of later
    /// events, in ns since the session's time 0; `None` at the end, and if the session has reached
    /// its memory limit ([`Session::has_room`]).
    ///
    /// # Errors
    ///
    /// As [`next_event`](Self::next_event); also if the session has read another recording.
    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        if !session.has_room(1) {
            return Ok(None);
        }
        let Some(event) = self.next_event()? else {
            return Ok(None);
        };
        let id = session.event_type(event.schema.clone());
        event.push(id, session);
        Ok(Some(event.watermark_ns))
    }

    /// Reads all remaining events into a session.
    ///
    /// # Errors
    ///
    /// As [`read_batch`](Self::read_batch). The session keeps the events before the error.
    fn read_into(&mut self, session: &mut Session) -> Result<(), ReadError> {
        while self.read_batch(session)?.is_some() {}
        Ok(())
    }
}

/// Reads a stream, perhaps of a recording that is still being written, into a live session, which
/// publishes each batch.
///
/// Streams of several EventPipe sessions of one process can be read into one live session: their
/// times are converted to those of the first, by the clock that both headers state.
///
/// # Errors
///
/// As [`EventStream::read_batch`].
///
/// # Examples
///
/// ```
/// use chronosym_core::LiveSession;
/// use chronosym_sources::{nettrace::NettraceStream, read_live};
/// # use chronosym_support::{nettrace::NettraceWriter, payload::Method};
/// # let mut writer = NettraceWriter::v4();
/// # let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
/// # let method = Method { start: 0x1000, size: 64, names: Some(("Ns.Type", "Run", "")), ..Default::default() };
/// # writer.event(load, 100, 7, &[], &method.encode(2));
/// # let socket = std::io::Cursor::new(writer.finish());
///
/// // Any `Read`, such as the socket of a runtime's diagnostics server.
/// let mut stream = NettraceStream::new(socket, Default::default())?;
/// let mut live = LiveSession::new();
/// let reader = live.reader(); // for other threads
/// read_live(&mut stream, &mut live)?;
/// live.finish();
/// let timeline = reader.timeline();
/// let process = timeline.find_process(4242, None).unwrap();
/// assert_eq!(timeline.bodies(process).next().unwrap().name.as_deref(), Some("Ns.Type.Run"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_live(stream: &mut impl EventStream, live: &mut LiveSession) -> Result<(), ReadError> {
    while live
        .read_batch(|session| stream.read_batch(session))?
        .is_some()
    {}
    Ok(())
}
