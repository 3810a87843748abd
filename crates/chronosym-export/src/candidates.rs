//! Inlinees by the JIT's events: guesses for bodies whose inline tree is not recorded.

use std::sync::Arc;

use chronosym_core::{
    BodyIndex, Code, Filter, Frame, FrameId, ModuleIndex, ProcessIndex, Resolver, Timeline,
};
use chronosym_runtime::JitDecisions;
use chronosym_types::hash::HashMap;

use crate::compiled_bodies::{bodies_of, body_of};

/// The methods that may be inlined between a frame of a body and the frame that it calls.
#[derive(Debug, Default)]
pub struct CandidateInlinees {
    /// By body and name of the called method, outermost first.
    callers: HashMap<(ProcessIndex, BodyIndex), HashMap<Arc<str>, Vec<Candidate>>>,
}

#[derive(Clone, Debug)]
struct Candidate {
    name: Arc<str>,
    module: Option<ModuleIndex>,
}

impl CandidateInlinees {
    /// Finds the candidates for bodies of a timeline that was read with the options of
    /// [`JitDecisions`].
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let decisions = JitDecisions::new(timeline, filter);
        let (by_address, _) = bodies_of(timeline);
        let modules = modules_of_types(timeline);
        let mut callers = HashMap::default();
        for body in &decisions.bodies {
            let Some(key) = body_of(&by_address, body) else {
                continue;
            };
            let candidate = |name: Arc<str>| Candidate {
                module: type_of(&name)
                    .and_then(|of| *modules.get(&(body.process, of.to_owned()))?),
                name,
            };
            let of_body = body.inlined_callers().into_iter();
            let of_body: HashMap<_, Vec<_>> = of_body
                .map(|(callee, chain)| (callee, chain.into_iter().map(candidate).collect()))
                .collect();
            if !of_body.is_empty() {
                callers.insert(key, of_body);
            }
        }
        CandidateInlinees { callers }
    }

    /// Returns whether the trace has none.
    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }

    fn between(&self, caller: &Frame, callee: &Frame) -> &[Candidate] {
        let found = match caller.code {
            // An inlinee is known from an inline tree.
            Code::Body(process, body) if !caller.inlined && !callee.inlined => {
                let of_body = self.callers.get(&(process, body));
                of_body.and_then(|of| of.get(callee.function.recorded_name()?))
            }
            _ => None,
        };
        found.map_or(&[], Vec::as_slice)
    }
}

/// The frames of candidates in the stacks of one resolver, each once.
#[derive(Debug, Default)]
pub(crate) struct CandidateFrames(HashMap<(FrameId, Arc<str>), FrameId>);

impl CandidateFrames {
    /// Returns the frames between two frames of a stack, outermost first.
    pub fn between(
        &mut self,
        candidates: &CandidateInlinees,
        resolver: &mut Resolver,
        caller: FrameId,
        callee: FrameId,
    ) -> Vec<FrameId> {
        let found = candidates.between(resolver.frame(caller), resolver.frame(callee));
        let frame = |of: &Candidate| {
            let key = (caller, of.name.clone());
            *(self.0.entry(key))
                .or_insert_with(|| resolver.add_candidate_inlinee(caller, &of.name, of.module))
        };
        found.iter().map(frame).collect()
    }
}

/// By type, the module of its methods, if they have one in common: events about inlining state no
/// module.
fn modules_of_types(timeline: &Timeline) -> HashMap<(ProcessIndex, String), Option<ModuleIndex>> {
    let mut modules = HashMap::default();
    for process in timeline.processes() {
        for body in timeline.bodies(process.index) {
            let of = body.name.as_deref().and_then(type_of);
            if let Some(of) = of {
                let key = (process.index, of.to_owned());
                let module = modules.entry(key).or_insert(body.module_index);
                *module = module.filter(|_| *module == body.module_index);
            }
        }
    }
    modules
}

/// Returns namespace and type of a method.
fn type_of(name: &str) -> Option<&str> {
    // The name of a constructor is `.ctor`.
    let (owner, _) = name.rsplit_once('.')?;
    Some(owner.strip_suffix('.').unwrap_or(owner))
}
