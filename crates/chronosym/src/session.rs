//! A session: takes events in the order in which a reader delivers them and remembers what they say.

use std::hash::BuildHasher;
use std::sync::Arc;

use chronosym_events::{
    Action, DecodeError, Event, EventKey, EventSchema, Field, Provider, RawEvent, ThreadSampleType,
};
use chronosym_timeline::{Begin, End};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::clr::ClrState;
use crate::code::ProcessCode;
use crate::few::Few;
use crate::images::Image;
use crate::kernel::KernelState;
use crate::names::Names;
use crate::process::{ProcessIndex, Processes, ThreadIndex};
use crate::samples::{SampleClass, SampleKind, SampleLog};
use crate::stacks::{StackId, StackTable};
use crate::universal::{MappingFiles, UniversalState};
use crate::untimed::Untimed;

/// Names an event type of a session, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventTypeId(pub(crate) u32);

impl EventTypeId {
    /// The position in [`Session::event_types`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which events' stacks are kept as samples.
#[derive(Clone, Debug, Default)]
pub enum SampleSelection {
    /// Profiler samples: CPU samples, and the ticks of wall-clock profilers.
    #[default]
    Profilers,
    /// The stacks of these events.
    Events(Vec<EventSelector>),
    /// None: only what the events say of code is wanted.
    None,
}

/// `PROVIDER` or `PROVIDER/ID`; the id can be the event's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSelector {
    provider: String,
    event: Option<String>,
}

impl EventSelector {
    /// Parses `PROVIDER[/ID]`. Kernel events have the provider `Kernel`.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, event) = match text.split_once('/') {
            Some((provider, event)) => (provider, Some(event)),
            None => (text, None),
        };
        let complete = !provider.is_empty() && event != Some("");
        complete.then(|| EventSelector {
            provider: provider.to_owned(),
            event: event.map(str::to_owned),
        })
    }

    /// Whether an event type is meant. Case does not count.
    pub fn matches(&self, schema: &EventSchema) -> bool {
        let provider = schema.provider_name();
        let is_classic = matches!(schema.key(), EventKey::Classic { .. });
        let same_provider = provider.eq_ignore_ascii_case(&self.provider)
            || (is_classic && self.provider.eq_ignore_ascii_case("Kernel"));
        same_provider
            && self.event.as_deref().is_none_or(|event| {
                let name = schema.name();
                // A kernel event can be named with its class or without: `Thread/CSwitch`, `CSwitch`.
                let last = name.rsplit('/').next().filter(|_| is_classic);
                name.eq_ignore_ascii_case(event)
                    || last.is_some_and(|last| last.eq_ignore_ascii_case(event))
                    || schema.id().is_some_and(|id| event.parse() == Ok(id))
            })
    }
}

/// What a session is to remember.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which stacks are kept.
    pub samples: SampleSelection,
}

impl Options {
    fn selects(&self, schema: &EventSchema) -> bool {
        match &self.samples {
            SampleSelection::Events(selectors) => selectors.iter().any(|s| s.matches(schema)),
            SampleSelection::Profilers | SampleSelection::None => false,
        }
    }

    /// Whether events of a type must be pushed; the others need only be counted.
    pub(crate) fn wants(&self, schema: &EventSchema) -> bool {
        self.selects(schema)
            || match Role::of(schema) {
                Role::Other => false,
                Role::ThreadSample => matches!(self.samples, SampleSelection::Profilers),
                Role::Code | Role::CodeOrSample => true,
            }
    }
}

/// An event type and how often it came.
#[derive(Clone, Debug)]
pub struct EventTypeInfo {
    /// Who the event is.
    pub schema: Arc<EventSchema>,
    /// How many there were.
    pub count: u64,
    /// How many had a stack.
    pub stacks: u64,
    role: Role,
    selected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Says nothing of code.
    Other,
    ThreadSample,
    Code,
    /// As `Code`, or a CPU sample.
    CodeOrSample,
}

impl Role {
    fn of(schema: &EventSchema) -> Self {
        match schema.key() {
            EventKey::Manifest {
                provider: Provider::SampleProfiler,
                id: 0,
                ..
            } => Role::ThreadSample,
            _ if !schema.is_typed() || crate::clr::is_unused(schema) => Role::Other,
            EventKey::Named { .. }
            | EventKey::Manifest {
                provider: Provider::UniversalSystem | Provider::UniversalEvents,
                ..
            } => Role::CodeOrSample,
            _ => Role::Code,
        }
    }
}

/// Events that the trace lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// ns since the trace began; the loss lies after this time…
    pub from_ns: u64,
    /// …and not after this one.
    pub to_ns: u64,
    /// How many, as far as known.
    pub events: u64,
}

/// What could not be used, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDiagnostics {
    /// Payloads that did not decode, per event type and kind of error.
    pub undecodable: Vec<(EventTypeId, DecodeError, u64)>,
    /// Stacks that could not be kept because 2^32 frames were used up.
    pub stacks_dropped: u64,
    /// Inline trees without a body.
    pub unbound_inline_trees: u64,
    /// Rows of perf maps that are not `START SIZE name`.
    pub bad_perf_map_rows: u64,
    /// Code that a live session was told of later than its watermark had promised: answers that were said to be final may
    /// have changed.
    pub late: u64,
}

/// Everything of one process that events told.
#[derive(Debug, Default)]
pub(crate) struct ProcessState {
    pub code: ProcessCode,
    pub images: Vec<Image>,
    pub untimed: Untimed,
    pub clr: ClrState,
    pub universal: UniversalState,
}

/// Takes events and remembers what they say of processes, code and samples.
///
/// Feed it with [`Session::push`], from any source: the readers of [`crate::source`], or a profiler's own event stream.
/// [`Session::finish`] freezes it into a [`crate::Timeline`].
#[derive(Debug, Default)]
pub struct Session {
    pub(crate) options: Options,
    pub(crate) types: Vec<EventTypeInfo>,
    /// Event types by the hash of what tells them apart.
    by_hash: FxHashMap<u64, Few<EventTypeId>>,
    pub(crate) names: Names,
    pub(crate) processes: Processes,
    pub(crate) states: Vec<ProcessState>,
    pub(crate) stacks: StackTable,
    pub(crate) samples: SampleLog,
    pub(crate) losses: Vec<Loss>,
    pub(crate) diagnostics: SessionDiagnostics,
    pub(crate) facts: TraceFacts,
    /// Some of the addresses in stacks, kept or not, of a 32-bit machine: they tell what processor it is.
    pub(crate) seen_addresses: FxHashSet<u64>,
    /// What the session was read from first.
    #[cfg(any(feature = "nettrace", feature = "etl"))]
    pub(crate) recording: Option<crate::source::Identity>,
    pub(crate) kernel: KernelState,
    pub(crate) mapping_files: MappingFiles,
    /// The sampled thread that was seen last: most samples come in runs.
    last_thread: Option<(u32, u64, ThreadIndex)>,
}

/// What is known of the whole trace.
#[derive(Clone, Debug, Default)]
pub struct TraceFacts {
    /// The format: `nettrace`, `netperf`, `etl`.
    pub format: String,
    /// The format's version.
    pub version: String,
    /// When the trace began: ns since 1970-01-01 UTC.
    pub start_unix_ns: Option<i128>,
    /// Time of the last event, ns since the trace began.
    pub duration_ns: u64,
    /// Bytes of a pointer of the machine.
    pub pointer_size: Option<u8>,
    /// Processors of the machine.
    pub processors: Option<u32>,
    /// Distance of two samples in ns, as the trace states it first.
    pub sample_interval_ns: Option<u64>,
    /// Where the distance changes later: (ns since the trace began, distance in ns), by time.
    pub sample_interval_changes: Vec<(u64, u64)>,
    /// Operating system and architecture, as the trace states them.
    pub machine: Option<String>,
    /// The pid of a trace that is of one process only.
    pub process_id: Option<u32>,
}

impl TraceFacts {
    /// Notes the distance of two samples from a time on, both in ns.
    pub(crate) fn sampled_every(&mut self, time_ns: u64, interval_ns: u64) {
        if self.sample_interval_ns.is_none() {
            self.sample_interval_ns = Some(interval_ns);
        } else if self.sample_interval_at(time_ns) != Some(interval_ns) {
            self.sample_interval_changes.push((time_ns, interval_ns));
        }
    }

    /// The distance of two samples at a time, in ns.
    pub fn sample_interval_at(&self, time_ns: u64) -> Option<u64> {
        let later = self
            .sample_interval_changes
            .partition_point(|&(from, _)| from <= time_ns);
        match later.checked_sub(1) {
            Some(last) => Some(self.sample_interval_changes[last].1),
            None => self.sample_interval_ns,
        }
    }
}

impl Session {
    /// An empty session.
    pub fn new(options: Options) -> Self {
        Session {
            options,
            ..Session::default()
        }
    }

    /// Registers an event type; the same type twice has one id.
    pub fn event_type(&mut self, schema: Arc<EventSchema>) -> EventTypeId {
        let hash = type_hash(&schema);
        let known = self.by_hash.get(&hash).map_or(&[][..], Few::as_slice);
        let same =
            |id: &&EventTypeId| identity(&self.types[id.index()].schema) == identity(&schema);
        if let Some(&known) = known.iter().find(same) {
            return known;
        }
        let id = EventTypeId(self.types.len() as u32);
        let role = Role::of(&schema);
        let selected = self.options.selects(&schema);
        self.by_hash.entry(hash).or_default().push(id);
        self.types.push(EventTypeInfo {
            schema,
            count: 0,
            stacks: 0,
            role,
            selected,
        });
        id
    }

    /// All event types seen, with their counts.
    pub fn event_types(&self) -> &[EventTypeInfo] {
        &self.types
    }

    /// Whether events of this type must be pushed in time order: those that speak of code.
    pub fn needs_order(&self, id: EventTypeId) -> bool {
        matches!(self.types[id.index()].role, Role::Code | Role::CodeOrSample)
    }

    /// Whether the options ask for the stacks of this very event type.
    pub(crate) fn is_selected(&self, id: EventTypeId) -> bool {
        self.types[id.index()].selected
    }

    /// Whether the stack of an event of this type would be kept.
    pub fn wants_stack(&self, id: EventTypeId) -> bool {
        let info = &self.types[id.index()];
        info.selected
            || (matches!(self.options.samples, SampleSelection::Profilers)
                && matches!(info.role, Role::ThreadSample | Role::CodeOrSample))
    }

    /// The schema of an event type.
    pub fn schema(&self, id: EventTypeId) -> &Arc<EventSchema> {
        &self.types[id.index()].schema
    }

    /// Counts an event that a source has understood itself.
    pub(crate) fn count(&mut self, id: EventTypeId, time_ns: u64) {
        self.types[id.index()].count += 1;
        self.facts.duration_ns = self.facts.duration_ns.max(time_ns);
    }

    /// Counts events that need not be pushed: `events` of a type, `stacks` of them with a stack.
    pub(crate) fn counted(&mut self, id: EventTypeId, events: u64, stacks: u64, last_ns: u64) {
        let info = &mut self.types[id.index()];
        info.count += events;
        info.stacks += stacks;
        self.facts.duration_ns = self.facts.duration_ns.max(last_ns);
    }

    /// Takes over a better description of an event type that came after its first event.
    pub(crate) fn redescribe(&mut self, id: EventTypeId, schema: &Arc<EventSchema>) {
        let known = &mut self.types[id.index()].schema;
        if known.key() != schema.key() {
            return;
        }
        if identity(known) != identity(schema) {
            self.by_hash.entry(type_hash(schema)).or_default().push(id);
        }
        known.clone_from(schema);
    }

    /// Counts a stack that is not kept.
    pub(crate) fn has_stack(&mut self, id: EventTypeId) {
        self.types[id.index()].stacks += 1;
    }

    /// The stacks, to intern those of the events to come.
    pub fn stacks(&mut self) -> &mut StackTable {
        &mut self.stacks
    }

    /// What is known of the whole trace, for the source to fill in.
    pub fn facts(&mut self) -> &mut TraceFacts {
        &mut self.facts
    }

    /// Looks at addresses in stacks, whether those are kept or not.
    pub(crate) fn see_addresses(&mut self, addresses: &[u64]) {
        const MOST: usize = 4096;
        if self.facts.pointer_size == Some(4) {
            let room = MOST.saturating_sub(self.seen_addresses.len());
            self.seen_addresses.extend(addresses.iter().take(room));
        }
    }

    /// Notes that events were lost: answers that hang on the absence of an event are then less certain.
    pub fn lost(&mut self, loss: Loss) {
        self.losses.push(loss);
    }

    /// Takes one event. `writer` is the thread that wrote it, where that is another than the thread it speaks of.
    ///
    /// Events that speak of code ([`Session::needs_order`]) must come in the order of their times; others may come in
    /// any order. A payload that does not decode is counted in the diagnostics.
    pub fn push(
        &mut self,
        id: EventTypeId,
        raw: &RawEvent<'_>,
        writer: Option<u64>,
        stack: Option<StackId>,
    ) {
        let info = &mut self.types[id.index()];
        info.count += 1;
        info.stacks += u64::from(stack.is_some());
        self.facts.duration_ns = self.facts.duration_ns.max(raw.time_ns);
        let (role, selected) = (info.role, info.selected);
        if role == Role::Other && !(selected && stack.is_some()) {
            return;
        }
        let kind = match role {
            Role::Other => Ok(SampleKind::Event),
            Role::ThreadSample if stack.is_none() => return,
            Role::ThreadSample | Role::Code | Role::CodeOrSample => {
                raw.decode().map(|event| match event {
                    Some(Event::ThreadSample(ThreadSampleType::Managed)) => SampleKind::WallManaged,
                    Some(Event::ThreadSample(_)) => SampleKind::WallExternal,
                    Some(event) if self.understand(raw, writer, &event) => SampleKind::Cpu,
                    _ => SampleKind::Event,
                })
            }
        };
        match (kind, stack) {
            (Err(error), _) => {
                // A method event that ends too early still says where code is, if not more.
                if let Some(method) = raw.method_in_part() {
                    self.understand(raw, writer, &Event::Method(method));
                }
                self.undecodable(id, error);
            }
            (Ok(kind), Some(stack)) if self.keeps(kind, selected) => {
                self.sample(id, raw, stack, kind)
            }
            _ => {}
        }
    }

    fn keeps(&self, kind: SampleKind, selected: bool) -> bool {
        selected
            || (kind != SampleKind::Event
                && matches!(self.options.samples, SampleSelection::Profilers))
    }

    fn sample(&mut self, id: EventTypeId, raw: &RawEvent<'_>, stack: StackId, kind: SampleKind) {
        let thread = self.thread(
            raw.process_id.unwrap_or(0),
            raw.thread_id.unwrap_or(0),
            raw.time_ns,
        );
        self.samples.push(
            SampleClass {
                thread,
                stack,
                event: id,
                kind,
                idle: false,
            },
            raw.time_ns,
        );
    }

    pub(crate) fn thread(&mut self, pid: u32, tid: u64, time_ns: u64) -> ThreadIndex {
        if let Some((last_pid, last_tid, thread)) = self.last_thread
            && (last_pid, last_tid) == (pid, tid)
            && self.processes.incarnations(pid).len() == 1
        {
            return thread;
        }
        let process = self.process(pid, time_ns);
        let thread = self.processes.thread(process, tid);
        self.last_thread = Some((pid, tid, thread));
        thread
    }

    /// The incarnation of `pid` at a time, with its state.
    pub(crate) fn process(&mut self, pid: u32, time_ns: u64) -> ProcessIndex {
        let process = self.processes.at(pid, time_ns);
        self.ensure_states();
        process
    }

    pub(crate) fn ensure_states(&mut self) {
        let count = self.processes.all.len();
        self.states.resize_with(count, ProcessState::default);
    }

    pub(crate) fn undecodable(&mut self, id: EventTypeId, error: DecodeError) {
        let kind = std::mem::discriminant(&error);
        let counts = &mut self.diagnostics.undecodable;
        match counts
            .iter_mut()
            .find(|(i, e, _)| *i == id && std::mem::discriminant(e) == kind)
        {
            Some((_, _, count)) => *count += 1,
            None => counts.push((id, error, 1)),
        }
    }

    /// Learns from an event. True if it is a CPU sample.
    fn understand(&mut self, raw: &RawEvent<'_>, writer: Option<u64>, event: &Event<'_>) -> bool {
        let time = raw.time_ns;
        // The kernel's events name their process themselves; who logs them, if anybody, is of no account.
        if let Event::Kernel(event) = event {
            self.kernel(time, event);
            return false;
        }
        let process = self.process(raw.process_id.unwrap_or(0), time);
        let writer = writer.or(raw.thread_id).unwrap_or(0);
        match event {
            Event::Universal(event) => return self.universal(process, time, event),
            _ => self.clr(process, time, writer, event),
        }
        false
    }

    /// Names the code of a process from a perf map (rule 18: untimed, so it answers last).
    pub fn perf_map(&mut self, pid: u32, text: &[u8]) {
        let process = self.process(pid, u64::MAX);
        let untimed = &mut self.states[process.index()].untimed;
        self.diagnostics.bad_perf_map_rows +=
            crate::untimed::read_perf_map(text, &mut self.names, untimed);
    }

    /// Whether anything that was pushed speaks of a process of this id.
    pub fn has_process(&self, pid: u32) -> bool {
        !self.processes.incarnations(pid).is_empty()
    }

    /// Freezes what is known into a timeline.
    pub fn finish(mut self) -> crate::Timeline {
        self.close_ended();
        self.samples.join_classes();
        crate::Timeline::freeze(self)
    }

    /// A process stopped: its code answers no longer (rule 6).
    pub(crate) fn process_ended(&mut self, process: ProcessIndex, time: u64) {
        self.processes.all[process.index()].end = Some(time);
        self.ensure_states();
        self.states[process.index()].close(time);
    }

    /// What was told of a process after its end does not outlive it either.
    pub(crate) fn close_ended(&mut self) {
        self.ensure_states();
        for (process, state) in self.processes.all.iter().zip(&mut self.states) {
            if let Some(end) = process.end {
                state.close(end);
            }
        }
    }
}

/// What tells event types apart.
fn identity(schema: &EventSchema) -> (&EventKey, Option<&Arc<str>>, Option<&[Field]>) {
    (schema.key(), schema.event_name(), schema.fields())
}

fn type_hash(schema: &EventSchema) -> u64 {
    FxBuildHasher.hash_one(identity(schema))
}

impl ProcessState {
    /// The process stopped.
    fn close(&mut self, time: u64) {
        self.code.close_all(time);
        let images = self.images.iter_mut().map(|image| &mut image.end);
        let modules = self.code.modules.iter_mut().map(|module| &mut module.end);
        for end in images.chain(modules).filter(|end| !has_ended(**end, time)) {
            *end = End::At(time);
        }
    }

    /// What answers need, as it is now.
    pub(crate) fn snapshot(&mut self) -> Self {
        ProcessState {
            code: self.code.snapshot(),
            images: self.images.clone(),
            untimed: self.untimed.clone(),
            clr: self.clr.snapshot(),
            universal: UniversalState::default(),
        }
    }
}

/// Whether a thing is known to have ended by a time.
pub(crate) fn has_ended(end: End, time: u64) -> bool {
    matches!(end, End::At(at) if at <= time)
}

/// When a thing that an action tells of began and ended.
pub(crate) fn life_of(action: Action, time: u64) -> (Begin, End) {
    match action {
        Action::Load => (Begin::At(time), End::Open),
        Action::Unload => (Begin::Before(time), End::At(time)),
        Action::DCStart => (Begin::Before(time), End::Open),
        Action::DCEnd => (Begin::Before(time), End::After(time)),
    }
}
