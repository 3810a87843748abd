//! Counts of events that a report could not use.

/// Numbers of events that a report could not use, or could use in part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unused {
    /// Activities whose end is not in the trace: their duration is unknown.
    pub without_end: u64,
    /// Ends of activities whose start is not in the trace.
    pub without_start: u64,
    /// Events without a field that the report needs: truncated, or of a version that lacks it.
    pub incomplete: u64,
    /// Events with fields that are not published: of a newer version. Their published fields are
    /// used.
    pub newer: u64,
    /// Events that did not fit into the limit of kept events.
    pub left_out: u64,
}

impl Unused {
    /// Returns whether all events were used.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
