//! The JIT's decisions about calls: inlining and tail calls.

use std::sync::Arc;

use chronosym_core::{Filter, Options, ProcessIndex, SampleSelection, ThreadIndex, Timeline};
use chronosym_events::{MethodFlags, OptimizationTier};
use chronosym_types::hash::HashMap;

use crate::events::{RuntimeEvent, for_each};
use crate::numbers::TailCallType;
use crate::report::{MAX_KEPT_BYTES, id, selectors};
use crate::texts::Texts;
use crate::unused::Unused;

/// The decisions of the JIT in a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct JitDecisions {
    /// Compiled bodies about whose calls an event states something, in order of their loads.
    pub bodies: Vec<CompiledBody>,
    /// Events that could not be used.
    pub unused: Unused,
}

/// A compiled body and the decisions about the calls in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompiledBody {
    /// The process.
    pub process: ProcessIndex,
    /// Namespace, type and method.
    pub name: Arc<str>,
    /// The signature as the runtime spells it.
    pub signature: Arc<str>,
    /// First address of the code; absent if the load of the body is not in the trace.
    pub start: Option<u64>,
    /// Bytes of code.
    pub size: u32,
    /// When it was loaded or, without a load, decided about last, ns.
    pub time_ns: u64,
    /// Its tier.
    pub tier: Option<OptimizationTier>,
    /// Calls that were inlined (MethodJitInliningSucceeded).
    pub inlined: Vec<InlinedCall>,
    /// Calls that were not (MethodJitInliningFailed).
    pub rejected: Vec<RejectedCall>,
    /// Tail calls that were made or not (MethodJitTailCallSucceeded, …Failed).
    pub tail_calls: Vec<TailCall>,
}

/// A call that was inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct InlinedCall {
    /// The method that calls: the compiled one, or one that is inlined itself.
    pub caller: Arc<str>,
    /// The method that was inlined.
    pub callee: Arc<str>,
}

/// A call that was not inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct RejectedCall {
    /// The method that calls.
    pub caller: Arc<str>,
    /// The method that is called.
    pub callee: Arc<str>,
    /// The JIT's words.
    pub reason: Arc<str>,
    /// Whether the reason holds for every call of the method.
    pub always: bool,
}

/// A call in tail position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TailCall {
    /// The method that calls.
    pub caller: Arc<str>,
    /// The method that is called.
    pub callee: Arc<str>,
    /// Whether the IL demands it (`tail.`).
    pub is_explicit: bool,
    /// The type of the tail call, whose caller is then missing from stacks of the callee; or the
    /// JIT's reason why it made none.
    pub outcome: Result<TailCallType, Arc<str>>,
}

impl TailCall {
    /// Returns whether the caller's frame is missing from stacks of the callee.
    pub fn leaves_caller(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|it| it.leaves_caller())
    }
}

const EVENTS: [u32; 8] = [
    id::METHOD_LOAD,
    id::METHOD_LOAD_VERBOSE,
    id::INLINING_SUCCEEDED,
    id::INLINING_FAILED_ANSI,
    id::INLINING_FAILED,
    id::TAIL_CALL_SUCCEEDED,
    id::TAIL_CALL_FAILED_ANSI,
    id::TAIL_CALL_FAILED,
];

impl JitDecisions {
    /// Returns options of a session that keeps the events of decisions, up to 1 GiB, and the
    /// samples of profilers.
    pub fn options() -> Options {
        let mut options = Options::from(SampleSelection::Profilers);
        JitDecisions::keep(&mut options);
        options
    }

    /// Makes a session keep the events of decisions, up to 1 GiB.
    pub fn keep(options: &mut Options) {
        options.keep.extend(selectors(&EVENTS));
        options.max_kept_bytes = MAX_KEPT_BYTES;
    }

    /// The argument of `dotnet-trace collect --providers`: the runtime's provider with the keywords
    /// Loader, Jit, NGen and JitTracing, verbose.
    pub const PROVIDER: &'static str = "Microsoft-Windows-DotNETRuntime:0x1038:5";

    /// Reads the decisions about bodies of the processes that a filter selects.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let mut reader = Reader::default();
        let mut unused = Unused::default();
        for_each(timeline, filter, &EVENTS, &mut unused, |event, unused| {
            reader.event(event, unused);
        });
        let mut bodies = reader.bodies;
        let open = reader.open.into_values();
        unused.without_end = open.len() as u64;
        bodies.extend(open);
        bodies.sort_by_key(|body| body.time_ns);
        JitDecisions { bodies, unused }
    }
}

/// A thread and the method that it compiles: namespace and name, signature.
type Key = (ThreadIndex, Arc<str>, Arc<str>);

#[derive(Default)]
struct Reader {
    texts: Texts,
    bodies: Vec<CompiledBody>,
    /// Compilations whose load is still to come.
    open: HashMap<Key, CompiledBody>,
}

impl Reader {
    fn event(&mut self, event: &RuntimeEvent<'_>, unused: &mut Unused) {
        if matches!(event.id, id::METHOD_LOAD | id::METHOD_LOAD_VERBOSE) {
            return self.load(event);
        }
        let (caller, callee) = match event.id {
            id::INLINING_SUCCEEDED | id::INLINING_FAILED | id::INLINING_FAILED_ANSI => {
                ("Inliner", "Inlinee")
            }
            _ => ("Caller", "Callee"),
        };
        let compiled = method(&mut self.texts, event, "MethodBeingCompiled");
        let signature = event.text("MethodBeingCompiledNameSignature");
        let callee = method(&mut self.texts, event, callee);
        let (Some(compiled), Some(callee)) = (compiled, callee) else {
            unused.incomplete += 1;
            return;
        };
        let caller = method(&mut self.texts, event, caller).unwrap_or_else(|| compiled.clone());
        let signature = self.texts.share(&signature.unwrap_or_default());
        let reason = event.text("FailReason").map(|text| self.texts.share(&text));
        let key = (event.thread, compiled.clone(), signature.clone());
        let body = self.open.entry(key).or_insert_with(|| CompiledBody {
            process: event.process,
            name: compiled,
            signature,
            start: None,
            size: 0,
            time_ns: event.time_ns,
            tier: None,
            inlined: Vec::new(),
            rejected: Vec::new(),
            tail_calls: Vec::new(),
        });
        body.time_ns = event.time_ns;
        match event.id {
            id::INLINING_SUCCEEDED => body.inlined.push(InlinedCall { caller, callee }),
            id::INLINING_FAILED | id::INLINING_FAILED_ANSI => {
                let Some(reason) = reason else {
                    unused.incomplete += 1;
                    return;
                };
                body.rejected.push(RejectedCall {
                    caller,
                    callee,
                    reason,
                    always: event.flag("FailAlways").unwrap_or(false),
                });
            }
            _ => match tail_call(&mut self.texts, event) {
                Some(call) => body.tail_calls.push(call),
                None => unused.incomplete += 1,
            },
        }
    }

    /// Finds the body to which its thread's decisions belong. If a thread compiles a method several
    /// times, they belong to the next load.
    fn load(&mut self, event: &RuntimeEvent<'_>) {
        let (Some(name), Some(start)) = (
            method(&mut self.texts, event, "Method"),
            event.number("MethodStartAddress"),
        ) else {
            return;
        };
        let signature = self
            .texts
            .share(&event.text("MethodSignature").unwrap_or_default());
        let Some(mut body) = self.open.remove(&(event.thread, name, signature)) else {
            return;
        };
        body.start = Some(start);
        body.size = event.u32("MethodSize").unwrap_or(0);
        body.time_ns = event.time_ns;
        body.tier = event
            .u32("MethodFlags")
            .and_then(|flags| MethodFlags(flags).tier());
        self.bodies.push(body);
    }
}

/// Returns the tail call that an event states, made or not. One by the compiled method itself states
/// no caller.
pub(crate) fn tail_call(texts: &mut Texts, event: &RuntimeEvent<'_>) -> Option<TailCall> {
    let reason = event.text("FailReason").map(|text| texts.share(&text));
    let made = event.u32("TailCallType").map(TailCallType);
    let caller = method(texts, event, "Caller");
    Some(TailCall {
        caller: caller.or_else(|| method(texts, event, "MethodBeingCompiled"))?,
        callee: method(texts, event, "Callee")?,
        is_explicit: event.flag("TailPrefix").unwrap_or(false),
        outcome: made.map(Ok).or(reason.map(Err))?,
    })
}

/// Returns namespace and name of a method whose fields start with `role`.
fn method(texts: &mut Texts, event: &RuntimeEvent<'_>, role: &str) -> Option<Arc<str>> {
    let known = |text: &String| text != "<null>";
    let name = event.text(&format!("{role}Name")).filter(known)?;
    let namespace = match role {
        "Method" => "MethodNameSpace".to_owned(),
        role => format!("{role}Namespace"),
    };
    Some(match event.text(&namespace).filter(known) {
        Some(namespace) => texts.share(&format!("{namespace}.{name}")),
        None => texts.share(&name),
    })
}
