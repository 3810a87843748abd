//! Sessions: take the observations of a profiler, as facts or undecoded events.

use std::ffi::{c_char, c_void};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use chronosym::facts::{At, Fact, Sample};
use chronosym::source::nettrace::NettraceStream;
use chronosym::source::read_live;
use chronosym::{
    EventKey, EventSchema, EventTypeId, Guid, LiveReader, LiveSession, OpenError, Options, Payload,
    PointerSize, Provider, Session,
};

use crate::boundary::{call, only};
use crate::facts::{Feed, chronosym_fact};
use crate::handles::{self, handle};
use crate::pointers;
use crate::status::{Failure, chronosym_status};
use crate::text;
use crate::timeline::{TimelineObject, chronosym_timeline};

/// A handle of a session. One thread at a time can feed it; `chronosym_session_timeline` can be called by any thread at any
/// time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct chronosym_session {
    /// Zero is the null handle.
    pub id: u64,
}

handle!(chronosym_session, 4, "session", SessionObject);

pub struct SessionObject {
    writer: Mutex<Writer>,
    /// Of a live session.
    reader: Option<LiveReader>,
}

struct Writer {
    session: State,
    types: Vec<EventTypeId>,
}

enum State {
    Recording(Box<Session>),
    Live(Box<LiveSession>),
    Finished,
}

impl Feed for Session {
    fn apply(&mut self, at: At, fact: Fact<'_>) {
        Session::apply(self, at, fact);
    }

    fn sample(&mut self, at: At, leaf_first: &[u64], sample: Sample) {
        Session::sample(self, at, leaf_first, sample);
    }
}

impl Feed for LiveSession {
    fn apply(&mut self, at: At, fact: Fact<'_>) {
        LiveSession::apply(self, at, fact);
    }

    // Live sessions keep no samples.
    fn sample(&mut self, _: At, _: &[u64], _: Sample) {}
}

fn state(text: &str) -> Failure {
    Failure::new(chronosym_status::State, text)
}

const FINISHED: &str = "the session is finished";
const NOT_LIVE: &str = "the session is not a live one";

impl Writer {
    fn feed(&mut self) -> Result<&mut dyn Feed, Failure> {
        match &mut self.session {
            State::Recording(session) => Ok(&mut **session),
            State::Live(live) => Ok(&mut **live),
            State::Finished => Err(state(FINISHED)),
        }
    }

    fn live(&mut self) -> Result<&mut LiveSession, Failure> {
        match &mut self.session {
            State::Live(live) => Ok(live),
            State::Recording(_) => Err(state(NOT_LIVE)),
            State::Finished => Err(state(FINISHED)),
        }
    }
}

/// Runs a call with exclusive use of the writer of a session.
fn with_writer(
    session: chronosym_session,
    work: impl FnOnce(&mut Writer) -> Result<(), Failure>,
) -> chronosym_status {
    call(|| {
        let object = handles::get(session)?;
        let mut writer = only(&object.writer, "session")?;
        work(&mut writer)
    })
}

/// Feeds elements in order; a failure names the element.
fn each<T>(
    elements: &[T],
    name: &str,
    mut feed: impl FnMut(&T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    elements
        .iter()
        .enumerate()
        .try_for_each(|(index, element)| {
            feed(element).map_err(|failure| failure.in_context(&format!("{name} {index}")))
        })
}

/// # Safety
///
/// `session` is null or can be written.
unsafe fn add(session: *mut chronosym_session, new: State) -> chronosym_status {
    call(|| {
        // SAFETY: as the caller states.
        let session = unsafe { pointers::check_out(session, "session")? };
        let reader = match &new {
            State::Live(live) => Some(live.reader()),
            _ => None,
        };
        let writer = Mutex::new(Writer {
            session: new,
            types: Vec::new(),
        });
        session.write(handles::add(SessionObject { writer, reader })?);
        Ok(())
    })
}

/// Creates a session that keeps samples and has a timeline when it is finished. Free it with
/// `chronosym_session_free`.
///
/// # Safety
///
/// `session` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_new(
    session: *mut chronosym_session,
) -> chronosym_status {
    let new = Session::new(Options::default());
    // SAFETY: as the caller states.
    unsafe { add(session, State::Recording(Box::new(new))) }
}

/// Creates a live session: it has a timeline at any time, and keeps no samples. Free it with `chronosym_session_free`.
///
/// # Safety
///
/// `session` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_new_live(
    session: *mut chronosym_session,
) -> chronosym_status {
    // SAFETY: as the caller states.
    unsafe { add(session, State::Live(Box::default())) }
}

/// Frees a handle. Timelines of the session stay valid.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_session_free(session: chronosym_session) -> chronosym_status {
    call(|| handles::free(session))
}

/// Applies facts, in time order except samples. If one is rejected, those before it stay applied,
/// and the message states its index.
///
/// # Safety
///
/// `facts` points to `count` elements whose pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_apply(
    session: chronosym_session,
    facts: *const chronosym_fact,
    count: usize,
) -> chronosym_status {
    with_writer(session, |writer| {
        // SAFETY: as the caller states.
        let facts = unsafe { pointers::array(facts, count, "facts")? };
        let feed = writer.feed()?;
        // SAFETY: as the caller states.
        each(facts, "fact", |fact| unsafe { fact.apply(feed) })
    })
}

/// An undecoded event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chronosym_event {
    /// ns since the recording began.
    pub time_ns: u64,
    /// The thread id, or 0 if it is unknown.
    pub thread: u64,
    /// The process id.
    pub pid: u32,
    /// The type, from `chronosym_session_event_type`.
    pub event_type: u32,
    /// The fields in order, little-endian, without padding.
    pub payload: *const u8,
    /// Number of bytes of `payload`.
    pub payload_size: usize,
    /// The stack, innermost first, or null. Live sessions do not keep it.
    pub addresses: *const u64,
    /// Number of `addresses`.
    pub address_count: usize,
    /// Bytes of a pointer on the recorded machine: 4 or 8.
    pub pointer_size: u32,
    /// Zero.
    pub reserved: u32,
}

/// Registers an event type: a provider, by its name or GUID, with an id and a version. Equal
/// arguments return the same type.
///
/// # Safety
///
/// `provider` is null or ends with a zero; `event_type` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_event_type(
    session: chronosym_session,
    provider: *const c_char,
    id: u32,
    version: u32,
    event_type: *mut u32,
) -> chronosym_status {
    with_writer(session, |writer| {
        // SAFETY: as the caller states.
        let event_type = unsafe { pointers::check_out(event_type, "event_type")? };
        // SAFETY: as the caller states.
        let provider = unsafe { text::optional(provider, "provider")? };
        let provider = provider.ok_or_else(|| Failure::argument("provider is null"))?;
        let provider = match provider.parse::<Guid>() {
            Ok(guid) => Provider::from_guid(guid),
            Err(_) => Provider::from_name(provider),
        };
        let schema = Arc::new(EventSchema::new(EventKey::Manifest {
            provider,
            id,
            version,
        }));
        let Writer { session, types } = writer;
        let new = match session {
            State::Recording(session) => session.event_type(schema),
            State::Live(live) => live.event_type(schema),
            State::Finished => return Err(state(FINISHED)),
        };
        let index = types.iter().position(|&it| it == new).unwrap_or_else(|| {
            types.push(new);
            types.len() - 1
        });
        event_type.write(index as u32);
        Ok(())
    })
}

/// Pushes undecoded events, which become the same facts. Events that describe code must come in
/// time order. If one is rejected, those before it stay pushed, and the message states its index;
/// an event whose payload cannot be decoded is counted in the diagnostics of the timeline.
///
/// # Safety
///
/// `events` points to `count` elements whose pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_push(
    session: chronosym_session,
    events: *const chronosym_event,
    count: usize,
) -> chronosym_status {
    with_writer(session, |writer| {
        // SAFETY: as the caller states.
        let events = unsafe { pointers::array(events, count, "events")? };
        // SAFETY: as the caller states.
        each(events, "event", |event| unsafe { push(writer, event) })
    })
}

/// # Safety
///
/// The pointers of `event` are valid.
unsafe fn push(writer: &mut Writer, event: &chronosym_event) -> Result<(), Failure> {
    let id = writer.types.get(event.event_type as usize).copied();
    let id = id.ok_or_else(|| Failure::argument("the event type belongs to another session"))?;
    let mut at = At::new(event.time_ns).process(event.pid);
    at.thread = (event.thread != 0).then_some(event.thread);
    let payload = Payload {
        pointer_size: match event.pointer_size {
            4 => PointerSize::Four,
            8 => PointerSize::Eight,
            size => return Err(Failure::argument(format!("a pointer of {size} bytes"))),
        },
        // SAFETY: as the caller states.
        bytes: unsafe { pointers::array(event.payload, event.payload_size, "its payload")? },
    };
    // SAFETY: as the caller states.
    let stack = unsafe { pointers::array(event.addresses, event.address_count, "its addresses")? };
    match &mut writer.session {
        State::Recording(session) => {
            let stack = session
                .wants_stack(id)
                .then(|| session.intern(stack.iter().copied()));
            session.push(id, at, payload, stack.flatten());
        }
        State::Live(live) => live.push(id, at, payload),
        State::Finished => return Err(state(FINISHED)),
    }
    Ok(())
}

/// Writes the next bytes of a stream to `buffer` and returns their number, 0 at the end, or a
/// negative value on an error. It must return normally: no exception may leave it.
pub type chronosym_read =
    Option<unsafe extern "C" fn(data: *mut c_void, buffer: *mut u8, size: usize) -> isize>;

struct Source {
    read: unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> isize,
    data: *mut c_void,
}

// SAFETY: the interface states that the callback is called by any thread, one at a time.
unsafe impl Send for Source {}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the caller of `chronosym_session_read` states that the callback is valid during the call.
        let read = unsafe { (self.read)(self.data, buffer.as_mut_ptr(), buffer.len()) };
        match usize::try_from(read) {
            Ok(read) if read <= buffer.len() => Ok(read),
            Ok(_) => Err(io::Error::other(
                "the callback returned more bytes than the buffer holds",
            )),
            Err(_) => Err(io::Error::other("the callback failed")),
        }
    }
}

/// Reads a nettrace stream, as sent by the .NET diagnostics port, into a live session until its
/// end, and publishes each batch, so that other threads get timelines in the meantime.
///
/// # Safety
///
/// `read` can be called with `data`, by any thread, until this call returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_read(
    session: chronosym_session,
    read: chronosym_read,
    data: *mut c_void,
) -> chronosym_status {
    with_writer(session, |writer| {
        let read = read.ok_or_else(|| Failure::argument("read is null"))?;
        let source = Source { read, data };
        let live = writer.live()?;
        let result = NettraceStream::new(source, Default::default())
            .and_then(|mut stream| read_live(&mut stream, live));
        result.map_err(|source| {
            let name = "the stream".to_owned();
            OpenError::Trace { name, source }.into()
        })
    })
}

/// States that no event of an earlier time follows: answers before this time that name code are
/// final.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_session_advance(
    session: chronosym_session,
    watermark_ns: u64,
) -> chronosym_status {
    with_writer(session, |writer| {
        writer.live()?.advance(watermark_ns);
        Ok(())
    })
}

/// Publishes everything fed so far to the readers of a live session.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_session_publish(session: chronosym_session) -> chronosym_status {
    with_writer(session, |writer| {
        writer.live()?.publish();
        Ok(())
    })
}

/// Drops processes, code, modules and images that ended before a time, in ns, from a live session.
/// `dropped` is null or receives the number of dropped code bodies.
///
/// # Safety
///
/// `dropped` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_forget_before(
    session: chronosym_session,
    horizon_ns: u64,
    dropped: *mut usize,
) -> chronosym_status {
    with_writer(session, |writer| {
        let bodies = writer.live()?.forget_before(horizon_ns);
        if !dropped.is_null() {
            // SAFETY: as the caller states.
            unsafe { pointers::write(dropped, "dropped", bodies)? };
        }
        Ok(())
    })
}

/// Returns the last published timeline of a live session. Never waits for the feeding thread.
///
/// # Safety
///
/// `timeline` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_timeline(
    session: chronosym_session,
    timeline: *mut chronosym_timeline,
) -> chronosym_status {
    call(|| {
        let object = handles::get(session)?;
        // SAFETY: as the caller states.
        let timeline = unsafe { pointers::check_out(timeline, "timeline")? };
        let reader = object.reader.as_ref().ok_or_else(|| state(NOT_LIVE))?;
        timeline.write(handles::add(TimelineObject::of(reader.timeline()))?);
        Ok(())
    })
}

/// Finishes a session, which takes no more facts, and returns its timeline.
///
/// # Safety
///
/// `timeline` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_session_finish(
    session: chronosym_session,
    timeline: *mut chronosym_timeline,
) -> chronosym_status {
    call(|| {
        let object = handles::get(session)?;
        // SAFETY: as the caller states.
        let timeline = unsafe { pointers::check_out(timeline, "timeline")? };
        let mut writer = only(&object.writer, "session")?;
        let finished = match std::mem::replace(&mut writer.session, State::Finished) {
            State::Recording(session) => session.finish(),
            State::Live(mut live) => {
                live.finish();
                live.reader().timeline()
            }
            State::Finished => return Err(state(FINISHED)),
        };
        timeline.write(handles::add(TimelineObject::of(finished))?);
        Ok(())
    })
}
