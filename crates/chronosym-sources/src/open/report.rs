//! What was found while a recording was read.

use chronosym_nettrace::{Gap, Gaps};

use super::format::Format;
use super::note::Note;
use crate::etl::EtlReport;

/// What was found while a recording was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The format.
    pub format: Format,
    /// Everything that is wrong, wrappers first.
    pub notes: Vec<Note>,
    /// Events that the recorder says were lost.
    pub lost_events: u64,
    /// Whether a trace ends in the middle.
    pub is_cut_short: bool,
    /// Where parts of the traces could not be used, by trace and offset; of each trace at most
    /// [`Gaps::MOST_LISTED`].
    pub gaps: Vec<TraceGap>,
    /// Gaps that are not listed.
    pub gaps_left_out: u64,
}

/// A part of a trace that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TraceGap {
    /// The trace, as in [`Recording::names`](super::Recording::names).
    pub name: String,
    /// Where in it, and why.
    pub gap: Gap,
}

impl Report {
    pub(super) fn new(format: Format) -> Self {
        Report {
            format,
            notes: Vec::new(),
            lost_events: 0,
            is_cut_short: false,
            gaps: Vec::new(),
            gaps_left_out: 0,
        }
    }

    /// Adds what was found in .etl files that were read as one.
    pub(super) fn add_etl(&mut self, names: &[String], found: &EtlReport) {
        self.notes.extend(Note::of_etl_report(found));
        self.lost_events += found.diagnostics.events_lost;
        self.add_gaps(names, &found.diagnostics.gaps);
    }

    /// Adds the gaps of traces that were read as one.
    pub(super) fn add_gaps(&mut self, names: &[String], gaps: &Gaps) {
        let listed = gaps.listed().iter().map(|gap| TraceGap {
            name: names.get(gap.file as usize).cloned().unwrap_or_default(),
            gap: *gap,
        });
        let from = self.gaps.len();
        self.gaps.extend(listed);
        // Readers find some of them when their records are due.
        if let Some(new) = self.gaps.get_mut(from..) {
            new.sort_unstable_by_key(|it| it.gap);
        }
        self.gaps_left_out += gaps.total().count - gaps.listed().len() as u64;
        self.is_cut_short |= gaps.is_cut_short();
    }
}
