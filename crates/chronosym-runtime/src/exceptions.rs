//! Exceptions.

use std::sync::Arc;

use chronosym_core::{Filter, ProcessIndex, StackId, ThreadIndex, Timeline};
use chronosym_types::hash::HashMap;

use crate::events::{RuntimeEvent, for_each, passes};
use crate::report::{Report, id};
use crate::stacks::Stacks;
use crate::texts::Texts;
use crate::unused::Unused;

/// The exceptions of a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Exceptions {
    /// In time order.
    pub thrown: Vec<Thrown>,
    /// Whether the trace has any ExceptionCatchStart: without them no exception has a handler.
    pub has_catches: bool,
    /// Events that could not be used.
    pub unused: Unused,
}

/// An exception that was thrown (ExceptionThrown).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thrown {
    /// The process.
    pub process: ProcessIndex,
    /// The thread.
    pub thread: ThreadIndex,
    /// When, ns.
    pub time_ns: u64,
    /// Its type.
    pub type_name: Option<Arc<str>>,
    /// Its message.
    pub message: Option<Arc<str>>,
    /// The HRESULT.
    pub hresult: Option<u32>,
    /// Whether a `catch` block threw it again.
    pub rethrown: bool,
    /// The stack of the thread.
    pub stack: Option<StackId>,
    /// The method whose `catch` block handled it (ExceptionCatchStart).
    pub caught_in: Option<Arc<str>>,
    /// The time until that block started, ns: the search for the handler, filters, `finally`
    /// blocks, and unwinding, without exceptions that were thrown and handled meanwhile.
    pub dispatch_ns: Option<u64>,
}

impl Exceptions {
    /// Reads the exceptions that are thrown within a filter.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let mut reader = Reader {
            stacks: Stacks::new(timeline),
            texts: Texts::default(),
            threads: HashMap::default(),
            all: Exceptions::default(),
        };
        let mut unused = Unused::default();
        for_each(
            timeline,
            filter,
            Report::Exceptions.events(),
            &mut unused,
            |event, unused| {
                reader.event(event, unused);
            },
        );
        let mut all = reader.all;
        all.thrown
            .retain(|it| passes(filter, timeline, it.thread, it.time_ns));
        all.unused = unused;
        all
    }
}

struct Reader {
    stacks: Stacks,
    texts: Texts,
    threads: HashMap<ThreadIndex, State>,
    all: Exceptions,
}

/// The state of one thread.
#[derive(Default)]
struct State {
    /// The exceptions that are looking for their handlers.
    open: Vec<InFlight>,
    /// `finally` blocks and filters that run.
    blocks: u32,
}

/// An exception that is looking for its handler.
struct InFlight {
    /// Its index in the list.
    index: usize,
    /// Blocks that ran when it was thrown.
    blocks: u32,
    /// Time for which exceptions within its dispatch were in flight, ns.
    within_ns: u64,
}

impl State {
    /// Ends the flight of the last exception: of its time, `ns` belongs to none that remains.
    fn land(&mut self, ns: impl FnOnce(&InFlight) -> u64) -> Option<InFlight> {
        let landed = self.open.pop()?;
        if let Some(outer) = self.open.last_mut() {
            outer.within_ns = outer.within_ns.saturating_add(ns(&landed));
        }
        Some(landed)
    }
}

/// ExceptionFlags.
const NESTED: u64 = 0x2;
const RETHROWN: u64 = 0x4;

impl Reader {
    fn event(&mut self, event: &RuntimeEvent<'_>, unused: &mut Unused) {
        let state = self.threads.entry(event.thread).or_default();
        match event.id {
            id::EXCEPTION_THROWN => {
                let flags = event.number("ExceptionFlags").unwrap_or(0);
                // Only a finally block, a filter or a nested dispatch throws while another
                // exception looks for its handler; otherwise the end of that one is not recorded.
                if flags & NESTED == 0 {
                    let blocks = state.blocks;
                    while state.open.last().is_some_and(|it| it.blocks >= blocks) {
                        state.land(|it| it.within_ns);
                    }
                }
                state.open.push(InFlight {
                    index: self.all.thrown.len(),
                    blocks: state.blocks,
                    within_ns: 0,
                });
                let mut text = |name| Some(self.texts.share(&event.text(name)?));
                self.all.thrown.push(Thrown {
                    process: event.process,
                    thread: event.thread,
                    time_ns: event.time_ns,
                    type_name: text("ExceptionType"),
                    message: text("ExceptionMessage"),
                    hresult: event.u32("ExceptionHRESULT"),
                    rethrown: flags & RETHROWN != 0,
                    stack: self.stacks.take(event),
                    caught_in: None,
                    dispatch_ns: None,
                });
            }
            id::EXCEPTION_CATCH_START => {
                self.all.has_catches = true;
                let thrown = &mut self.all.thrown;
                let flight = |it: &InFlight| event.time_ns.saturating_sub(thrown[it.index].time_ns);
                let Some(landed) = state.land(flight) else {
                    unused.without_start += 1;
                    return;
                };
                // Blocks of the dispatch that the trace does not end.
                state.blocks = state.blocks.min(landed.blocks);
                let own_ns = flight(&landed).saturating_sub(landed.within_ns);
                let thrown = &mut thrown[landed.index];
                thrown.caught_in = event.text("MethodName").map(|name| self.texts.share(&name));
                thrown.dispatch_ns = Some(own_ns);
            }
            id::EXCEPTION_FINALLY_START | id::EXCEPTION_FILTER_START => {
                state.blocks = state.blocks.saturating_add(1);
            }
            id::EXCEPTION_FINALLY_STOP | id::EXCEPTION_FILTER_STOP => {
                state.blocks = state.blocks.saturating_sub(1);
            }
            _ => {}
        }
    }
}
