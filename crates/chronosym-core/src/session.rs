//! A session: applies events and facts, in their order, to the state of the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronosym_events::{Event, EventKey, EventSchema, PointerSize, RawEvent, ThreadSampleType};
use chronosym_types::hash::HashSet;

use crate::activity_ids::ActivityIds;
use crate::clr;
use crate::event_types::{EventTypeInfo, EventTypes};
use crate::facts::{At, Fact, Sample};
use crate::ids::{EventTypeId, StackId, ThreadIndex};
use crate::kept::{KeptEvent, KeptEvents};
use crate::kernel::KernelState;
use crate::machine::Machine;
use crate::markers::Markers;
use crate::meaning::Role;
use crate::on_cpu::OnCpu;
use crate::recording::{Loss, TraceFacts};
use crate::recording_id::{AnotherRecording, RecordingId};
use crate::room::Room;
use crate::samples::{ClassIndex, SampleClass, SampleLog};
use crate::saved::journal::Journal;
use crate::selection::Options;
use crate::stacks::{StackTable, Walked};
use crate::terms::{SampleKind, Weight};
use crate::thread_time::{Returned, Switched, ThreadSwitch, ThreadTimes, With};
use crate::ticks::Tick;
use crate::universal::UniversalState;

/// The bytes of one event.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The pointer size in the payload.
    pub pointer_size: PointerSize,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Applies events and facts to the state of processes, code and samples.
///
/// Sources are trace adapters, which push raw events ([`Session::push`]), and profilers, which
/// apply typed facts ([`Session::apply`], [`Session::sample`]). [`Session::finish`] freezes the
/// session into a [`crate::Timeline`].
///
/// # Examples
///
/// ```
/// use chronosym_core::facts::{At, Method, Process, Sample};
/// use chronosym_core::{Action, Options, Position, Session};
///
/// let mut session = Session::new(Options::default());
/// let at = At::new(0).process(42).thread(7);
/// session.apply(at, Process::new(Action::Load, "app"));
/// session.apply(at.at(100), Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Old", ""));
/// session.apply(at.at(200), Method::new(Action::Unload, 1, 0x1000, 64));
/// session.apply(at.at(300), Method::new(Action::Load, 2, 0x1000, 64).named("Ns.Type", "New", ""));
/// session.sample(at.at(150), &[0x1010], Sample::cpu());
///
/// let timeline = session.finish();
/// let process = timeline.find_process(42, None).unwrap();
/// // The same address, at three times.
/// let at_time = |time| timeline.frames(process, 0x1010, time, Position::Exact, None);
/// assert_eq!(at_time(150)[0].name(), Ok("Ns.Type.Old"));
/// assert!(at_time(250)[0].name().is_err());
/// assert_eq!(at_time(350)[0].name(), Ok("Ns.Type.New"));
/// ```
#[derive(Debug, Default)]
pub struct Session {
    pub(crate) options: Options,
    pub(crate) types: EventTypes,
    pub(crate) machine: Machine,
    pub(crate) kernel: KernelState,
    pub(crate) universal: UniversalState,
    pub(crate) stacks: StackTable,
    pub(crate) samples: SampleLog,
    pub(crate) losses: Vec<Loss>,
    pub(crate) markers: Markers,
    pub(crate) kept: KeptEvents,
    pub(crate) activity_ids: ActivityIds,
    pub(crate) on_cpu: OnCpu,
    /// Some addresses of stacks of a 32-bit machine, from which its architecture is inferred.
    pub(crate) seen_addresses: HashSet<u64>,
    /// The first recording read into the session.
    recording: Option<RecordingId>,
    pub(crate) is_live: bool,
    /// What was pushed, for deltas.
    pub(crate) journal: Option<Box<Journal>>,
    /// No other session in this process has the same.
    pub(crate) serial: u64,
    pub(crate) thread_times: ThreadTimes,
    /// The number of strings when unused ones were last dropped.
    pub(crate) strings_after_sweep: usize,
    /// Number of events until the memory is measured again.
    pub(crate) unmeasured: usize,
    /// The memory budget of a live session.
    pub(crate) room: Option<Box<Room>>,
}

impl Session {
    /// Creates an empty session.
    pub fn new(options: impl Into<Options>) -> Self {
        let mut session = Session {
            options: options.into(),
            serial: next_serial(),
            ..Session::default()
        };
        session.on_cpu = OnCpu::of(&session.options);
        if let Some(times) = session.options.times.clone() {
            session.samples.limit_to(times);
        }
        session
    }

    /// Returns the options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns whether a recording has been read into the session.
    pub fn has_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Starts a recording. Returns its start, in ns since the session's time 0. Recordings of a
    /// live session may start at any time of their process, and may repeat facts of others.
    ///
    /// # Errors
    ///
    /// [`AnotherRecording`] if the recording does not belong to those read before.
    pub fn admit(&mut self, recording: RecordingId) -> Result<i64, AnotherRecording> {
        match self.recording {
            None => {
                self.recording = Some(recording);
                Ok(0)
            }
            Some(first) => recording.follows(first, self.is_live),
        }
    }

    /// Registers an event type; equal types have one id.
    pub fn event_type(&mut self, schema: Arc<EventSchema>) -> EventTypeId {
        self.types.register(schema, &self.options)
    }

    /// Returns all event types with their counts.
    pub fn event_types(&self) -> &[EventTypeInfo] {
        &self.types.all
    }

    pub(crate) fn info(&self, id: EventTypeId) -> Option<&EventTypeInfo> {
        self.types.all.get(id.index())
    }

    /// Returns whether events of this type must be pushed in time order: those about code.
    pub fn needs_order(&self, id: EventTypeId) -> bool {
        self.info(id)
            .is_some_and(|info| info.meaning.role.states_code())
    }

    /// Returns whether the stack of an event of this type is stored.
    pub fn wants_stack(&self, id: EventTypeId) -> bool {
        let sampled = |role| matches!(role, Role::ThreadSample | Role::CodeOrSample);
        self.info(id).is_some_and(|info| {
            info.selected || (self.options.wants_profilers() && sampled(info.meaning.role))
        })
    }

    /// Returns the schema of an event type.
    pub fn schema(&self, id: EventTypeId) -> Option<&Arc<EventSchema>> {
        self.info(id).map(|info| &info.schema)
    }

    /// Counts events without pushing them: `events` of a type, `stacks` of them with a stack, none
    /// later than `last_ns`.
    #[inline]
    pub fn count(&mut self, id: EventTypeId, events: u64, stacks: u64, last_ns: u64) {
        let info = &mut self.types.all[id.index()];
        info.count += events;
        info.stacks += stacks;
        self.reach(last_ns);
    }

    /// Extends the duration of the trace up to a time.
    fn reach(&mut self, time_ns: u64) {
        let facts = &mut self.machine.facts;
        facts.duration_ns = facts.duration_ns.max(time_ns);
    }

    /// Returns the samples so far.
    pub fn samples(&self) -> &SampleLog {
        &self.samples
    }

    /// Returns the interned stacks.
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// Interns the stack of a later event, innermost address first. `None` for an empty stack, or
    /// if the limit of nodes is reached, which is counted.
    pub fn intern(&mut self, leaf_first: impl DoubleEndedIterator<Item = u64>) -> Option<StackId> {
        let mut leaf_first = leaf_first.peekable();
        let is_empty = leaf_first.peek().is_none();
        let stack = self.stacks.intern(leaf_first);
        self.machine.counters.stacks_dropped += u64::from(stack.is_none() && !is_empty);
        stack
    }

    /// As [`Session::intern`], for a stack that is likely to recur: a single lookup covers all
    /// frames, which may have proofs.
    pub fn intern_whole(
        &mut self,
        leaf_first: impl ExactSizeIterator<Item = impl Into<Walked>> + DoubleEndedIterator + Clone,
    ) -> Option<StackId> {
        if leaf_first.len() == 0 {
            return None;
        }
        let stack = self.stacks.intern_whole(leaf_first);
        self.machine.counters.stacks_dropped += u64::from(stack.is_none());
        stack
    }

    /// Returns the properties of the whole trace, for the source to fill in.
    pub fn facts(&mut self) -> &mut TraceFacts {
        &mut self.machine.facts
    }

    /// Observes addresses of stacks, to infer the architecture.
    pub fn see_addresses(&mut self, addresses: impl Iterator<Item = u64>) {
        const MOST: usize = 4096;
        if self.machine.facts.pointer_size == Some(4) {
            let room = MOST.saturating_sub(self.seen_addresses.len());
            self.seen_addresses.extend(addresses.take(room));
        }
    }

    /// Sets the architecture to Thumb, if a saved timeline states it, by observing enough odd
    /// addresses to infer it.
    pub(crate) fn see_thumb(&mut self, is_thumb: bool) {
        if is_thumb {
            self.seen_addresses.extend((0..64).map(|at| 2 * at + 1));
        }
    }

    /// Records a loss of events: answers that a lost event could change become less certain.
    pub fn lost(&mut self, loss: Loss) {
        if let Some(journal) = &mut self.journal {
            journal.loss(&loss);
        }
        self.thread_times.lost(loss.to_ns);
        self.losses.push(loss);
    }

    /// Applies a fact. Facts about code must be in time order.
    pub fn apply<'a>(&mut self, at: At, fact: impl Into<Fact<'a>>) {
        self.reach(at.time_ns);
        let fact = fact.into();
        if !self.admits(at.time_ns, fact.ends()) {
            return;
        }
        if let Some(journal) = &mut self.journal {
            journal.fact(at, &fact);
        }
        self.machine.apply(at, fact);
    }

    /// Adds a sample, innermost address first, in any order.
    ///
    /// It is stored unless the [`Options`] exclude it.
    pub fn sample(&mut self, at: At, leaf_first: &[u64], sample: Sample) {
        let frames = leaf_first.iter().copied();
        self.sample_walked(at, frames.map(Walked::from), sample);
    }

    /// Adds a sample whose frames have proofs.
    pub fn sample_walked(
        &mut self,
        at: At,
        leaf_first: impl ExactSizeIterator<Item = Walked> + DoubleEndedIterator + Clone,
        sample: Sample,
    ) {
        let id = sample.event.unwrap_or_else(|| {
            let key = EventKey::Named {
                provider: "Samples".into(),
                name: sample.kind.as_str().into(),
            };
            self.event_type(Arc::new(EventSchema::new(key)))
        });
        let Some(selected) = self.info(id).map(|info| info.selected) else {
            self.machine.counters.unknown_event_types += 1;
            return;
        };
        self.count(id, 1, u64::from(leaf_first.len() > 0), at.time_ns);
        self.see_addresses(leaf_first.clone().map(|frame| frame.address));
        if sample.kind == SampleKind::Cpu && !sample.idle {
            self.on_cpu(at);
        }
        if leaf_first.len() == 0 || !selected && !self.options.wants_profilers() {
            return;
        }
        match self.stacks.intern_whole(leaf_first) {
            Some(stack) => {
                self.log(id, at, stack, sample);
            }
            None => self.machine.counters.stacks_dropped += 1,
        }
    }

    /// Adds a sample of an event with an interned stack, in any order; `None` if it has none.
    pub fn sample_of_stack(&mut self, at: At, stack: Option<StackId>, sample: Sample) {
        let known = sample
            .event
            .and_then(|id| Some((id, self.info(id)?.selected)));
        let Some((id, selected)) = known else {
            self.machine.counters.unknown_event_types += 1;
            return;
        };
        self.count(id, 1, stack.is_some().into(), at.time_ns);
        if let Some(stack) = stack
            && (selected || self.options.wants_profilers())
        {
            self.log(id, at, stack, sample);
        }
    }

    /// Applies a raw event of a registered type.
    ///
    /// Events about code ([`Session::needs_order`]) must be in time order; others may be in any
    /// order. A payload that does not decode, and an event of an unregistered type, are counted in
    /// the diagnostics.
    ///
    /// Returns the class of a tick's sample, for [`Session::push_again`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use chronosym_core::facts::At;
    /// use chronosym_core::{Options, Payload, PointerSize, Session};
    /// use chronosym_events::{EventKey, EventSchema, Provider};
    /// # let payload = chronosym_support::payload::Method {
    /// #     start: 0x1000, size: 64, names: Some(("Ns.Type", "Run", "void ()")), ..Default::default()
    /// # }.encode(2);
    ///
    /// // A profiler that receives the runtime's raw events.
    /// let mut session = Session::new(Options::default());
    /// let key = EventKey::Manifest { provider: Provider::Runtime, id: 143, version: 2 };
    /// let load = session.event_type(Arc::new(EventSchema::new(key)));
    /// let event = Payload { pointer_size: PointerSize::Eight, bytes: &payload };
    /// session.push(load, At::new(100).process(42).thread(7), event, None);
    ///
    /// let timeline = session.finish();
    /// let process = timeline.find_process(42, None).unwrap();
    /// assert_eq!(timeline.bodies(process).next().unwrap().name.as_deref(), Some("Ns.Type.Run"));
    /// ```
    pub fn push(
        &mut self,
        id: EventTypeId,
        at: At,
        payload: Payload<'_>,
        stack: Option<StackId>,
    ) -> Option<ClassIndex> {
        if self.room.is_some() && !self.admits_event(id, at.time_ns) {
            return None;
        }
        let machine = &mut self.machine;
        let Some(info) = self.types.all.get_mut(id.index()) else {
            machine.counters.unknown_event_types += 1;
            return None;
        };
        info.count += 1;
        info.stacks += u64::from(stack.is_some());
        machine.facts.duration_ns = machine.facts.duration_ns.max(at.time_ns);
        let is_noted = info.noted;
        if let Some(journal) = &mut self.journal
            && info.meaning.role.states_code()
        {
            let of_type = (id, &info.schema);
            journal.event(of_type, at, payload.pointer_size, payload.bytes);
        }
        let raw = raw_event(&info.schema, at, payload);
        let mut route = |event: &Event<'_>| -> SampleKind {
            match event {
                Event::ThreadSample(ThreadSampleType::Managed) => return SampleKind::WallManaged,
                Event::ThreadSample(_) => return SampleKind::WallExternal,
                Event::Kernel(event) => self.kernel.apply(machine, at.time_ns, event),
                Event::Universal(event) => {
                    if self.universal.apply(machine, at, event) {
                        return SampleKind::Cpu;
                    }
                }
                event => {
                    let process = machine.process_at(at);
                    clr::apply(machine, process, at, event);
                }
            }
            SampleKind::Event
        };
        let selected = info.selected;
        // Only markers have the names of a started compilation.
        let jitted = raw.jitted_method().filter(|_| !is_noted);
        let decoded = match info.meaning.role {
            Role::ThreadSample if stack.is_none() => return None,
            _ if jitted.is_some() => None,
            Role::ThreadSample | Role::Code | Role::CodeOrSample => Some(raw.decode()),
            _ => None,
        };
        let kind = match &decoded {
            Some(Ok(Some(event))) => route(event),
            Some(Ok(None)) => {
                machine.process_at(at);
                SampleKind::Event
            }
            Some(Err(error)) => {
                // A truncated method event may still state the range of the code.
                if let Some(method) = raw.method_in_part() {
                    route(&Event::Method(method));
                }
                machine.counters.undecodable(id, *error);
                return None;
            }
            None => {
                if let Some(method_id) = jitted {
                    let process = machine.process_at(at);
                    machine.apply_to(process, at, Fact::JitStart { method_id });
                }
                SampleKind::Event
            }
        };
        if is_noted {
            let thread = machine.thread_at(at);
            if info.kept {
                let event = KeptEvent {
                    time_ns: at.time_ns,
                    thread,
                    event_type: id,
                    pointer_size: payload.pointer_size,
                    payload: payload.bytes,
                };
                self.kept.push(event, self.options.max_kept_bytes);
            }
            if let Some(mark) = info.meaning.mark {
                let decoded = decoded.as_ref().and_then(|it| it.as_ref().ok()?.as_ref());
                let event = (&raw, decoded);
                let (most, names) = (self.options.markers, &mut machine.names);
                self.markers
                    .push((id, mark), (at.time_ns, thread), event, most, names);
            }
        }
        let of_profiler = kind != SampleKind::Event && self.options.wants_profilers();
        if let Some(stack) = stack
            && (selected || of_profiler)
        {
            let weight = self.weight(id, payload.bytes);
            let class = self.log(id, at, stack, Sample::new(kind).weighing(weight));
            let pid = at.process.or(self.machine.facts.process_id);
            let is_repeatable = kind.is_wall() && !is_noted && self.machine.processes.is_only(pid);
            return is_repeatable.then_some(class);
        }
        None
    }

    /// Returns the class of a sample that differs in its stack from those of `class`, which
    /// [`Session::push`] returned, for [`Session::push_again`].
    #[inline]
    pub fn class_with_stack(&mut self, class: ClassIndex, stack: StackId) -> ClassIndex {
        self.samples.with_stack(class, stack)
    }

    /// Applies an event that differs from an earlier one in its time, or stack, only: `class` is
    /// what [`Session::push`] or [`Session::class_with_stack`] returned for it. No event about code
    /// or processes is between them.
    pub fn push_again(&mut self, id: EventTypeId, class: ClassIndex, time_ns: u64) {
        self.count(id, 1, 1, time_ns);
        self.log_class(class, time_ns, Weight::One);
    }

    fn log(&mut self, event: EventTypeId, at: At, stack: StackId, sample: Sample) -> ClassIndex {
        let thread = self.thread_at(at);
        let class = self.samples.class(SampleClass {
            thread,
            stack,
            event,
            kind: sample.kind,
            idle: sample.idle,
            on_cpu: false,
        });
        self.log_class(class, at.time_ns, sample.weight);
        class
    }

    #[inline]
    fn log_class(&mut self, index: ClassIndex, time_ns: u64, weight: Weight) {
        if self.options.times.is_none() {
            self.samples.log(index, time_ns, weight);
            return;
        }
        let class = self.samples.classes()[index as usize];
        if !class.is_timed_by_ticks(weight) {
            self.samples.log(index, time_ns, weight);
            return;
        }
        let machine = &self.machine;
        let tick = Tick {
            process: machine.processes.threads[class.thread.index()].process.0,
            thread: class.thread.0,
            ns: time_ns,
            asked_for: None,
        };
        self.samples.log_tick(index, tick, &machine.facts);
    }

    /// Adds the symbols of a perf map to a process (rule 18).
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::{Options, Position, Session};
    ///
    /// let mut session = Session::new(Options::default());
    /// session.perf_map(42, b"7f001000 40 void [app] Program::Main()[Tier0]\n");
    /// let timeline = session.finish();
    /// let process = timeline.find_process(42, None).unwrap();
    /// let frames = timeline.frames(process, 0x7f00_1010, 0, Position::Exact, None);
    /// assert_eq!(frames[0].offset, Some(0x10));
    /// assert!(frames[0].label().contains("Main"));
    /// ```
    pub fn perf_map(&mut self, pid: u32, text: &[u8]) {
        self.image_map(pid, 0, text);
    }

    /// Adds the symbols of a perf map whose addresses are relative to the base of an image.
    pub fn image_map(&mut self, pid: u32, base: u64, text: &[u8]) {
        if let Some(journal) = &mut self.journal {
            journal.perf_map(pid, base, text);
        }
        let process = self.machine.process(Some(pid), u64::MAX);
        for lines in crate::untimed::pieces(text) {
            let time_ns = self.machine.facts.duration_ns;
            self.room_left(usize::MAX);
            if !self.has_room(usize::MAX) || !self.admits(time_ns, false) {
                return;
            }
            let Machine { names, states, .. } = &mut self.machine;
            let untimed = &mut states[process.index()].untimed;
            let bad = crate::untimed::read_perf_map(lines, base, names, untimed);
            self.machine.counters.bad_perf_map_lines += bad;
        }
    }

    /// Applies a context switch of the thread of `at` (rule 25), in time order, with its stack and
    /// the event that carries it. Returns the intervals that it ends, if no stack was given when
    /// they started. Does nothing unless [`Options::switches`] requests it.
    pub fn switch(
        &mut self,
        at: At,
        switch: ThreadSwitch,
        stack: Option<(EventTypeId, StackId)>,
    ) -> Returned {
        if !self.options.switches {
            return Returned::default();
        }
        let thread = self.switched(at);
        self.reach(at.time_ns);
        let (with, samples) = (With { stack, waker: None }, &mut self.samples);
        (self.thread_times).switch(thread, at.time_ns, switch, with, samples)
    }

    /// Ends the wait of the thread of `at`, as [`Session::switch`] does with
    /// [`ThreadSwitch::Ready`]. If the thread waits, `waker` returns the class of the wake-up, or a
    /// number that the returned interval will have ([`OffCpu::waker`](crate::OffCpu::waker)).
    pub fn wake(&mut self, at: At, waker: impl FnOnce(&mut Self) -> Option<ClassIndex>) {
        if !self.options.switches {
            return;
        }
        let thread = self.switched(at);
        self.reach(at.time_ns);
        if self.thread_times.is_blocked(thread) {
            let waker = waker(self);
            let (with, samples) = (With { stack: None, waker }, &mut self.samples);
            (self.thread_times).switch(thread, at.time_ns, ThreadSwitch::Ready, with, samples);
        }
    }

    /// Returns the thread of a switch.
    fn switched(&mut self, at: At) -> Switched {
        let pid = at.process.or(self.machine.facts.process_id);
        let tid = at.thread.unwrap_or(0);
        if pid.is_none() {
            return Switched::Early(tid);
        }
        let thread = self.thread(pid, tid, at.time_ns);
        self.identify_early(tid, thread);
        Switched::Thread(thread)
    }

    /// Continues the activity of a thread whose process was unknown, if it is this one.
    fn identify_early(&mut self, tid: u64, thread: ThreadIndex) {
        if let Some(early) = self.thread_times.take_early(tid) {
            let owner = (u32::try_from(tid).ok()).and_then(|tid| self.kernel.owner_before(tid));
            if owner == Some(self.machine.processes.threads[thread.index()].process) {
                self.thread_times.identify(early, thread);
            }
        }
    }

    /// Returns whether any event is about a process with this id.
    pub fn has_process(&self, pid: u32) -> bool {
        (self.machine.processes.incarnations(Some(pid)))
            .next()
            .is_some()
    }
}

fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn raw_event<'a>(schema: &'a EventSchema, at: At, payload: Payload<'a>) -> RawEvent<'a> {
    RawEvent {
        time_ns: at.time_ns,
        process_id: at.process,
        thread_id: at.thread,
        processor: None,
        pointer_size: payload.pointer_size,
        schema,
        payload: payload.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_without_room_are_counted() {
        let mut session = Session::new(Options::default());
        let at = At::new(1).process(1).thread(1);
        let mut address = 0;
        while !session.stacks.is_full() {
            let frames: Vec<u64> = (0..1 << 10).map(|i| address + i).collect();
            session.sample(at, &frames, Sample::cpu());
            address += 1 << 10;
        }
        let kept = session.samples.len();
        assert_eq!(session.machine.counters.stacks_dropped, 0);
        session.sample(at, &[u64::MAX], Sample::cpu());
        session.sample(at, &[], Sample::cpu());
        assert_eq!(session.machine.counters.stacks_dropped, 1);
        assert_eq!(session.samples.len(), kept);
    }
}
