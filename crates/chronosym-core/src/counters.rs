//! Counters of events and facts that could not be used.

use chronosym_events::DecodeError;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::DiagnosticKind::{Limit, Unused};
use crate::event_types::EventTypeInfo;
use crate::ids::EventTypeId;

/// Numbers of unusable events and facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Payloads that did not decode, per event type and kind of error.
    undecodable: Vec<(EventTypeId, DecodeError, u64)>,
    /// Stacks dropped because 2^32 frames were used up.
    pub stacks_dropped: u64,
    /// Events of a type that is not registered in this session.
    pub unknown_event_types: u64,
    /// IL maps without a body, of processes that a live session has dropped.
    pub unbound_il_maps: u64,
    /// Inline trees without a body.
    pub unbound_inline_trees: u64,
    /// Lines of perf maps that are not `START SIZE name`.
    pub bad_perf_map_lines: u64,
    /// Forked processes without their parent's mappings: the limit of copies was reached.
    pub copies_left_out: u64,
    /// Context switches without the one that must precede them.
    pub unpaired_switches: u64,
    /// The memory budget in bytes and the time in ns at which it was reached: nothing more was
    /// read.
    pub out_of_memory: Option<(u64, u64)>,
    /// Events that a live session left out at its memory budget.
    pub refused: u64,
    /// Code that reached a live session after its watermark: answers reported as final may have
    /// changed.
    pub late: u64,
    /// Diagnostics of events, as a saved timeline states them.
    pub of_saved: Vec<Diagnostic>,
}

impl Counters {
    /// Counts a payload that does not decode.
    pub fn undecodable(&mut self, id: EventTypeId, error: DecodeError) {
        let kind = std::mem::discriminant(&error);
        let mut counts = self.undecodable.iter_mut();
        match counts.find(|(i, e, _)| *i == id && std::mem::discriminant(e) == kind) {
            Some((_, _, count)) => *count += 1,
            None => self.undecodable.push((id, error, 1)),
        }
    }

    /// Calls `code` with each counter of a saved timeline.
    pub fn each(&mut self, mut code: impl FnMut(&mut u64)) {
        code(&mut self.stacks_dropped);
        code(&mut self.unknown_event_types);
        code(&mut self.unbound_il_maps);
        code(&mut self.unbound_inline_trees);
        code(&mut self.bad_perf_map_lines);
        code(&mut self.copies_left_out);
        code(&mut self.late);
    }

    /// Adds the counters of a saved timeline.
    pub fn add(&mut self, saved: &Counters) {
        let mut numbers = Vec::new();
        saved.clone().each(|number| numbers.push(*number));
        let mut numbers = numbers.into_iter();
        self.each(|number| *number += numbers.next().unwrap_or(0));
        self.of_saved.extend(saved.of_saved.iter().cloned());
    }

    /// Returns diagnostics of events that do not decode.
    pub fn of_events(&self, types: &[EventTypeInfo]) -> impl Iterator<Item = Diagnostic> {
        let undecodable = self.undecodable.iter().map(|(id, error, count)| {
            let what = format!(
                "{} events cannot be decoded: {error}",
                types[id.index()].label()
            );
            Diagnostic::counted(Unused, *count, what)
        });
        let reached = self.out_of_memory.map(|(bytes, time_ns)| {
            let text = format!(
                "reading stopped at {:.6} s: samples, code, names and results would take more than {bytes} bytes of memory (limit memory: --max-memory raises it)",
                time_ns as f64 / 1e9,
            );
            Diagnostic::new(Limit, text)
        });
        (self.of_saved.iter().cloned())
            .chain(undecodable)
            .chain(reached)
    }

    /// Returns diagnostics for all counters. Processes count their unbound IL maps themselves.
    pub fn diagnostics(&self, types: &[EventTypeInfo], unbound_il_maps: u64) -> Vec<Diagnostic> {
        #[rustfmt::skip]
        let counts = [
            (unbound_il_maps, Unused, "IL maps belong to no code body"),
            (self.unbound_inline_trees, Unused, "inline trees belong to no code body"),
            (self.copies_left_out, Limit, "forked processes have no mappings: copies of the mappings would exceed the memory budget (limit memory: --max-memory raises it)"),
            (self.refused, Limit, "events about code were left out of the live session: code and names would exceed the memory budget (limit memory: --max-memory raises it)"),
            (self.bad_perf_map_lines, Unused, "perf map lines are not of the form START SIZE name"),
            (self.unknown_event_types, Unused, "events are of a type that was never registered"),
            (self.unpaired_switches, Unused, "context switches lack the preceding one, so the time between them is not counted; with perf, record all processors (`perf record -a`) or with `--switch-events`"),
            (self.stacks_dropped, Limit, "stacks were dropped: too many distinct frames (limit memory: --max-memory raises it)"),
            (self.late, Unused, "code bodies and images came after the watermark: final answers may have changed"),
        ];
        let counts = Diagnostic::of_counts(&counts);
        self.of_events(types).chain(counts).collect()
    }
}
