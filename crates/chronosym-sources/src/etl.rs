//! ETW traces (.etl).

use std::mem;
use std::sync::Arc;

use chronosym_etl::{Clock, ExtendedItem, ReadAt, Reader, Record, TraceHeader};
use chronosym_events::kernel::{IntervalEvent, KernelEvent, SampleInterval, StackMode, classes};
use chronosym_events::{Event, EventKey, EventSchema, PointerSize, Provider, RawEvent};
use chronosym_types::Guid;
use chronosym_types::hash::HashMap;

use super::etw_clr::{LastClr, LastEvents};
use super::etw_processes;
use super::etw_samples::{ClassKey, Owner, Samples};
use super::etw_stacks::{Finished, Mode, Reference, StackAssembler, StackOf, Waiting};
use super::etw_switches::{Switch, Switches};
use super::etw_types::Schemas;
use crate::error::ReadError;
use crate::stream::{EventStream, StreamEvent};
use chronosym_core::DiagnosticKind::{Damage, Loss as Lost, LostEvents, Unused};
use chronosym_core::facts::{At, Sample};
use chronosym_core::{
    ClassIndex, Diagnostics, EventActivity, EventTypeId, Loss, Payload, RecordingId, Returned,
    Role, SampleKind, SampleSelection, Session, StackId, Weight,
};

/// Records in a batch.
const BATCH: usize = 1024;

/// Converts the diagnostics of the .etl reader.
fn diagnostics(counted: &chronosym_etl::Diagnostics) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.add_gaps(&counted.gaps);
    #[rustfmt::skip]
    let counts = [
        (counted.events_lost, LostEvents, "events were lost while recording"),
        (counted.buffers_lost, Lost, "buffers were lost while recording"),
        (counted.missing_buffers, Lost, "buffers that the session wrote are missing in the file"),
        (counted.buffers_with_lost_events, Lost, "buffers are marked: events around them were lost"),
        (counted.buffers_after_lost_buffer, Lost, "buffers are marked: a buffer before them was lost"),
        (counted.lost_event_records, Lost, "times a real-time consumer was too slow and events were lost"),
        (counted.repeated_buffers, Damage, "buffers are duplicates and were skipped"),
        (counted.clamped_times, Unused, "records have times before the start or long after the end, and were moved there"),
        (counted.unordered_buffers, Unused, "buffers had records out of time order, which were sorted"),
        (counted.late_records, Unused, "records could not be sorted by time"),
    ];
    diagnostics.add_counts(&counts);
    diagnostics
}

/// The events of an ETW trace: of one .etl file, or several merged into one.
///
/// [`next_event`](EventStream::next_event) reads the trace once before the first event, for
/// descriptions of event types that follow their events. Parts that cannot be read are gaps in the
/// diagnostics; reading continues after them.
pub struct EtlStream<S> {
    reader: Reader<S>,
    schemas: Schemas,
    is_described: bool,
    stack: Vec<u64>,
    is_joined: bool,
    /// The schemas' event types in the session.
    types: Vec<EventType>,
    /// Set while the trace is read into a session.
    importer: Option<Importer>,
    has_ended: bool,
    undefined_stack_keys: u64,
    late_stack_parts: u64,
}

impl<S: ReadAt> EtlStream<S> {
    /// Opens one .etl file. Several of one recording are merged with [`Reader::merge`].
    ///
    /// # Errors
    ///
    /// [`ReadError::Etl`] if the source is not such a file or cannot be read.
    pub fn new(source: S, options: chronosym_etl::Options) -> Result<Self, ReadError> {
        Ok(EtlStream::of(Reader::new(source, options)?))
    }

    /// Returns the events of a trace that is open.
    pub fn of(reader: Reader<S>) -> Self {
        EtlStream {
            reader,
            schemas: Schemas::default(),
            is_described: false,
            stack: Vec::new(),
            is_joined: false,
            types: Vec::new(),
            importer: None,
            has_ended: false,
            undefined_stack_keys: 0,
            late_stack_parts: 0,
        }
    }

    /// Like [`of`](Self::of), for a session of several recordings, whose time 0 is that of the
    /// trace.
    pub(crate) fn joined(reader: Reader<S>) -> Self {
        EtlStream {
            is_joined: true,
            ..EtlStream::of(reader)
        }
    }

    /// Returns the trace's reader.
    pub fn reader(&self) -> &Reader<S> {
        &self.reader
    }

    /// Starts reading into a session.
    fn begin(&mut self, session: &mut Session) -> Result<(), ReadError> {
        if !self.is_joined {
            session.admit(RecordingId::Whole)?;
        }
        describe(self.reader.header(), self.reader.clock(), session);
        let wide = self.reader.header().pointer_size == PointerSize::Eight;
        self.importer = Some(Importer::new(wide, session));
        Ok(())
    }

    /// Reads the next record into a session; returns its time. `None` at the end, and if the session
    /// has no room.
    #[inline]
    fn read_record(&mut self, session: &mut Session) -> Option<u64> {
        if !session.has_room(1) {
            return None;
        }
        let record = self.reader.next_readable();
        let record = record.as_ref()?;
        let index = self.schemas.index_of(record);
        for schema in &self.schemas.all()[self.types.len()..] {
            self.types.push(EventType::new(schema, session));
        }
        let of = self.types[index as usize];
        let raw = raw_event(record, &self.schemas.all()[index as usize]);
        if let Some(importer) = &mut self.importer {
            importer.take(&raw, record, of, session);
        }
        if of.role == Role::Description {
            self.schemas.describe_by(record);
        }
        Some(record.time_ns)
    }

    /// Ends reading into a session.
    fn finish(&mut self, session: &mut Session) {
        self.has_ended = true;
        // Some descriptions follow their events.
        self.schemas.redescribe();
        for (of, schema) in self.types.iter().zip(self.schemas.all()) {
            session.redescribe(of.id, schema);
        }
        session.rename_volumes();
        if let Some(importer) = self.importer.take() {
            self.late_stack_parts = importer.stacks.late_parts();
            self.undefined_stack_keys = importer.finish(session);
        }
        let counted = self.reader.diagnostics();
        if counted.lost_anything() {
            // The trace does not state when events were lost.
            let mut loss = Loss::of_events(0, u64::MAX, counted.events_lost);
            loss.buffers = counted.buffers_lost.saturating_add(counted.missing_buffers);
            loss.notices = counted.lost_event_records;
            session.lost(loss);
        }
    }
}

impl<S: ReadAt> EventStream for EtlStream<S> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        if !mem::replace(&mut self.is_described, true) {
            self.schemas.observe(&mut self.reader);
        }
        let Some(record) = self.reader.next_readable() else {
            return Ok(None);
        };
        let index = self.schemas.index_of(&record);
        let schema = &self.schemas.all()[index as usize];
        self.stack.clear();
        let stack = record.extended_items().find_map(|item| match item {
            ExtendedItem::Stack(stack) => Some(stack.addresses),
            _ => None,
        });
        self.stack
            .extend(stack.iter().flat_map(|addresses| addresses.iter()));
        let event = raw_event(&record, schema);
        Ok(Some(StreamEvent::new(event, schema, &self.stack)))
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = diagnostics(self.reader.diagnostics());
        let unreadable = self.schemas.unreadable_descriptions();
        #[rustfmt::skip]
        let counts = [
            (self.undefined_stack_keys, Unused, "stack keys were never defined"),
            (self.late_stack_parts, Unused, "parts of stacks came more than 2 s after their event and were skipped"),
            (unreadable, Unused, "descriptions of event types cannot be read"),
        ];
        diagnostics.add_counts(&counts);
        diagnostics
    }

    fn rewind(&mut self) -> bool {
        self.reader.rewind();
        true
    }

    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        if self.has_ended {
            return Ok(None);
        }
        if self.importer.is_none() {
            self.begin(session)?;
        }
        let mut time_ns = 0;
        for _ in 0..BATCH {
            match self.read_record(session) {
                Some(time) => time_ns = time,
                None => {
                    self.finish(session);
                    return Ok(None);
                }
            }
        }
        if let Some(importer) = &mut self.importer {
            importer.samples.log(session);
        }
        Ok(Some(time_ns))
    }
}

/// Reads a trace into a session; returns the diagnostics.
///
/// # Errors
///
/// [`ReadError::AnotherRecording`] if the session has already read a recording.
pub fn read<S: ReadAt>(reader: Reader<S>, session: &mut Session) -> Result<Diagnostics, ReadError> {
    let mut stream = EtlStream::of(reader);
    stream.read_into(session)?;
    Ok(stream.diagnostics())
}

fn raw_event<'a>(record: &Record<'a>, schema: &'a EventSchema) -> RawEvent<'a> {
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

/// Records a CPU sample as evidence only.
fn on_cpu(raw: &RawEvent<'_>, session: &mut Session) {
    if let Ok(Some(Event::Kernel(KernelEvent::SampledProfile(sample)))) = raw.decode()
        && !sample.is_idle()
    {
        let pid = session.process_of_thread(sample.thread_id);
        let at = At::new(raw.time_ns).of(pid, Some(sample.thread_id.into()));
        session.on_cpu(at);
    }
}

fn activity(record: &Record<'_>) -> EventActivity {
    /// `EVENT_HEADER_EXT_TYPE_RELATED_ACTIVITYID`.
    const RELATED: u16 = 1;
    let related = record.extended_items().find_map(|item| match item {
        ExtendedItem::Other(RELATED, bytes) => Some(Guid(bytes.try_into().ok()?)),
        _ => None,
    });
    EventActivity {
        id: record.activity_id,
        related: related.filter(|id| !id.is_zero()),
    }
}

/// An event type as the session sees it.
#[derive(Clone, Copy, Debug)]
struct EventType {
    id: EventTypeId,
    role: Role,
    /// Whether its stacks are selected.
    selected: bool,
    /// Whether the runtime may log its stack as a separate event.
    is_clr: bool,
}

impl EventType {
    fn new(schema: &Arc<EventSchema>, session: &mut Session) -> Self {
        let id = session.event_type(Arc::clone(schema));
        let role = session.role(id);
        EventType {
            id,
            role,
            selected: session.is_selected(id),
            is_clr: is_clr(schema) && role != Role::ClrStack,
        }
    }
}

#[derive(Debug)]
struct Importer {
    stacks: StackAssembler,
    samples: Samples,
    /// Whether stacks are wanted.
    wanted: bool,
    last_clr: LastEvents,
    /// Whether the kernel logger reports processes: its events have more fields than those of other
    /// providers.
    has_kernel_logger: bool,
    /// Performance counters: events per sample, by counter number.
    counters: HashMap<u32, u64>,
    switches: Switches,
    /// The classes of wake-ups whose waits have not ended, by number.
    wakers: HashMap<u32, ClassIndex>,
}

impl Importer {
    fn new(wide: bool, session: &Session) -> Self {
        Importer {
            stacks: StackAssembler::new(wide),
            samples: Samples::default(),
            wanted: !matches!(session.options().samples, SampleSelection::None),
            last_clr: LastEvents::default(),
            has_kernel_logger: false,
            counters: HashMap::default(),
            switches: Switches::default(),
            wakers: HashMap::default(),
        }
    }

    /// Imports one record, and the samples whose stacks have become complete.
    fn take(
        &mut self,
        raw: &RawEvent<'_>,
        record: &Record<'_>,
        of: EventType,
        session: &mut Session,
    ) {
        let EventType {
            id, role, selected, ..
        } = of;
        let is_sample = match role {
            Role::TimerSample => selected || session.options().wants_profilers(),
            Role::CounterSample => selected,
            _ => false,
        };
        let is_stack = role == Role::Stack && self.wanted;
        match role {
            _ if is_sample || is_stack || matches!(role, Role::ClrStack | Role::SampleInterval) => {
                session.count(id, 1, 0, raw.time_ns);
                match raw.decode() {
                    Ok(Some(event)) => self.decoded(&event, record, id, session),
                    Ok(None) => {}
                    Err(error) => session.undecodable(id, error),
                }
            }
            Role::TimerSample | Role::CounterSample | Role::Stack => {
                session.count(id, 1, 0, raw.time_ns);
                if role == Role::TimerSample && session.wants_on_cpu() {
                    on_cpu(raw, session);
                }
            }
            _ => {
                let at = At::new(raw.time_ns).of(raw.process_id, raw.thread_id);
                let payload = Payload {
                    pointer_size: raw.pointer_size,
                    bytes: raw.payload,
                };
                session.push(id, at, payload, None);
                if session.options().activity_ids
                    && let EventKey::Manifest { .. } | EventKey::Named { .. } = raw.schema.key()
                {
                    session.event_activity(id, at, activity(record), raw.payload);
                }
                if !self.has_kernel_logger {
                    self.other_processes(raw, session);
                }
                if let Some(base) = session.lowest_kernel_image() {
                    self.stacks.lowest_kernel_image(base);
                }
            }
        }
        if !is_sample {
            let switch = match selected || session.options().switches {
                true => self.switches.take(role, raw, record, session),
                false => None,
            };
            let is_switch =
                switch.is_some_and(|it| it.wakeup.is_some() || it.returned != Returned::default());
            if selected || is_switch {
                self.event_with_stack(raw, record, id, switch, session);
            }
            let has_stack = !selected && !is_stack && has_stack(record);
            if has_stack {
                session.count(id, 0, 1, 0);
            }
            if of.is_clr
                && let Some(tid) = record.thread_id
            {
                let last = LastClr {
                    raw_time: record.raw_time,
                    id,
                    wanted: selected,
                    has_stack,
                };
                self.last_clr.set(tid, last);
            }
        }
        if self.stacks.has_finished() {
            self.log_finished(session);
        }
    }

    /// Applies processes and images of a provider other than the kernel logger.
    fn other_processes(&mut self, raw: &RawEvent<'_>, session: &mut Session) {
        match raw.schema.key() {
            EventKey::Classic { class, .. } => self.has_kernel_logger = *class == classes::PROCESS,
            EventKey::Manifest {
                provider: Provider::KernelProcess,
                ..
            } => etw_processes::apply(raw, session),
            _ => {}
        }
    }

    /// Imports samples and stacks.
    fn decoded(
        &mut self,
        event: &Event<'_>,
        record: &Record<'_>,
        id: EventTypeId,
        session: &mut Session,
    ) {
        let stacks = &mut self.stacks;
        let mut sample_of = |tid: u32, ip: u64, idle: bool, weight: Weight| {
            let mut event = waiting(record, id);
            event.pid = session.process_of_thread(tid);
            event.tid = Some(tid);
            event.ip = Some(ip);
            event.sample = Sample::cpu().weighing(weight);
            event.sample.idle = idle;
            stacks.wait(event);
        };
        match event {
            Event::Kernel(KernelEvent::SampledProfile(sample)) => {
                let idle = sample.is_idle();
                let ip = sample.instruction_pointer;
                sample_of(sample.thread_id, ip, idle, Weight::One);
            }
            Event::Kernel(KernelEvent::PmcInterrupt(sample)) => {
                let every = self.counters.get(&sample.profile_source.into());
                let weight = every.map_or(Weight::Unknown, |&every| Weight::Count(every));
                let (tid, ip) = (sample.thread_id, sample.instruction_pointer);
                sample_of(tid, ip, tid == 0, weight);
            }
            Event::Kernel(KernelEvent::SampleInterval(interval)) => {
                self.set_interval(record.time_ns, interval, session);
            }
            Event::Kernel(KernelEvent::StackWalk(walk)) => {
                let of = Reference {
                    raw_time: walk.event_time.cast_signed(),
                    pid: valid(walk.process_id),
                    tid: valid(walk.thread_id),
                    cpu: record.cpu,
                };
                stacks.addresses(of, None, walk.frames);
            }
            Event::Kernel(KernelEvent::StackKeyReference(reference)) => {
                let of = Reference {
                    raw_time: reference.event_time.cast_signed(),
                    pid: valid(reference.process_id),
                    tid: valid(reference.thread_id),
                    cpu: record.cpu,
                };
                let mode = match reference.mode {
                    StackMode::Kernel => Mode::Kernel,
                    StackMode::User => Mode::User,
                };
                stacks.key(of, mode, false, reference.key);
            }
            Event::Kernel(KernelEvent::StackKeyDefinition(definition)) => {
                stacks.define(definition.key, definition.frames);
            }
            Event::Kernel(KernelEvent::UserStack(_)) => {
                for item in record.extended_items() {
                    match item {
                        ExtendedItem::Stack(s) => stacks.matched(s.match_id, s.addresses),
                        ExtendedItem::StackKey(s) => stacks.matched_key(s.match_id, s.key),
                        _ => {}
                    }
                }
            }
            Event::ClrStackWalk(walk) => {
                if let Some(tid) = record.thread_id
                    && let Some(last) = self.last_clr.take(tid)
                {
                    // The runtime logs the stack of an event directly after it, on the same thread.
                    if last.wanted {
                        let of = Reference {
                            raw_time: last.raw_time,
                            ..of_record(record)
                        };
                        stacks.addresses(of, Some(Mode::User), walk.frames);
                    } else if !last.has_stack {
                        session.count(last.id, 0, 1, 0);
                    }
                }
            }
            _ => {}
        }
    }

    /// Imports an event whose stack is wanted. The stack is in the record, or follows.
    fn event_with_stack(
        &mut self,
        raw: &RawEvent<'_>,
        record: &Record<'_>,
        id: EventTypeId,
        switch: Option<Switch>,
        session: &Session,
    ) {
        let mut event = waiting(record, id);
        event.sample.weight = session.weight(id, raw.payload);
        if let Some(switch) = switch {
            event.tid = switch.tid;
            event.pid = (switch.tid).and_then(|tid| session.process_of_thread(tid));
            event.switch = Some(self.stacks.add_switch(switch));
        }
        self.stacks.wait(event);
        let of = Reference {
            tid: event.tid,
            ..of_record(record)
        };
        for item in record.extended_items() {
            match item {
                ExtendedItem::Stack(stack) => {
                    self.stacks.addresses(of, None, stack.addresses);
                    self.stacks.expect_match(stack.match_id);
                }
                ExtendedItem::StackKey(key) => {
                    // A user part follows only if the stack is the kernel's.
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

    /// Records the sampling interval that applies from now on.
    fn set_interval(&mut self, time_ns: u64, event: &SampleInterval<'_>, session: &mut Session) {
        let (new, old) = (event.new_interval, event.old_interval);
        let interval = match event.event {
            IntervalEvent::Start | IntervalEvent::Set if new != 0 => new,
            _ => old.max(new),
        };
        if interval == 0 {
            return;
        }
        if event.source != 0 {
            self.counters.insert(event.source, interval.into());
            return;
        }
        let facts = session.facts();
        let ends = event.event == IntervalEvent::End;
        if !(ends && facts.sample_interval_ns.is_some()) {
            facts.sampled_every(time_ns, u64::from(interval) * 100);
        }
    }

    /// Pushes the events whose stacks are as complete as they will be.
    fn log_finished(&mut self, session: &mut Session) {
        while let Some(finished) = self.stacks.next_finished() {
            let Finished {
                time_ns, id, stack, ..
            } = finished;
            let tid = finished.tid.unwrap_or(0);
            let owner = match finished.pid {
                Some(pid) => Owner::Thread(session.thread(Some(pid), tid.into(), time_ns)),
                None => Owner::Tid(tid),
            };
            if finished.has_stack {
                session.count(id, 0, 1, 0);
            }
            let Sample {
                kind, idle, weight, ..
            } = finished.sample;
            let key = ClassKey {
                owner,
                event: id,
                kind,
                idle,
                stack,
            };
            if kind != SampleKind::Event || session.is_selected(id) {
                self.samples.push(key, time_ns, weight, session);
            }
            let Some(switch) = finished.switch else {
                continue;
            };
            self.samples.log(session);
            let switch = self.stacks.take_switch(switch);
            if let Some(wakeup) = switch.wakeup {
                let kind = SampleKind::Wakeup;
                let waker = self.samples.class(ClassKey { kind, ..key }, session);
                self.wakers.insert(wakeup, waker);
            }
            for (kind, off) in switch.returned.intervals() {
                let class = self.samples.class(ClassKey { kind, ..key }, session);
                session.log_sample(class, off.start_ns, Weight::Ns(off.ns));
                if let Some(waker) = off.waker.and_then(|wakeup| self.wakers.remove(&wakeup)) {
                    session.wakeup(class, off, waker);
                }
            }
        }
    }

    /// Ends the import: assigns stacks and owners to all samples. Returns the number of stack keys
    /// that were never defined.
    fn finish(mut self, session: &mut Session) -> u64 {
        let undefined = self.stacks.finish();
        self.log_finished(session);
        self.samples.log(session);
        // Stacks with equal parts, resolved once.
        let mut interned: HashMap<StackOf, Option<StackId>> = HashMap::default();
        let mut path = Vec::new();
        let most = (session.stacks().len()).saturating_add(self.stacks.most_joined());
        let mut no_room = 0;
        for (key, class) in self.samples.into_classes() {
            let stack = *interned.entry(key.stack).or_insert_with(|| {
                let mut stack = key.stack;
                if session.stacks().len() > most && stack.drop_callers() {
                    no_room += 1;
                }
                self.stacks.addresses_of(stack, &mut path);
                session.intern(path.iter().rev().copied())
            });
            if let Some(stack) = stack {
                session.set_stack(class, stack);
            }
            if let Owner::Tid(tid) = key.owner {
                session.set_early_thread(class, tid);
            }
        }
        session.stacks_dropped(self.stacks.dropped() + no_room);
        undefined
    }
}

/// Returns whether a record carries its stack, or a part of it.
fn has_stack(record: &Record<'_>) -> bool {
    record.extended_items().any(|item| match item {
        ExtendedItem::Stack(stack) => !stack.addresses.is_empty(),
        ExtendedItem::StackKey(_) => true,
        _ => false,
    })
}

fn is_clr(schema: &EventSchema) -> bool {
    matches!(
        schema.key(),
        EventKey::Manifest {
            provider: Provider::Runtime | Provider::Private | Provider::Rundown,
            ..
        }
    )
}

fn waiting(record: &Record<'_>, id: EventTypeId) -> Waiting {
    Waiting {
        raw_time: record.raw_time,
        time_ns: record.time_ns,
        id,
        pid: record.process_id,
        tid: record.thread_id,
        cpu: record.cpu,
        sample: Sample::new(SampleKind::Event),
        switch: None,
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

fn valid(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

fn describe(header: &TraceHeader, clock: Clock, session: &mut Session) {
    let facts = session.facts();
    // If several files were merged, the clock has the earliest start; the header may be that of any
    // of them.
    facts.start_unix_ns = Some(clock.unix_ns(0));
    facts.format = "etl".to_owned();
    facts.version = format!("{}.{}", header.layout_version.0, header.layout_version.1);
    facts.pointer_size = Some(header.pointer_size.bytes() as u8);
    facts.processors = Some(header.processors);
    let (major, minor) = header.os_version;
    facts.machine = Some(format!("Windows {major}.{minor} build {}", header.os_build));
}
