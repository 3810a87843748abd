//! ETW traces (.etl).

use std::collections::HashMap;
use std::sync::Arc;

use chronosym_etl::{Diagnostics, EtlReader, ExtendedItem, ReadAt, Record, TraceHeader};
use chronosym_events::kernel::{KernelEvent, StackMode};
use chronosym_events::{
    Event, EventKey, EventSchema, Guid, PointerSize, Provider, RawEvent, TraceLoggingSchema,
};

use super::etw_stacks::{Mode, StackAssembler, Waiting};
use crate::samples::SampleKind;
use crate::session::{EventTypeId, Loss, SampleSelection, Session};

/// Schemas of event types, made as they come up.
#[derive(Debug, Default)]
pub struct Schemas {
    known: HashMap<Identity, Arc<EventSchema>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    Key(chronosym_etl::EventKey),
    /// A TraceLogging event is what its schema says.
    TraceLogging(Guid, Box<[u8]>),
}

impl Schemas {
    /// The schema of a record's type; `None` for records that are no events (WPP messages, unknown headers).
    pub fn of(&mut self, record: &Record<'_>) -> Option<Arc<EventSchema>> {
        let identity = identity(record)?;
        if let Some(known) = self.known.get(&identity) {
            return Some(known.clone());
        }
        let schema = Arc::new(schema(record)?);
        self.known.insert(identity, schema.clone());
        Some(schema)
    }
}

/// A reader's record as an event in bytes.
pub fn raw_event<'a>(record: &Record<'a>, schema: &'a EventSchema) -> RawEvent<'a> {
    RawEvent {
        time_ns: record.time_ns,
        process_id: record.process_id,
        thread_id: record.thread_id.map(u64::from),
        processor: Some(u32::from(record.cpu)),
        pointer_size: pointer_size(record.pointer_size),
        schema,
        payload: record.payload,
    }
}

fn pointer_size(size: chronosym_etl::PointerSize) -> PointerSize {
    match size {
        chronosym_etl::PointerSize::Four => PointerSize::Four,
        chronosym_etl::PointerSize::Eight => PointerSize::Eight,
    }
}

/// What was found when a trace was read into a session.
#[derive(Clone, Debug)]
pub struct EtlReport {
    /// What the reader found.
    pub diagnostics: Diagnostics,
    /// Stack keys that were never defined.
    pub undefined_stack_keys: u64,
}

/// Reads a trace into a session: an `EtlReader`, or several merged into one.
///
/// Damage is counted in the report; what was readable is in the session.
pub fn read<S: ReadAt>(mut reader: EtlReader<S>, session: &mut Session) -> EtlReport {
    describe(reader.header(), session);
    let mut schemas: HashMap<Identity, (EventTypeId, Arc<EventSchema>)> = HashMap::new();
    let mut source = EtlSource::default();
    while let Some(record) = reader.next_record() {
        let Some(identity) = identity(&record) else {
            continue;
        };
        if !schemas.contains_key(&identity) {
            let Some(schema) = schema(&record).map(Arc::new) else {
                continue;
            };
            schemas.insert(
                identity.clone(),
                (session.event_type(schema.clone()), schema),
            );
        }
        let (id, schema) = &schemas[&identity];
        source.take(&record, *id, schema, session);
    }
    let diagnostics = reader.diagnostics().clone();
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
    EtlReport { diagnostics, undefined_stack_keys }
}

#[derive(Debug, Default)]
struct EtlSource {
    stacks: StackAssembler,
    /// The last CLR event of each thread: its stack may follow as an event.
    last_clr: HashMap<u32, i64>,
}

impl EtlSource {
    fn take(
        &mut self,
        record: &Record<'_>,
        id: EventTypeId,
        schema: &EventSchema,
        session: &mut Session,
    ) {
        let raw = raw_event(record, schema);
        // Stack records come by the hundred thousand and say nothing but stacks.
        let is_stack = matches!(schema.key(), EventKey::Classic { class, .. } if *class == chronosym_events::kernel::classes::STACK_WALK);
        let decoded = if is_stack || !session.is_other(id) {
            raw.decode().ok().flatten()
        } else {
            None
        };
        session.push(id, &raw, record.thread_id.map(u64::from), None);
        let profilers = matches!(session.options.samples, SampleSelection::Profilers);
        match &decoded {
            Some(Event::Kernel(event)) => match event {
                KernelEvent::SampledProfile(sample) if profilers || session.is_selected(id) => {
                    let pid = session
                        .kernel
                        .process_of_thread
                        .get(&sample.thread_id)
                        .copied();
                    let waiting = Waiting {
                        pid: if sample.thread_id == 0 { Some(0) } else { pid },
                        tid: Some(sample.thread_id),
                        kind: SampleKind::Cpu,
                        idle: sample.is_idle(),
                        ip: Some(sample.instruction_pointer),
                        ..waiting(record, id)
                    };
                    return self.stacks.wait(waiting, session);
                }
                KernelEvent::SampleInterval(interval) if interval.source == 0 => {
                    let interval = [interval.new_interval, interval.old_interval]
                        .into_iter()
                        .find(|&i| i != 0);
                    session.facts().sample_interval_ns = interval.map(|i| u64::from(i) * 100);
                }
                KernelEvent::StackWalk(walk) => {
                    let mode = mode_of(walk.frames.iter().next_back(), record.pointer_size);
                    let (pid, tid) = (known(walk.process_id), known(walk.thread_id));
                    let time = walk.event_time.cast_signed();
                    self.stacks
                        .addresses(time, pid, tid, record.cpu, mode, walk.frames.iter());
                }
                KernelEvent::StackKeyReference(reference) => {
                    let mode = match reference.mode {
                        StackMode::Kernel => Mode::Kernel,
                        StackMode::User => Mode::User,
                    };
                    let (pid, tid) = (known(reference.process_id), known(reference.thread_id));
                    let time = reference.event_time.cast_signed();
                    self.stacks
                        .key(time, pid, tid, record.cpu, mode, reference.key);
                }
                KernelEvent::StackKeyDefinition(definition) => {
                    let mode = mode_of(definition.frames.iter().next_back(), record.pointer_size);
                    self.stacks
                        .define(mode, definition.key, definition.frames.iter());
                }
                KernelEvent::UserStack(_) => {
                    for item in record.extended_items() {
                        if let ExtendedItem::Stack(stack) = item {
                            self.stacks.matched(stack.match_id, stack.addresses.iter());
                        }
                    }
                }
                _ => {}
            },
            Some(Event::ClrStackWalk(walk)) => {
                if let Some(raw_time) = record.thread_id.and_then(|tid| self.last_clr.remove(&tid))
                {
                    let (pid, tid) = (record.process_id, record.thread_id);
                    self.stacks.addresses(
                        raw_time,
                        pid,
                        tid,
                        record.cpu,
                        Mode::User,
                        walk.frames.iter(),
                    );
                }
                return;
            }
            _ => {}
        }
        if session.is_selected(id) {
            self.event_with_stack(record, id, schema, session);
        }
    }

    /// An event whose stack is wanted: it is in the record, or comes later.
    fn event_with_stack(
        &mut self,
        record: &Record<'_>,
        id: EventTypeId,
        schema: &EventSchema,
        session: &mut Session,
    ) {
        self.stacks.wait(waiting(record, id), session);
        let (time, pid, tid) = (record.raw_time, record.process_id, record.thread_id);
        for item in record.extended_items() {
            let match_id = match item {
                ExtendedItem::Stack(stack) => {
                    let mut addresses = stack.addresses.iter();
                    let mode = mode_of(addresses.next_back(), stack.addresses.pointer_size());
                    self.stacks
                        .addresses(time, pid, tid, record.cpu, mode, stack.addresses.iter());
                    stack.match_id
                }
                ExtendedItem::StackKey(key) => {
                    self.stacks
                        .key(time, pid, tid, record.cpu, Mode::User, key.key);
                    key.match_id
                }
                _ => continue,
            };
            if match_id != 0 {
                self.stacks.expect_match(match_id);
            }
        }
        let is_clr = matches!(
            schema.key(),
            EventKey::Manifest {
                provider: Provider::Runtime | Provider::Private,
                ..
            }
        );
        if let Some(tid) = record.thread_id.filter(|_| is_clr) {
            self.last_clr.insert(tid, record.raw_time);
        }
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

fn known(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

/// A stack is the kernel's if even its outermost frame lies there.
fn mode_of(outermost: Option<u64>, size: chronosym_etl::PointerSize) -> Mode {
    // 32-bit systems can give 3 GB to user mode, but kernel stacks never end below that.
    let kernel_from = match size {
        chronosym_etl::PointerSize::Four => 0x8000_0000,
        chronosym_etl::PointerSize::Eight => 0xffff_0000_0000_0000,
    };
    if outermost.is_some_and(|address| address >= kernel_from) {
        Mode::Kernel
    } else {
        Mode::User
    }
}

fn describe(header: &TraceHeader, session: &mut Session) {
    let facts = session.facts();
    facts.format = "etl".to_owned();
    facts.version = format!("{}.{}", header.layout_version.0, header.layout_version.1);
    facts.start_unix_ns = Some(chronosym_etl::filetime_to_unix_ns(header.start_time));
    facts.pointer_size = Some(header.pointer_size.bytes() as u8);
    facts.processors = Some(header.processors);
    let (major, minor) = header.os_version;
    facts.machine = Some(format!("Windows {major}.{minor} build {}", header.os_build));
}

fn identity(record: &Record<'_>) -> Option<Identity> {
    if let chronosym_etl::EventKey::Manifest { provider, .. } = record.key
        && let Some(schema) = trace_logging(record)
    {
        return Some(Identity::TraceLogging(Guid(provider.0), schema.into()));
    }
    match record.key {
        chronosym_etl::EventKey::Classic { .. } | chronosym_etl::EventKey::Manifest { .. } => {
            Some(Identity::Key(record.key))
        }
        _ => None,
    }
}

/// The bytes of the schema that a TraceLogging record carries.
fn trace_logging<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    record.extended_items().find_map(|item| match item {
        ExtendedItem::SchemaTl(schema) => Some(schema.as_bytes()),
        _ => None,
    })
}

fn provider_name(record: &Record<'_>) -> Option<String> {
    record.extended_items().find_map(|item| match item {
        ExtendedItem::ProviderTraits(traits) => Some(traits.name().into_owned()),
        _ => None,
    })
}

fn schema(record: &Record<'_>) -> Option<EventSchema> {
    match record.key {
        chronosym_etl::EventKey::Classic {
            class,
            opcode,
            version,
        } => Some(EventSchema::new(EventKey::Classic {
            class: Guid(class.0),
            opcode,
            version,
        })),
        chronosym_etl::EventKey::Manifest {
            provider,
            id,
            version,
            opcode,
            level,
            keyword,
            ..
        } => {
            let provider = Provider::from_guid(Guid(provider.0));
            let name = provider_name(record);
            let described =
                trace_logging(record).and_then(|item| TraceLoggingSchema::parse(item).ok());
            let schema = match described {
                Some(described) => {
                    let provider = name.unwrap_or_else(|| provider.to_string());
                    let key = EventKey::Named {
                        provider: provider.into(),
                        name: described.name.into(),
                    };
                    EventSchema::new(key).with_fields(described.fields)
                }
                None => {
                    let key = EventKey::Manifest {
                        provider,
                        id: u32::from(id),
                        version: u32::from(version),
                    };
                    let schema = EventSchema::new(key);
                    name.iter()
                        .fold(schema, |schema, name| schema.with_provider_name(name))
                }
            };
            Some(schema.with_descriptor(opcode, level, keyword))
        }
        _ => None,
    }
}
