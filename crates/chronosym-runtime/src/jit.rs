//! Compilations by the JIT, and lookups of precompiled code.

use std::sync::Arc;

use chronosym_core::{Filter, ProcessIndex, ThreadIndex, Timeline};
use chronosym_events::{MethodFlags, OptimizationTier};
use chronosym_types::hash::HashMap;

use crate::events::{RuntimeEvent, for_each, passes};
use crate::percentiles::Percentiles;
use crate::report::{Report, id};
use crate::texts::Texts;
use crate::unused::Unused;

/// The compilations of a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Jit {
    /// One for each compiled body, in order of their loads.
    pub methods: Vec<JittedMethod>,
    /// By thread, the one with the most time first.
    pub threads: Vec<ThreadJit>,
    /// Lookups of ReadyToRun code.
    pub lookups: EntryPointLookups,
    /// Events that could not be used.
    pub unused: Unused,
}

/// A compilation: MethodJittingStarted and the MethodLoad that follows on its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JittedMethod {
    /// The process.
    pub process: ProcessIndex,
    /// The thread that compiled it.
    pub thread: ThreadIndex,
    /// The runtime's id of the method.
    pub method_id: u64,
    /// Namespace, type and method; absent if no event states them.
    pub name: Option<Arc<str>>,
    /// The signature as the runtime spells it.
    pub signature: Option<Arc<str>>,
    /// The tier; absent for stubs and dynamic methods of some runtimes.
    pub tier: Option<OptimizationTier>,
    /// A dynamic method or a stub: no event states the start of its compilation.
    pub is_dynamic: bool,
    /// Whether its precompiled code was rejected: by a profiler or by the ReadyToRun image's own
    /// checks.
    pub rejected: bool,
    /// Bytes of IL.
    pub il_size: Option<u32>,
    /// Bytes of native code.
    pub native_size: u32,
    /// When its compilation started, ns.
    pub start_ns: Option<u64>,
    /// When its code was ready, ns.
    pub load_ns: u64,
    /// Duration of the compilation in ns, without other compilations that ran within it on the
    /// thread.
    pub duration_ns: Option<u64>,
}

/// The compilations of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadJit {
    /// The thread.
    pub thread: ThreadIndex,
    /// Number of compiled bodies.
    pub methods: u64,
    /// Sum of the durations that are known, ns.
    pub duration_ns: u64,
}

/// Lookups of ReadyToRun code: R2RGetEntryPoint, and R2RGetEntryPointStart before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryPointLookups {
    /// Lookups that found precompiled code, which the runtime then used.
    pub found: u64,
    /// Lookups that found none, or rejected it: the JIT compiles the method.
    pub not_found: u64,
    /// Durations, without lookups that were nested on the thread.
    pub durations: Option<Percentiles>,
}

impl Jit {
    /// Reads the compilations that end within a filter.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let mut reader = Reader::default();
        let mut unused = Unused::default();
        for_each(
            timeline,
            filter,
            Report::Jit.events(),
            &mut unused,
            |event, unused| {
                reader.event(event, unused);
            },
        );
        let open = reader.compiling.values().chain(reader.looking_up.values());
        unused.without_end += open.map(|open| open.stack.len() as u64).sum::<u64>();
        let mut jit = Jit {
            methods: reader.methods,
            ..Jit::default()
        };
        jit.methods
            .retain(|it| passes(filter, timeline, it.thread, it.load_ns));
        let mut threads: HashMap<ThreadIndex, ThreadJit> = HashMap::default();
        for method in &jit.methods {
            let of = threads.entry(method.thread).or_insert(ThreadJit {
                thread: method.thread,
                methods: 0,
                duration_ns: 0,
            });
            of.methods += 1;
            of.duration_ns += method.duration_ns.unwrap_or(0);
        }
        jit.threads = threads.into_values().collect();
        (jit.threads).sort_by_key(|it| (std::cmp::Reverse(it.duration_ns), it.thread));
        let lookups = reader.lookups.iter();
        let lookups = lookups.filter(|it| passes(filter, timeline, it.thread, it.time_ns));
        let mut durations = Vec::new();
        for lookup in lookups {
            match lookup.found {
                true => jit.lookups.found += 1,
                false => jit.lookups.not_found += 1,
            }
            durations.extend(lookup.duration_ns);
        }
        jit.lookups.durations = Percentiles::new(durations);
        jit.unused = unused;
        jit
    }

    /// Returns the time of all compilations whose duration is known, ns.
    pub fn duration_ns(&self) -> u64 {
        let known = self.methods.iter().filter_map(|method| method.duration_ns);
        known.fold(0, u64::saturating_add)
    }

    /// Returns the time to steady state, ns since the trace began: when 95 % of the time that the
    /// JIT took in the whole trace had passed. `None` without durations.
    pub fn steady_ns(&self) -> Option<u64> {
        let all = u128::from(self.duration_ns());
        let mut passed = 0;
        (self.methods.iter())
            .filter_map(|method| Some((method.load_ns, method.duration_ns?)))
            .find_map(|(load_ns, duration)| {
                passed += u128::from(duration);
                (passed * 100 >= all * 95).then_some(load_ns)
            })
    }
}

#[derive(Default)]
struct Reader {
    texts: Texts,
    methods: Vec<JittedMethod>,
    lookups: Vec<Lookup>,
    compiling: HashMap<ThreadIndex, OpenStack>,
    looking_up: HashMap<ThreadIndex, OpenStack>,
}

struct Lookup {
    thread: ThreadIndex,
    time_ns: u64,
    found: bool,
    duration_ns: Option<u64>,
}

/// A compilation or lookup that has started.
struct Open {
    method_id: u64,
    start_ns: u64,
    /// Time of those that started and ended within it.
    nested_ns: u64,
    il_size: Option<u32>,
    name: Option<Arc<str>>,
    signature: Option<Arc<str>>,
}

/// The activities of a thread that have started and not ended, outermost first.
#[derive(Default)]
struct OpenStack {
    stack: Vec<Open>,
    /// The positions of each method in the stack, ascending.
    of_method: HashMap<u64, Vec<usize>>,
}

impl OpenStack {
    fn start(&mut self, open: Open) {
        let positions = self.of_method.entry(open.method_id).or_default();
        positions.push(self.stack.len());
        self.stack.push(open);
    }

    fn pop(&mut self) -> Option<Open> {
        let open = self.stack.pop()?;
        if let Some(positions) = self.of_method.get_mut(&open.method_id) {
            positions.pop();
        }
        Some(open)
    }

    /// Ends the innermost activity of a method, with its self time. Nested activities that have not
    /// ended are dropped.
    fn end(&mut self, method_id: u64, time_ns: u64, unused: &mut Unused) -> Option<(Open, u64)> {
        let at = *self.of_method.get(&method_id)?.last()?;
        // Time of activities that ended within the dropped ones is not the method's self time
        // either.
        let mut nested_ns = 0u64;
        while self.stack.len() > at + 1 {
            unused.without_end += 1;
            nested_ns = nested_ns.saturating_add(self.pop()?.nested_ns);
        }
        let ended = self.pop()?;
        let nested_ns = nested_ns.saturating_add(ended.nested_ns);
        let whole = time_ns.saturating_sub(ended.start_ns);
        if let Some(outer) = self.stack.last_mut() {
            outer.nested_ns = outer.nested_ns.saturating_add(whole);
        }
        Some((ended, whole.saturating_sub(nested_ns)))
    }
}

impl Reader {
    fn event(&mut self, event: &RuntimeEvent<'_>, unused: &mut Unused) {
        let Some(method_id) = event.number("MethodID") else {
            unused.incomplete += 1;
            return;
        };
        match event.id {
            id::METHOD_JITTING_STARTED | id::R2R_GET_ENTRY_POINT_START => {
                let is_jit = event.id == id::METHOD_JITTING_STARTED;
                let open = Open {
                    method_id,
                    start_ns: event.time_ns,
                    nested_ns: 0,
                    il_size: event.u32("MethodILSize"),
                    name: self.name(event),
                    signature: self.signature(event),
                };
                let all = match is_jit {
                    true => &mut self.compiling,
                    false => &mut self.looking_up,
                };
                all.entry(event.thread).or_default().start(open);
            }
            id::R2R_GET_ENTRY_POINT => {
                let open = self.looking_up.entry(event.thread).or_default();
                let ended = open.end(method_id, event.time_ns, unused);
                self.lookups.push(Lookup {
                    thread: event.thread,
                    time_ns: event.time_ns,
                    found: event
                        .number("EntryPoint")
                        .is_some_and(|address| address != 0),
                    duration_ns: ended.map(|(_, own)| own),
                });
            }
            _ => self.load(event, method_id, unused),
        }
    }

    fn load(&mut self, event: &RuntimeEvent<'_>, method_id: u64, unused: &mut Unused) {
        let (Some(flags), Some(native_size)) = (
            event.u32("MethodFlags").map(MethodFlags),
            event.u32("MethodSize"),
        ) else {
            unused.incomplete += 1;
            return;
        };
        if !flags.is_jitted() {
            return;
        }
        let open = self.compiling.entry(event.thread).or_default();
        let (started, own) = open.end(method_id, event.time_ns, unused).unzip();
        let (name, signature) = (self.name(event), self.signature(event));
        let started = started.as_ref();
        self.methods.push(JittedMethod {
            process: event.process,
            thread: event.thread,
            method_id,
            name: name.or_else(|| started?.name.clone()),
            signature: signature.or_else(|| started?.signature.clone()),
            tier: flags.tier(),
            is_dynamic: flags.is_dynamic(),
            rejected: flags.0 & REJECTED != 0,
            il_size: started.and_then(|it| it.il_size),
            native_size,
            start_ns: started.map(|it| it.start_ns),
            load_ns: event.time_ns,
            duration_ns: own,
        });
    }

    fn name(&mut self, event: &RuntimeEvent<'_>) -> Option<Arc<str>> {
        let name = event.text("MethodName")?;
        Some(match event.text("MethodNameSpace") {
            Some(namespace) => self.texts.share(&format!("{namespace}.{name}")),
            None => self.texts.share(&name),
        })
    }

    fn signature(&mut self, event: &RuntimeEvent<'_>) -> Option<Arc<str>> {
        Some(self.texts.share(&event.text("MethodSignature")?))
    }
}

/// MethodFlags: precompiled code was rejected by a profiler (0x20) or by ReadyToRun (0x40).
const REJECTED: u32 = 0x60;
