//! ETW traces (.etl).

use chronosym_etl::{Clock, Diagnostics, EtlReader, ExtendedItem, ReadAt, Record, TraceHeader};
use chronosym_events::kernel::{IntervalEvent, KernelEvent, SampleInterval, StackMode, classes};
use chronosym_events::{
    Event, EventKey, EventSchema, MANIFEST_EVENT_ID, PointerSize, Provider, RawEvent,
};
use rustc_hash::FxHashMap;

pub use super::etw_types::Schemas;

use super::etw_stacks::{Mode, Reference, StackAssembler, Waiting};
use crate::samples::SampleKind;
use crate::session::{EventTypeId, Loss, SampleSelection, Session};

/// A reader's record as an event in bytes.
pub fn raw_event<'a>(record: &Record<'a>, schema: &'a EventSchema) -> RawEvent<'a> {
    RawEvent {
        time_ns: record.time_ns,
        process_id: record.process_id,
        thread_id: record.thread_id.map(u64::from),
        processor: Some(u32::from(record.cpu)),
        pointer_size: record.pointer_size,
        schema,
        payload: record.payload,
    }
}

/// What was found when a trace was read into a session.
#[derive(Clone, Debug)]
pub struct EtlReport {
    /// What the reader found.
    pub diagnostics: Diagnostics,
    /// Stack keys that were never defined.
    pub undefined_stack_keys: u64,
    /// Parts of stacks that came more than 2 s after their event and were left out.
    pub late_stack_parts: u64,
    /// Descriptions of events that could not be read.
    pub unreadable_descriptions: u64,
}

/// Reads a trace into a session: an `EtlReader`, or several merged into one.
///
/// Damage is counted in the report; what was readable is in the session.
pub fn read<S: ReadAt>(mut reader: EtlReader<S>, session: &mut Session) -> EtlReport {
    describe(reader.header(), reader.clock(), session);
    let wide = reader.header().pointer_size == PointerSize::Eight;
    let mut schemas = Schemas::default();
    let mut types: Vec<(EventTypeId, Role)> = Vec::new();
    let mut source = EtlSource::new(wide, session);
    while let Some(record) = reader.next_record() {
        let index = schemas.index_of(&record);
        let known = types.len();
        for schema in &schemas.all()[known..] {
            let id = session.event_type(schema.clone());
            types.push((id, source.role(schema, session, id)));
        }
        let (id, role) = types[index as usize];
        if role == Role::Describes {
            schemas.learn_from(&record);
        }
        let schema = &schemas.all()[index as usize];
        source.take(&raw_event(&record, schema), &record, id, role, session);
    }
    // Some descriptions came after the events.
    schemas.redescribe();
    for ((id, _), schema) in types.iter().zip(schemas.all()) {
        session.redescribe(*id, schema);
    }
    session.settle_image_paths();
    let diagnostics = reader.diagnostics().clone();
    let late_stack_parts = source.stacks.late_parts();
    let undefined_stack_keys = source.stacks.finish(session);
    if diagnostics.lost_anything() {
        // The trace does not say when.
        let events =
            diagnostics.events_lost + diagnostics.buffers_lost + diagnostics.lost_event_records;
        session.lost(Loss {
            from_ns: 0,
            to_ns: u64::MAX,
            events,
        });
    }
    EtlReport {
        diagnostics,
        undefined_stack_keys,
        late_stack_parts,
        unreadable_descriptions: schemas.unreadable_descriptions(),
    }
}

/// What is done with the events of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A sample of a profiler, and it is wanted.
    Sample,
    /// A stack of an earlier event, or a part of one.
    Stack,
    /// The stack of the runtime's event before it.
    ClrStack,
    /// How often samples are taken.
    Interval,
    /// A description of other events.
    Describes,
    /// Says nothing that is wanted: only counted.
    Ignored,
    /// The session's business.
    Other,
}

#[derive(Debug)]
struct EtlSource {
    stacks: StackAssembler,
    /// Whether stacks are wanted at all.
    wanted: bool,
    /// Whether those of events of the runtime are.
    clr_wanted: bool,
    /// The raw time of each thread's last event of the runtime, if its stack is wanted and may follow as an event.
    last_clr: FxHashMap<u32, i64>,
}

impl EtlSource {
    fn new(wide: bool, session: &Session) -> Self {
        EtlSource {
            stacks: StackAssembler::new(wide),
            wanted: !matches!(session.options.samples, SampleSelection::None),
            clr_wanted: false,
            last_clr: FxHashMap::default(),
        }
    }

    fn role(&mut self, schema: &EventSchema, session: &Session, id: EventTypeId) -> Role {
        let selected = session.is_selected(id);
        let profilers = matches!(session.options.samples, SampleSelection::Profilers);
        match schema.key() {
            EventKey::Classic { class, opcode, .. } => match (*class, *opcode) {
                (classes::PERF_INFO, 46) if profilers || selected => Role::Sample,
                (classes::PERF_INFO, 47) if selected => Role::Sample,
                (classes::PERF_INFO, 72..=74) => Role::Interval,
                (classes::STACK_WALK, _) if self.wanted => Role::Stack,
                // Context switches and readied threads come by the million.
                (classes::PERF_INFO, 46 | 47)
                | (classes::STACK_WALK, _)
                | (classes::THREAD, 36 | 50) => Role::Ignored,
                (classes::EVENT_INFO, _) => Role::Describes,
                _ => Role::Other,
            },
            EventKey::Manifest {
                id: MANIFEST_EVENT_ID,
                ..
            } => Role::Describes,
            EventKey::Manifest { provider, id, .. } => {
                self.clr_wanted |= selected && is_clr(provider);
                match (provider, id) {
                    (Provider::Runtime, 82) | (Provider::Private, 151) | (Provider::Rundown, 0) => {
                        Role::ClrStack
                    }
                    (Provider::EventTracing, 18) if self.wanted => Role::Stack,
                    _ => Role::Other,
                }
            }
            EventKey::Named { .. } => Role::Other,
        }
    }

    fn take(
        &mut self,
        raw: &RawEvent<'_>,
        record: &Record<'_>,
        id: EventTypeId,
        role: Role,
        session: &mut Session,
    ) {
        match role {
            Role::Other | Role::Describes => session.push(id, raw, raw.thread_id, None),
            Role::Ignored => session.count(id, raw.time_ns),
            Role::Sample | Role::Stack | Role::ClrStack | Role::Interval => {
                session.count(id, raw.time_ns);
                match raw.decode() {
                    Ok(Some(event)) => self.hear(&event, record, id, session),
                    Ok(None) => {}
                    Err(error) => session.undecodable(id, error),
                }
            }
        }
        if role != Role::Sample {
            if session.is_selected(id) {
                self.event_with_stack(raw, record, id, session);
            } else if role != Role::Stack && has_stack(record) {
                session.has_stack(id);
            }
            if self.clr_wanted && role != Role::ClrStack {
                self.remember_clr(record, raw.schema, session.is_selected(id));
            }
        }
    }

    /// Samples and stacks.
    fn hear(
        &mut self,
        event: &Event<'_>,
        record: &Record<'_>,
        id: EventTypeId,
        session: &mut Session,
    ) {
        let stacks = &mut self.stacks;
        match event {
            Event::Kernel(KernelEvent::SampledProfile(sample)) => {
                let ip = sample.instruction_pointer;
                let idle = sample.is_idle();
                stacks.wait(
                    sample_of(record, id, sample.thread_id, ip, idle, session),
                    session,
                );
            }
            Event::Kernel(KernelEvent::PmcInterrupt(sample)) => {
                let ip = sample.instruction_pointer;
                let idle = sample.thread_id == 0;
                stacks.wait(
                    sample_of(record, id, sample.thread_id, ip, idle, session),
                    session,
                );
            }
            Event::Kernel(KernelEvent::SampleInterval(interval)) => {
                set_interval(record.time_ns, interval, session);
            }
            Event::Kernel(KernelEvent::StackWalk(walk)) => {
                let of = Reference {
                    raw_time: walk.event_time.cast_signed(),
                    pid: known(walk.process_id),
                    tid: known(walk.thread_id),
                    cpu: record.cpu,
                };
                stacks.addresses(of, None, walk.frames.iter(), session);
            }
            Event::Kernel(KernelEvent::StackKeyReference(reference)) => {
                let of = Reference {
                    raw_time: reference.event_time.cast_signed(),
                    pid: known(reference.process_id),
                    tid: known(reference.thread_id),
                    cpu: record.cpu,
                };
                let mode = match reference.mode {
                    StackMode::Kernel => Mode::Kernel,
                    StackMode::User => Mode::User,
                };
                stacks.key(of, mode, false, reference.key);
            }
            Event::Kernel(KernelEvent::StackKeyDefinition(definition)) => {
                stacks.define(definition.key, definition.frames.iter(), session);
            }
            Event::Kernel(KernelEvent::UserStack(_)) => {
                for item in record.extended_items() {
                    match item {
                        ExtendedItem::Stack(s) => stacks.matched(s.match_id, s.addresses.iter()),
                        ExtendedItem::StackKey(s) => stacks.matched_key(s.match_id, s.key),
                        _ => {}
                    }
                }
            }
            Event::ClrStackWalk(walk) => {
                if let Some(tid) = record.thread_id
                    && let Some(raw_time) = self.last_clr.remove(&tid)
                {
                    let of = Reference {
                        raw_time,
                        ..of_record(record)
                    };
                    stacks.addresses(of, Some(Mode::User), walk.frames.iter(), session);
                }
            }
            _ => {}
        }
    }

    /// An event whose stack is wanted: it is in the record, or comes later.
    fn event_with_stack(
        &mut self,
        raw: &RawEvent<'_>,
        record: &Record<'_>,
        id: EventTypeId,
        session: &mut Session,
    ) {
        let mut event = waiting(record, id);
        // The stack of a context switch is that of the thread which goes on.
        if matches!(
            raw.schema.key(),
            EventKey::Classic {
                class: classes::THREAD,
                opcode: 36,
                ..
            }
        ) && let Ok(Some(Event::Kernel(KernelEvent::CSwitch(switch)))) = raw.decode()
        {
            event.tid = Some(switch.new_thread_id);
            event.pid = session.kernel.process_of(switch.new_thread_id);
        }
        self.stacks.wait(event, session);
        let of = Reference {
            tid: event.tid,
            ..of_record(record)
        };
        for item in record.extended_items() {
            match item {
                ExtendedItem::Stack(stack) => {
                    let addresses = stack.addresses.iter();
                    self.stacks.addresses(of, None, addresses, session);
                    self.stacks.expect_match(stack.match_id);
                }
                ExtendedItem::StackKey(key) => {
                    // Another half follows only on a stack of the kernel.
                    let mode = if key.match_id == 0 {
                        Mode::User
                    } else {
                        Mode::Kernel
                    };
                    self.stacks.key(of, mode, true, key.key);
                    self.stacks.expect_match(key.match_id);
                }
                _ => {}
            }
        }
    }

    /// The runtime logs the stack of an event right after it on the same thread.
    fn remember_clr(&mut self, record: &Record<'_>, schema: &EventSchema, wanted: bool) {
        if let Some(tid) = record.thread_id
            && matches!(schema.key(), EventKey::Manifest { provider, .. } if is_clr(provider))
        {
            if wanted {
                self.last_clr.insert(tid, record.raw_time);
            } else {
                self.last_clr.remove(&tid);
            }
        }
    }
}

/// Whether a record carries its stack, or a part of it.
fn has_stack(record: &Record<'_>) -> bool {
    record.extended_items().any(|item| match item {
        ExtendedItem::Stack(stack) => !stack.addresses.is_empty(),
        ExtendedItem::StackKey(_) => true,
        _ => false,
    })
}

fn is_clr(provider: &Provider) -> bool {
    matches!(
        provider,
        Provider::Runtime | Provider::Private | Provider::Rundown
    )
}

fn sample_of(
    record: &Record<'_>,
    id: EventTypeId,
    tid: u32,
    ip: u64,
    idle: bool,
    session: &Session,
) -> Waiting {
    Waiting {
        pid: session.kernel.process_of(tid),
        tid: Some(tid),
        kind: SampleKind::Cpu,
        idle,
        ip: Some(ip),
        ..waiting(record, id)
    }
}

fn waiting(record: &Record<'_>, id: EventTypeId) -> Waiting {
    Waiting {
        raw_time: record.raw_time,
        time_ns: record.time_ns,
        id,
        pid: record.process_id,
        tid: record.thread_id,
        cpu: record.cpu,
        kind: SampleKind::Event,
        idle: false,
        ip: None,
    }
}

fn of_record(record: &Record<'_>) -> Reference {
    Reference {
        raw_time: record.raw_time,
        pid: record.process_id,
        tid: record.thread_id,
        cpu: record.cpu,
    }
}

fn known(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

/// The timer's interval, from now on.
fn set_interval(time_ns: u64, event: &SampleInterval<'_>, session: &mut Session) {
    if event.source != 0 {
        return;
    }
    let (new, old) = (event.new_interval, event.old_interval);
    let interval = match event.event {
        IntervalEvent::Start | IntervalEvent::Set if new != 0 => new,
        _ => old.max(new),
    };
    let facts = session.facts();
    let ends = event.event == IntervalEvent::End;
    if interval != 0 && !(ends && facts.sample_interval_ns.is_some()) {
        facts.sampled_every(time_ns, u64::from(interval) * 100);
    }
}

fn describe(header: &TraceHeader, clock: Clock, session: &mut Session) {
    let facts = session.facts();
    // Of several files the clock has the earliest start, the header may be any one's.
    facts.start_unix_ns = Some(clock.unix_ns(0));
    facts.format = "etl".to_owned();
    facts.version = format!("{}.{}", header.layout_version.0, header.layout_version.1);
    facts.pointer_size = Some(header.pointer_size.bytes() as u8);
    facts.processors = Some(header.processors);
    let (major, minor) = header.os_version;
    facts.machine = Some(format!("Windows {major}.{minor} build {}", header.os_build));
}
