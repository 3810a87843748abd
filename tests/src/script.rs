//! A synthetic EventPipe trace told event by event, and questions to the timeline that comes of it.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use chronosym::{Filter, Frame, Options, Position, Resolver, Session, Timeline};
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

/// A trace in the making: one process, V4 unless told.
pub struct Script {
    writer: NettraceWriter,
    types: HashMap<(&'static str, u32, u32), TypeId>,
}

impl Default for Script {
    fn default() -> Self {
        Script::of(NettraceWriter::v4())
    }
}

impl Script {
    /// A trace of another kind, without events yet.
    pub fn of(writer: NettraceWriter) -> Self {
        Script {
            writer,
            types: HashMap::new(),
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
        let event_type = self.event_type(provider, id, version);
        self.writer.event(event_type, time, thread, &[], payload);
    }

    fn event_type(&mut self, provider: &'static str, id: u32, version: u32) -> TypeId {
        *self
            .types
            .entry((provider, id, version))
            .or_insert_with(|| self.writer.event_type(provider, id, version))
    }

    /// A verbose load, V2.
    pub fn load(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.event(RUNTIME, 143, 2, time, thread, &method.encode(2));
    }

    /// A verbose unload, V2.
    pub fn unload(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.event(RUNTIME, 144, 2, time, thread, &method.encode(2));
    }

    /// The rundown at the start lists the method.
    pub fn dc_start(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.event(RUNDOWN, 143, 2, time, thread, &method.encode(2));
    }

    /// The rundown at the end lists the method.
    pub fn dc_end(&mut self, time: i64, thread: u64, method: Method<'_>) {
        self.event(RUNDOWN, 144, 2, time, thread, &method.encode(2));
    }

    /// The rundown is complete.
    pub fn complete(&mut self, time: i64) {
        self.event(RUNDOWN, 146, 1, time, 1, &[0, 0]);
    }

    /// A live IL map, V0: its version field says nothing.
    pub fn il_map(&mut self, time: i64, thread: u64, id: u64, entries: &[(i32, u32)]) {
        let map = ILMap {
            id,
            entries,
            ..ILMap::default()
        };
        self.event(RUNTIME, 190, 0, time, thread, &map.encode(0));
    }

    /// A module load, V2.
    pub fn module_load(&mut self, time: i64, id: u64, path: &str) {
        let module = Module {
            id,
            il_path: path,
            ..Module::default()
        };
        self.event(RUNTIME, 152, 2, time, 1, &module.encode(2));
    }

    /// A module unload, V2.
    pub fn module_unload(&mut self, time: i64, id: u64, path: &str) {
        let module = Module {
            id,
            il_path: path,
            ..Module::default()
        };
        self.event(RUNTIME, 153, 2, time, 1, &module.encode(2));
    }

    /// A tick that finds a thread in managed code.
    pub fn sample(&mut self, time: i64, thread: u64, leaf_first: &[u64]) {
        let event_type = self.event_type(SAMPLER, 0, 0);
        let payload = payload::thread_sample(2);
        let spec = EventSpec::new(event_type, time, thread)
            .stack(leaf_first)
            .payload(&payload)
            .captured_by(999);
        self.writer.record(&spec);
    }

    /// Events of a thread that the runtime dropped.
    pub fn lose(&mut self, thread: u64, count: u32) {
        self.writer.lose(thread, count);
    }

    /// All events so far are earlier than those to come.
    pub fn sequence_point(&mut self) {
        self.writer.sequence_point();
    }

    /// Reads the trace.
    pub fn finish(self) -> Answers {
        let bytes = self.writer.finish();
        let mut session = Session::new(Options::default());
        chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
        Answers(session.finish())
    }
}

/// What came of a trace.
pub struct Answers(pub Arc<Timeline>);

impl Answers {
    /// What stood at an address, innermost first.
    pub fn frames(&self, address: u64, time: u64, position: Position) -> Vec<Frame> {
        let process = self.0.find_process(PID, None).expect("the process");
        self.0.frames(process, address, time, position, None)
    }

    /// What stood at the very address.
    pub fn at(&self, address: u64, time: u64) -> Frame {
        self.frames(address, time, Position::Exact)
            .pop()
            .expect("a frame")
    }

    /// Its name, or the reason why it has none.
    pub fn name(&self, address: u64, time: u64) -> String {
        text(&self.at(address, time))
    }

    /// Name or reason of what a call returns to.
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
        let mut resolver = Resolver::new(&self.0, None);
        let mut samples = Vec::new();
        self.0.for_each_sample(&Filter::default(), |class, time| {
            let stack = resolver.resolve(class, time).expect("a stack").0;
            samples.push((
                time,
                resolver
                    .stack(stack)
                    .map(|id| text(resolver.frame(id)))
                    .collect(),
            ));
        });
        samples
    }
}

/// A frame's name, or the reason why it has none.
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
