//! Methods that call others by tail calls, so that stacks lack their frames.

use std::collections::BTreeSet;
use std::sync::Arc;

use chronosym_core::{Filter, Options, ProcessIndex, Timeline};
use chronosym_types::hash::HashMap;

use crate::decisions::{TailCall, tail_call};
use crate::events::for_each;
use crate::report::{MAX_KEPT_BYTES, id, selectors};
use crate::texts::Texts;
use crate::unused::Unused;

const EVENTS: [u32; 1] = [id::TAIL_CALL_SUCCEEDED];

/// The methods whose frames are missing from stacks of the methods that they call, by the JIT's
/// events.
#[derive(Clone, Debug, Default)]
pub struct TailCallers(HashMap<ProcessIndex, HashMap<Arc<str>, BTreeSet<Arc<str>>>>);

impl TailCallers {
    /// Makes a session keep the events of tail calls that were made.
    pub fn keep(options: &mut Options) {
        options.keep.extend(selectors(&EVENTS));
        options.max_kept_bytes = MAX_KEPT_BYTES;
    }

    /// Reads the tail calls in processes that a filter selects.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let (mut all, mut texts) = (TailCallers::default(), Texts::default());
        let mut unused = Unused::default();
        for_each(timeline, filter, &EVENTS, &mut unused, |event, _| {
            if let Some(call) = tail_call(&mut texts, event).filter(TailCall::leaves_caller) {
                let of = all.0.entry(event.process).or_default();
                of.entry(call.callee).or_default().insert(call.caller);
            }
        });
        all
    }

    /// Returns the methods that call a method of a process by a tail call, by their names.
    pub fn of(&self, process: ProcessIndex, callee: &str) -> impl Iterator<Item = &str> {
        let of_process = self.0.get(&process);
        let callers = of_process.and_then(|of| of.get(callee));
        callers.into_iter().flatten().map(|caller| &**caller)
    }
}
