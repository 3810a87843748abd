//! LTTng traces: events of the runtime in user space, and processes and threads in the kernel.
//!
//! The runtime's tracepoints become the equivalent ETW events. Their payload is either carried as
//! it is by the tracepoint, or encoded from its fields. They are then decoded like events of
//! EventPipe.

use std::io::Read;
use std::sync::Arc;

use chronosym_ctf::{Event, EventType, Holds, Metadata, NumberType, Reader, Source, Value};
use chronosym_events::{
    Action, EventKey, EventSchema, Field, FieldType, PointerSize, Provider, RawEvent,
};
use rustc_hash::FxHashMap;

use super::{task_state, threads::Threads};
use crate::error::ReadError;
use crate::stream::{EventStream, StreamEvent};
use chronosym_core::DiagnosticKind::{CutShort, Damage, Loss as Lost, LostEvents, Unused};
use chronosym_core::facts::{At, Fact, Process};
use chronosym_core::{
    Diagnostics, EventTypeId, Host, Loss, Payload, RecordingId, Session, StackId, ThreadSwitch,
};

/// The field in which the runtime's tracer stores a payload in ETW's form.
const PACKED: &str = "__data__";

/// The events of LTTng traces that were recorded together.
///
/// When read into a session, kernel events become processes and threads.
pub struct CtfStream<R> {
    reader: Reader<R>,
    events: Events,
    joined: Option<Joined>,
    began_ns: Option<u64>,
    /// Set once reading into a session has started.
    importer: Option<Importer>,
    has_ended: bool,
}

/// How traces are read into a session of several recordings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joined {
    /// Offset in ns from the traces' times to the session's.
    pub offset_ns: i128,
    /// Processes in containers: their own id and the session's.
    pub pids: Vec<(u32, u32)>,
    /// Whether starts and ends of processes are used.
    pub has_lives: bool,
}

impl<R: Read> CtfStream<R> {
    /// Opens traces and their streams.
    ///
    /// # Errors
    ///
    /// [`ReadError::Ctf`] if there is no trace.
    pub fn new(source: Source<R>, options: chronosym_ctf::Options) -> Result<Self, ReadError> {
        Ok(CtfStream::of(Reader::new(source, options)?))
    }

    /// Returns the events of traces that are open.
    pub fn of(reader: Reader<R>) -> Self {
        CtfStream {
            events: Events::of(reader.traces()),
            reader,
            joined: None,
            began_ns: None,
            importer: None,
            has_ended: false,
        }
    }

    /// Like [`of`](Self::of), for a session of several recordings.
    pub(crate) fn joined(reader: Reader<R>, joined: Joined) -> Self {
        CtfStream {
            joined: Some(joined),
            ..CtfStream::of(reader)
        }
    }

    /// Returns the traces' reader.
    pub fn reader(&self) -> &Reader<R> {
        &self.reader
    }

    /// Returns the time of the first event, in ns on the clock of the first trace.
    fn began_ns(&mut self) -> u64 {
        let reader = &mut self.reader;
        *self
            .began_ns
            .get_or_insert_with(|| reader.next_time_ns().unwrap_or_default())
    }

    fn begin(&mut self, session: &mut Session) -> Result<(), ReadError> {
        let joined = match self.joined.take() {
            Some(joined) => joined,
            None => {
                session.admit(RecordingId::Whole)?;
                let began_ns = self.began_ns();
                describe(self.reader.traces(), began_ns, session);
                Joined {
                    offset_ns: -i128::from(began_ns),
                    has_lives: true,
                    ..Joined::default()
                }
            }
        };
        self.importer = Some(Importer {
            joined,
            types: FxHashMap::default(),
            threads: Threads::default(),
        });
        Ok(())
    }

    fn finish(&mut self, session: &mut Session) {
        self.has_ended = true;
        let Some(importer) = &self.importer else {
            return;
        };
        importer.threads.name_processes(session);
        for loss in &self.reader.diagnostics().losses {
            let (from, to) = (importer.time(loss.from_ns), importer.time(loss.to_ns));
            session.lost(match loss.events {
                Some(events) => Loss::of_events(from, to, events),
                None => {
                    let mut loss = Loss::between(from, to);
                    loss.buffers = 1;
                    loss
                }
            });
        }
    }

    /// Reads the next event into a session; returns its time.
    fn step(&mut self, session: &mut Session) -> Result<Option<u64>, chronosym_ctf::Error> {
        let Some(importer) = &mut self.importer else {
            return Ok(None);
        };
        let event = self.reader.next_event()?;
        Ok(event.map(|event| importer.take(&event, &mut self.events, session)))
    }
}

impl<R: Read> EventStream for CtfStream<R> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        let began_ns = self.began_ns();
        let Some(event) = self.reader.next_event()? else {
            return Ok(None);
        };
        let (event, schema) = self.events.raw_event(&event, event.time_ns - began_ns);
        Ok(Some(StreamEvent::new(event, schema, &[])))
    }

    fn diagnostics(&self) -> Diagnostics {
        diagnostics(self.reader.diagnostics())
    }

    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        if self.has_ended {
            return Ok(None);
        }
        if self.importer.is_none() {
            self.begin(session)?;
        }
        let step = match session.has_room(1) {
            true => self.step(session),
            false => Ok(None),
        };
        if !matches!(step, Ok(Some(_))) {
            self.finish(session);
        }
        Ok(step?)
    }
}

/// Converts the diagnostics of the CTF reader.
fn diagnostics(counted: &chronosym_ctf::Diagnostics) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    #[rustfmt::skip]
    let counts = [
        (counted.lost_events, LostEvents, "events were lost while recording"),
        (counted.lost_packets, Lost, "packets were lost while recording"),
        (counted.cut_streams, CutShort, "streams of the trace are cut short"),
        (counted.bad_packets, Damage, "packets contain an invalid event; the rest of each was skipped"),
        (counted.bytes_skipped, Damage, "bytes could not be read as events"),
        (counted.bad_definitions, Damage, "definitions of events cannot be read"),
        (counted.unknown_streams, Unused, "streams belong to a trace without metadata"),
        (counted.late_events, Unused, "events could not be sorted by time"),
    ];
    diagnostics.add_counts(&counts);
    diagnostics
}

/// Records the traces' description of the machine. `began_ns` is the session's time 0 on their
/// clock.
pub(crate) fn describe(traces: &[Metadata], began_ns: u64, session: &mut Session) {
    let env = |name| traces.iter().find_map(|trace| trace.env(name));
    let facts = session.facts();
    facts.format = "ctf".to_owned();
    facts.version = "1.8".to_owned();
    let clock = traces.first().map(Metadata::clock);
    facts.start_unix_ns = clock.map(|clock| clock.wall_ns + i128::from(began_ns));
    facts.pointer_size = Some(match pointer_sizes(traces).first() {
        Some(PointerSize::Four) => 4,
        _ => 8,
    });
    let words = [
        env("sysname").unwrap_or("Linux"),
        env("kernel_release").unwrap_or_default(),
    ];
    facts.machine = Some(words.join(" ").trim_end().to_owned());
    // LTTng identifies the monotonic clock by the boot id.
    let boot_id = clock.and_then(|clock| clock.uuid.as_deref());
    let host = Host::new(
        env("hostname").unwrap_or_default(),
        boot_id.unwrap_or_default(),
    );
    facts.host = (host != Host::default()).then_some(host);
}

/// Returns the pointer size of each trace.
fn pointer_sizes(traces: &[Metadata]) -> Vec<PointerSize> {
    let of = |trace: &Metadata| match trace.env("architecture_bit_width") {
        Some("32") => PointerSize::Four,
        _ => PointerSize::Eight,
    };
    traces.iter().map(of).collect()
}

/// Returns the process and thread of an event, and the thread's name, as far as the recording's
/// context has them.
fn owner<'a>(event: &Event<'a>) -> (Option<u32>, Option<u64>, &'a [u8]) {
    let (mut pid, mut tid, mut name) = (None, None, &[][..]);
    for (field, value) in event.context.iter() {
        match (field, value) {
            ("vpid" | "pid", value) => pid = value.as_u64().and_then(|pid| pid.try_into().ok()),
            ("vtid" | "tid", value) => tid = value.as_u64(),
            ("procname", Value::Text(text)) => name = text,
            _ => {}
        }
    }
    (pid, tid, name)
}

/// Returns the stack in an event's context.
fn call_stack(event: &Event<'_>, session: &mut Session) -> Option<StackId> {
    // The kernel ends a stack with this value.
    const END: u64 = u64::MAX;
    let part = |wanted| {
        let list = event.context.iter().find_map(|(name, value)| match value {
            Value::List(list) if name == wanted => Some(list),
            _ => None,
        });
        let addresses = list.into_iter().flat_map(|list| list.iter());
        addresses.filter_map(|value| value.as_u64())
    };
    let addresses = part("callstack_kernel").chain(part("callstack_user"));
    let addresses: Vec<u64> = addresses.filter(|&address| address != END).collect();
    session.intern_whole(addresses.into_iter())
}

/// What a kernel event reports about a process or thread.
#[derive(Clone, Copy)]
enum Task {
    Fork,
    Exec,
    Exit,
    /// A process that existed before the recording.
    State,
    /// Another thread is scheduled on the processor.
    Switch,
    /// A thread's wait ends.
    Wakeup,
}

impl Task {
    fn of(event: &EventType) -> Option<Self> {
        Some(match &*event.name {
            "sched_process_fork" => Task::Fork,
            "sched_process_exec" => Task::Exec,
            "sched_process_exit" => Task::Exit,
            "lttng_statedump_process_state" => Task::State,
            "sched_switch" => Task::Switch,
            "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => Task::Wakeup,
            _ => return None,
        })
    }
}

/// How a payload is encoded from the fields of an event.
#[derive(Clone, Copy)]
enum Form {
    /// One of the fields is the payload.
    Packed,
    /// In ETW's form: the length of a list is in a preceding field, or part of the event's own
    /// layout.
    Etw,
    /// According to the schema built from the trace's metadata.
    Described,
}

/// Converts events to records with a schema, which is built on first use, and a payload in ETW's
/// form.
struct Events {
    /// One per trace.
    pointer_sizes: Vec<PointerSize>,
    types: FxHashMap<(usize, usize), (Arc<EventSchema>, Form)>,
    payload: Vec<u8>,
}

impl Events {
    /// Creates a converter for events of these traces.
    fn of(traces: &[Metadata]) -> Self {
        Events {
            pointer_sizes: pointer_sizes(traces),
            types: FxHashMap::default(),
            payload: Vec::new(),
        }
    }

    /// Returns the record of an event, at a time in ns since the recording began, and its schema.
    fn raw_event<'a>(
        &'a mut self,
        event: &Event<'a>,
        time_ns: u64,
    ) -> (RawEvent<'a>, &'a Arc<EventSchema>) {
        let key = (event.trace, event.type_index);
        let entry = self.types.entry(key);
        let (schema, form) = entry.or_insert_with(|| schema(event.event_type));
        let packed = match form {
            Form::Packed => match event.fields.get(PACKED) {
                Some(Value::Bytes(bytes)) => Some(bytes),
                _ => None,
            },
            Form::Etw | Form::Described => None,
        };
        if packed.is_none() {
            self.payload.clear();
            encode(event, *form, &mut self.payload);
        }
        let (process_id, thread_id, _) = owner(event);
        let raw = RawEvent {
            time_ns,
            process_id,
            thread_id,
            processor: event.cpu,
            pointer_size: self.pointer_sizes[event.trace],
            schema,
            payload: packed.unwrap_or(&self.payload),
        };
        (raw, schema)
    }
}

/// Returns the schema of the equivalent ETW event, or one built from the trace's metadata.
fn schema(event: &EventType) -> (Arc<EventSchema>, Form) {
    let (provider, symbol) = match event.name.split_once(':') {
        Some((provider, symbol)) => (provider, symbol),
        None => ("kernel", &*event.name),
    };
    let runtime = provider.starts_with("DotNETRuntime");
    let provider = match runtime {
        true => format!("Microsoft-Windows-{provider}"),
        false => provider.to_owned(),
    };
    let is_packed = event.fields.iter().any(|field| &*field.name == PACKED);
    let key = EventKey::from_symbol(&Provider::from_name(&provider), symbol);
    let key = key.unwrap_or_else(|| EventKey::Named {
        provider: provider.into(),
        name: symbol.into(),
    });
    let schema = EventSchema::new(key);
    let is_published = schema.is_typed() || schema.fields().is_some();
    let (schema, form) = match (is_published, is_packed) {
        (true, true) => (schema, Form::Packed),
        (true, false) => (schema, Form::Etw),
        (false, _) => (schema.with_fields(described(event)), Form::Described),
    };
    (Arc::new(schema), form)
}

/// Returns the fields of an event that only the trace describes, as its payload will have them.
fn described(event: &EventType) -> Vec<Field> {
    let fields = event.fields.iter().filter(|field| !field.is_length);
    let described = fields.map(|field| {
        let ty = match field.holds {
            Holds::Number(number) => number_type(number),
            Holds::Text => FieldType::Utf16,
            Holds::List(number) => FieldType::Array(Box::new(number_type(number))),
            _ => FieldType::Unknown,
        };
        Field::new(&*field.name, ty)
    });
    described.collect()
}

/// Returns the field type of a number. Unusual widths are extended to the next supported one.
fn number_type(number: NumberType) -> FieldType {
    match (
        width(number),
        number.is_float,
        number.is_signed,
        number.is_hex,
    ) {
        (4, true, ..) => FieldType::F32,
        (_, true, ..) => FieldType::F64,
        (1, _, true, _) => FieldType::I8,
        (2, _, true, _) => FieldType::I16,
        (4, _, true, _) => FieldType::I32,
        (_, _, true, _) => FieldType::I64,
        (1, _, _, true) => FieldType::Hex8,
        (2, _, _, true) => FieldType::Hex16,
        (4, _, _, true) => FieldType::Hex32,
        (_, _, _, true) => FieldType::Hex64,
        (1, ..) => FieldType::U8,
        (2, ..) => FieldType::U16,
        (4, ..) => FieldType::U32,
        _ => FieldType::U64,
    }
}

/// Returns the width in bytes.
fn width(number: NumberType) -> usize {
    number.bits.div_ceil(8).next_power_of_two() as usize
}

/// Encodes the fields of an event as a payload.
fn encode(event: &Event<'_>, form: Form, out: &mut Vec<u8>) {
    for (declared, (_, value)) in event.event_type.fields.iter().zip(event.fields.iter()) {
        // The length of a list is a separate field, which only this format has.
        if declared.is_length {
            continue;
        }
        match (declared.holds, value) {
            (Holds::Number(ty), value) => encode_number(value, width(ty), out),
            (Holds::Text, Value::Text(text)) => {
                let text = String::from_utf8_lossy(text);
                out.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            }
            (Holds::List(_), Value::Bytes(bytes)) => {
                let bytes = counted(bytes.len(), form, out).map_or(bytes, |most| &bytes[..most]);
                out.extend_from_slice(bytes);
            }
            (Holds::List(ty), Value::List(list)) => {
                let length = usize::try_from(list.len()).unwrap_or(usize::MAX);
                let most = counted(length, form, out).unwrap_or(length);
                let values = list.iter().take(most);
                values.for_each(|value| encode_number(value, width(ty), out));
            }
            // Fields of structs are in between the declared ones.
            _ => return,
        }
    }
}

/// Writes the number of elements that follow, if the description requires it; at most 65,535.
fn counted(length: usize, form: Form, out: &mut Vec<u8>) -> Option<usize> {
    let Form::Described = form else {
        return None;
    };
    let count = u16::try_from(length).unwrap_or(u16::MAX);
    out.extend_from_slice(&count.to_le_bytes());
    Some(count.into())
}

fn encode_number(value: Value<'_>, width: usize, out: &mut Vec<u8>) {
    let bytes = match value {
        Value::Unsigned(number) => number.to_le_bytes(),
        Value::Signed(number) => number.to_le_bytes(),
        Value::Float(number) if width == 4 => u64::from((number as f32).to_bits()).to_le_bytes(),
        Value::Float(number) => number.to_bits().to_le_bytes(),
        _ => return,
    };
    out.extend_from_slice(&bytes[..width.min(8)]);
}

struct Importer {
    joined: Joined,
    types: FxHashMap<(usize, usize), (EventTypeId, Option<Task>)>,
    threads: Threads,
}

impl Importer {
    fn time(&self, ns: u64) -> u64 {
        let time = i128::from(ns) + self.joined.offset_ns;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns the session's id of the process whose own id is `own`.
    fn pid(&self, own: u32) -> u32 {
        let mut pids = self.joined.pids.iter();
        let mapped = pids.find(|&&(inside, _)| inside == own);
        mapped.map_or(own, |&(_, pid)| pid)
    }

    /// Imports an event; returns its time in the session.
    fn take(&mut self, event: &Event<'_>, events: &mut Events, session: &mut Session) -> u64 {
        let time_ns = self.time(event.time_ns);
        let (own_pid, thread, name) = owner(event);
        let process = own_pid.map(|own| self.pid(own));
        let at = At::new(time_ns).of(process, thread);
        if let (Some(pid), Some(tid)) = (process, thread) {
            self.threads.name(at, pid, tid, name, session);
        }
        let (raw, schema) = events.raw_event(event, time_ns);
        let key = (event.trace, event.type_index);
        let (id, task) = *self.types.entry(key).or_insert_with(|| {
            let id = session.event_type(schema.clone());
            (id, Task::of(event.event_type))
        });
        let payload = Payload {
            pointer_size: raw.pointer_size,
            bytes: raw.payload,
        };
        session.push(id, at, payload, None);
        if let Some(task) = task.filter(|_| self.joined.has_lives) {
            self.task(at, id, task, event, session);
        }
        time_ns
    }

    /// Returns the owner of a switch; the idle thread, and threads whose process is unknown, are
    /// skipped.
    fn of_thread(&self, at: At, tid: u64) -> Option<At> {
        let pid = self.threads.process_of(tid).filter(|_| tid != 0)?;
        Some(at.of(Some(pid), Some(tid)))
    }

    /// Applies a context switch. Its stack, if the recording has the contexts `callstack-kernel` and
    /// `callstack-user`, is that of the thread being switched out.
    fn switch(&mut self, at: At, id: EventTypeId, event: &Event<'_>, session: &mut Session) {
        let number = |name| event.fields.get(name).and_then(|value| value.as_u64());
        let (Some(left), Some(state), Some(next)) =
            (number("prev_tid"), number("prev_state"), number("next_tid"))
        else {
            return;
        };
        if let Some(at) = self.of_thread(at, left) {
            let stack = call_stack(event, session);
            session.switch(at, task_state::left(state), stack.map(|stack| (id, stack)));
        }
        if let Some(at) = self.of_thread(at, next) {
            session.switch(at, ThreadSwitch::Run, None);
        }
    }

    /// Applies what a kernel event reports about a process.
    fn task(
        &mut self,
        at: At,
        event_type: EventTypeId,
        task: Task,
        event: &Event<'_>,
        session: &mut Session,
    ) {
        let number = |name| event.fields.get(name).and_then(|value| value.as_u64());
        let id = |name| number(name).and_then(|id| u32::try_from(id).ok());
        let text = |name| match event.fields.get(name) {
            Some(Value::Text(text)) => String::from_utf8_lossy(text),
            _ => Default::default(),
        };
        match task {
            Task::Fork => {
                let name = text("child_comm");
                // For a new thread, the process id differs from the thread id. Older tracers report
                // a process only by its first thread.
                let (Some(tid), Some(pid)) = (id("child_tid"), id("child_pid")) else {
                    return;
                };
                if tid == pid {
                    self.threads.begin(pid, tid.into());
                    session.apply(at.process(pid), Process::new(Action::Load, &*name));
                }
                self.threads
                    .name(at, pid, tid.into(), name.as_bytes(), session);
            }
            Task::Exec => {
                let Some(pid) = at.process.or_else(|| id("tid")) else {
                    return;
                };
                let path = text("filename");
                let name = path.rsplit('/').next().unwrap_or_default();
                session.apply(at.process(pid), Fact::Exec);
                session.apply(at.process(pid), Process::new(Action::DCStart, name));
                // The other threads have ended.
                self.threads.begin(pid, number("tid").unwrap_or(pid.into()));
            }
            Task::Exit => {
                let (Some(tid), Some(pid)) = (number("tid"), at.process) else {
                    return;
                };
                if self.threads.end(pid, tid) {
                    session.apply(at.process(pid), Process::new(Action::Unload, ""));
                    session.name_process(pid, text("comm").as_bytes());
                }
            }
            Task::Switch => {
                // The context is that of the thread being switched out.
                if let (Some(tid), Some(pid)) = (number("prev_tid"), at.process)
                    && pid != 0
                {
                    self.threads
                        .name(at, pid, tid, text("prev_comm").as_bytes(), session);
                }
                if session.options().switches {
                    self.switch(at, event_type, event, session);
                }
            }
            Task::Wakeup => {
                if let Some(woken) = number("tid").and_then(|tid| self.of_thread(at, tid)) {
                    session.wake(woken, |session| {
                        let stack = call_stack(event, session);
                        session.waker_class(at, event_type, stack)
                    });
                }
            }
            Task::State => {
                let (Some(tid), Some(pid)) = (number("tid"), id("pid")) else {
                    return;
                };
                let name = text("name");
                if tid == u64::from(pid) {
                    session.apply(at.process(pid), Process::new(Action::DCStart, &*name));
                }
                self.threads.name(at, pid, tid, name.as_bytes(), session);
            }
        }
    }
}
