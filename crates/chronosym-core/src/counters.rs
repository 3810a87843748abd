//! What of the events and facts could not be used: counted by the states that they apply to.

use chronosym_events::DecodeError;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::DiagnosticKind::{Limit, Unused};
use crate::event_types::EventTypeInfo;
use crate::ids::EventTypeId;

/// What could not be used, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Payloads that did not decode, per event type and kind of error.
    undecodable: Vec<(EventTypeId, DecodeError, u64)>,
    /// Stacks that could not be kept because 2^32 frames were used up.
    pub stacks_dropped: u64,
    /// Events of a type that this session has not registered.
    pub unknown_event_types: u64,
    /// Inline trees without a body.
    pub unbound_inline_trees: u64,
    /// Rows of perf maps that are not `START SIZE name`.
    pub bad_perf_map_rows: u64,
    /// Processes that began as copies of others, and have none of what was mapped there: there are too many.
    pub copies_left_out: u64,
    /// Code that came to a live session later than its watermark had promised: answers that were said to be final may have
    /// changed.
    pub late: u64,
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

    /// All of it as diagnostics. IL maps without a body are counted by the processes.
    pub fn diagnostics(&self, types: &[EventTypeInfo], unbound_il_maps: u64) -> Vec<Diagnostic> {
        let undecodable = self.undecodable.iter().map(|(id, error, count)| {
            let what = format!(
                "{} events do not decode: {error}",
                types[id.index()].label()
            );
            Diagnostic::counted(Unused, *count, what)
        });
        #[rustfmt::skip]
        let counts = [
            (unbound_il_maps, Unused, "IL maps belong to no code body"),
            (self.unbound_inline_trees, Unused, "inline trees belong to no code body"),
            (self.copies_left_out, Limit, "processes that began as copies of others have nothing mapped: there are too many"),
            (self.bad_perf_map_rows, Unused, "perf map lines are not of the form START SIZE name"),
            (self.unknown_event_types, Unused, "events are of a type that was never registered"),
            (self.stacks_dropped, Limit, "stacks were dropped: too many distinct frames"),
            (self.late, Unused, "code bodies and images came after the watermark: final answers may have changed"),
        ];
        undecodable.chain(Diagnostic::of_counts(&counts)).collect()
    }
}
