//! A sequence of code events, and queries of the timelines built from it. It is written as an
//! EventPipe trace and, if they can express it, as typed facts and as an ETW trace: all must have
//! the same results.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use chronosym::facts::{self, Action, At, Fact, MethodFlags, Sample};
use chronosym::{
    EventKey, EventSchema, Filter, Frame, Options, Payload, PointerSize, Position, Provider,
    Resolver, SampleKind, Session, Timeline,
};
use chronosym_etl::Reader as EtlReader;
use chronosym_support::etl::{self, EtlWriter};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{self, ILMap, Method, Module};
use chronosym_support::trace::{EventSpec, TypeId};

/// Provider of the runtime.
pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// Provider of the rundown.
pub const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
/// The runtime's private provider.
pub const PRIVATE: &str = "Microsoft-Windows-DotNETRuntimePrivate";
/// Provider of wall-clock samples.
pub const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// Jitted, quick.
pub const TIER0: u32 = 0x8 | 3 << 7;
/// Jitted, optimised.
pub const TIER1: u32 = 0x8 | 4 << 7;

/// Process of the trace.
pub const PID: u32 = 4242;

/// A script being built: one process, in EventPipe's V4 unless another writer is given.
pub struct Script {
    writer: NettraceWriter,
    types: HashMap<(&'static str, u32, u32), TypeId>,
    steps: Vec<Step>,
    /// Only EventPipe can express the script.
    alone: bool,
}

/// An event of the story.
struct Step {
    time: i64,
    thread: u64,
    event: (&'static str, u32, u32),
    payload: Vec<u8>,
    /// As a typed fact; without one, the event is pushed in bytes.
    fact: Option<Said>,
}

/// A typed fact that owns its text.
enum Said {
    Method(Action, facts::Method<'static>, Option<[String; 3]>),
    Module(Action, u64, String),
    IlMap(u64, Vec<(i32, u32)>),
    Complete,
    Sample(Vec<u64>),
}

impl Default for Script {
    fn default() -> Self {
        let mut script = Script::of(NettraceWriter::v4());
        script.alone = false;
        script
    }
}

impl Script {
    /// A trace of another kind, without events yet. It is played by EventPipe alone.
    pub fn of(writer: NettraceWriter) -> Self {
        Script {
            writer,
            types: HashMap::new(),
            steps: Vec::new(),
            alone: true,
        }
    }

    /// An event by provider, id and version.
    pub fn event(
        &mut self,
        provider: &'static str,
        id: u32,
        version: u32,
        time: i64,
        thread: u64,
        payload: &[u8],
    ) {
        self.say(time, thread, (provider, id, version), payload, None);
    }

    fn say(
        &mut self,
        time: i64,
        thread: u64,
        event: (&'static str, u32, u32),
        payload: &[u8],
        fact: Option<Said>,
    ) {
        let event_type = self.event_type(event.0, event.1, event.2);
        let mut spec = EventSpec::new(event_type, time, thread).payload(payload);
        if let Some(Said::Sample(stack)) = &fact {
            spec = spec.stack(stack).captured_by(999);
        }
        self.writer.record(&spec);
        self.steps.push(Step {
            time,
            thread,
            event,
            payload: payload.to_vec(),
            fact,
        });
    }

    fn event_type(&mut self, provider: &'static str, id: u32, version: u32) -> TypeId {
        *self
            .types
            .entry((provider, id, version))
            .or_insert_with(|| self.writer.event_type(provider, id, version))
    }

    fn method(&mut self, action: Action, time: i64, thread: u64, method: Method<'_>) {
        let event = match action {
            Action::Load => (RUNTIME, 143, 2),
            Action::Unload => (RUNTIME, 144, 2),
            Action::DCStart => (RUNDOWN, 143, 2),
            Action::DCEnd => (RUNDOWN, 144, 2),
        };
        let mut fact = facts::Method::new(action, method.id, method.start, method.size)
            .in_module(method.module, method.token);
        fact.flags = MethodFlags(method.flags);
        fact.clr_instance = method.clr;
        fact.native_code_version = method.code_version;
        let names = method.names.map(|(a, b, c)| [a, b, c].map(str::to_owned));
        let said = Said::Method(action, fact, names);
        self.say(time, thread, event, &method.encode(2), Some(said));
    }

    /// A verbose load, V2.
    pub fn load(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.method(Action::Load, time, thread, method);
    }

    /// A verbose unload, V2.
    pub fn unload(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.method(Action::Unload, time, thread, method);
    }

    /// The rundown at the start lists the method.
    pub fn dc_start(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.method(Action::DCStart, time, thread, method);
    }

    /// The rundown at the end lists the method.
    pub fn dc_end(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.method(Action::DCEnd, time, thread, method);
    }

    /// The rundown is complete.
    pub fn complete(&mut self, time: i64) {
        self.say(time, 1, (RUNDOWN, 146, 1), &[0, 0], Some(Said::Complete));
    }

    /// Adds a live IL map, V0, whose version field has no meaning.
    pub fn il_map(&mut self, time: i64, thread: u64, id: u64, entries: &[(i32, u32)]) {
        let map = ILMap {
            id,
            entries,
            ..ILMap::default()
        };
        let said = Said::IlMap(id, entries.to_vec());
        self.say(time, thread, (RUNTIME, 190, 0), &map.encode(0), Some(said));
    }

    /// A module load, V2.
    pub fn module_load(&mut self, time: i64, id: u64, path: &str) {
        self.module(Action::Load, 152, time, id, path);
    }

    /// A module unload, V2.
    pub fn module_unload(&mut self, time: i64, id: u64, path: &str) {
        self.module(Action::Unload, 153, time, id, path);
    }

    fn module(&mut self, action: Action, event: u32, time: i64, id: u64, path: &str) {
        let module = Module {
            id,
            il_path: path,
            ..Module::default()
        };
        let said = Said::Module(action, id, path.to_owned());
        self.say(time, 1, (RUNTIME, event, 2), &module.encode(2), Some(said));
    }

    /// A tick that finds a thread in managed code.
    pub fn sample(&mut self, time: i64, thread: u64, leaf_first: &[u64]) {
        let payload = payload::thread_sample(2);
        let said = Said::Sample(leaf_first.to_vec());
        self.say(time, thread, (SAMPLER, 0, 0), &payload, Some(said));
    }

    /// Events of a thread that the runtime dropped.
    pub fn lose(&mut self, thread: u64, count: u32) {
        self.alone = true;
        self.writer.lose(thread, count);
    }

    /// Declares that all events so far are earlier than the following ones.
    pub fn sequence_point(&mut self) {
        self.writer.sequence_point();
    }

    /// Reads the trace, and plays the story otherwise.
    pub fn finish(mut self) -> Answers {
        let bytes = self.writer.finish();
        let mut session = Session::new(Options::default());
        chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
        self.steps.sort_by_key(|step| step.time);
        let mut others = Vec::new();
        if !self.alone {
            others.push((typed(&self.steps), 1));
            // ETW has ticks of 100 ns: finer times are µs there.
            let is_coarse = self.steps.iter().all(|step| step.time % 100 == 0);
            let scale = if is_coarse { 1 } else { 1000 };
            others.extend(etw(&self.steps, scale).map(|timeline| (timeline, scale as u64)));
        }
        Answers(session.finish(), others)
    }
}

fn typed(steps: &[Step]) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    session.facts().process_id = Some(PID);
    session.facts().pointer_size = Some(8);
    for step in steps {
        let at = At::new(step.time.try_into().unwrap_or(0)).thread(step.thread);
        match &step.fact {
            Some(Said::Method(action, method, names)) => {
                let mut method = *method;
                method.action = *action;
                if let Some([a, b, c]) = names {
                    method.names = [&**a, b, c].map(facts::Text::from);
                }
                session.apply(at, method);
            }
            Some(Said::Module(action, id, path)) => {
                session.apply(at, facts::Module::new(*action, *id, &**path));
            }
            Some(Said::IlMap(id, entries)) => {
                session.apply(at, facts::IlMap::new(Action::Load, *id, entries));
            }
            Some(Said::Complete) => session.apply(at, Fact::RundownComplete { clr_instance: 0 }),
            Some(Said::Sample(stack)) => {
                session.sample(at, stack, Sample::new(SampleKind::WallManaged));
            }
            None => {
                let (provider, id, version) = step.event;
                let key = EventKey::Manifest {
                    provider: Provider::from_name(provider),
                    id,
                    version,
                };
                let event_type = session.event_type(Arc::new(EventSchema::new(key)));
                let payload = Payload {
                    pointer_size: PointerSize::Eight,
                    bytes: &step.payload,
                };
                session.push(event_type, at, payload, None);
            }
        }
    }
    session.finish()
}

/// Builds the ETW timeline, with times multiplied by `scale`. Samples are omitted: those of ETW's
/// profiler have another meaning.
fn etw(steps: &[Step], scale: i64) -> Option<Arc<Timeline>> {
    let mut writer = EtlWriter::new(Vec::new(), etl::Options::default()).ok()?;
    for step in steps {
        let (provider, id, version) = step.event;
        if provider == SAMPLER {
            continue;
        }
        if step.time < 0 || ![RUNTIME, RUNDOWN, PRIVATE].contains(&provider) {
            return None;
        }
        let guid = Provider::from_name(provider).guid()?.0;
        let thread = step.thread.try_into().ok()?;
        let at = etl::At::ns(step.time * scale).pid(PID).tid(thread);
        let (id, version) = (id.try_into().ok()?, version.try_into().ok()?);
        let written = writer.clr(at, guid, id, version, &step.payload, &[]);
        written.expect("memory");
    }
    let bytes = writer.finish().expect("memory");
    let reader = EtlReader::new(&*bytes, Default::default()).expect("a trace");
    let mut session = Session::new(Options::default());
    chronosym::source::etl::read(reader, &mut session).expect("the first recording");
    Some(session.finish())
}

/// The timelines of a script: that of EventPipe, and those of the other forms with the factor of
/// their times.
pub struct Answers(pub Arc<Timeline>, Vec<(Arc<Timeline>, u64)>);

impl Answers {
    /// Returns the frames at an address, innermost first.
    pub fn frames(&self, address: u64, time: u64, position: Position) -> Vec<Frame> {
        let ask = |timeline: &Timeline, time| {
            let process = timeline.find_process(PID, None).expect("the process");
            timeline.frames(process, address, time, position, None)
        };
        let frames = ask(&self.0, time);
        for (other, scale) in &self.1 {
            let format = &other.facts().format;
            let same = ask(other, time.saturating_mul(*scale));
            assert_eq!(same, frames, "{address:#x} at {time} by {format:?}");
        }
        frames
    }

    /// Returns the innermost frame at exactly this address.
    pub fn at(&self, address: u64, time: u64) -> Frame {
        self.frames(address, time, Position::Exact)
            .pop()
            .expect("a frame")
    }

    /// Returns its name, or the reason why it has none.
    pub fn name(&self, address: u64, time: u64) -> String {
        text(&self.at(address, time))
    }

    /// Returns the name or reason of the frame at a return address.
    pub fn caller(&self, address: u64, time: u64) -> String {
        text(
            &self
                .frames(address, time, Position::Return)
                .pop()
                .expect("a frame"),
        )
    }

    /// Names or reasons of the sampled stacks in time order, innermost first.
    pub fn samples(&self) -> Vec<(u64, Vec<String>)> {
        let samples = samples_of(&self.0);
        if let Some((typed, 1)) = self.1.first() {
            assert_eq!(samples_of(typed), samples, "by typed facts");
        }
        samples
    }
}

fn samples_of(timeline: &Arc<Timeline>) -> Vec<(u64, Vec<String>)> {
    let mut resolver = Resolver::new(timeline, None);
    let mut samples = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let stack = resolver.resolve(class, time).expect("a stack").0;
        let frames = resolver.stack(stack);
        samples.push((time, frames.map(|id| text(resolver.frame(id))).collect()));
    });
    samples
}

/// Returns a frame's name, or the reason why it has none.
pub fn text(frame: &Frame) -> String {
    match frame.name() {
        Ok(name) => name.to_owned(),
        Err(reason) => reason.to_string(),
    }
}

/// A method of a type `T` without a module.
pub fn method(id: u64, start: u64, size: u32, name: &str) -> Method<'_> {
    Method {
        id,
        start,
        size,
        flags: TIER0,
        names: Some(("T", name, "void  ()")),
        ..Method::default()
    }
}
