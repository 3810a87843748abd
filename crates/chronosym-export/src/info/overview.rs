//! The overview that `chronosym info` prints.

use std::sync::Arc;

use chronosym_core::{Diagnostics, Filter, LimitReached, ProcessView, SymbolSource, Timeline};
use chronosym_runtime::SuspensionTotals;
use chronosym_symbolizer::Symbolizer;

use super::advice::advice;
use super::summary::Summary;
use crate::trace_summary::with_most_stacks;

/// An overview of a trace: its content, its samples, how their frames are named, its diagnostics,
/// and what to record next time.
#[derive(Debug)]
pub struct Overview<'t> {
    pub(super) timeline: &'t Timeline,
    pub(super) diagnostics: &'t Diagnostics,
    pub(super) summary: Summary,
    pub(super) suspensions: Vec<SuspensionTotals>,
    pub(super) advice: Vec<String>,
}

impl<'t> Overview<'t> {
    /// Returns the overview of a trace, whose samples are resolved with these symbols.
    pub fn new(
        timeline: &'t Arc<Timeline>,
        diagnostics: &'t Diagnostics,
        symbols: &Arc<Symbolizer>,
    ) -> Self {
        let source: Arc<dyn SymbolSource> = Arc::clone(symbols) as _;
        let profile = timeline.profile(&Filter::default(), Some(source));
        let summary = Summary::new(&profile, symbols);
        Overview {
            timeline,
            diagnostics,
            advice: advice(timeline, diagnostics, &summary),
            summary,
            suspensions: SuspensionTotals::of(timeline, &timeline.markers()),
        }
    }

    /// Returns the limit that frames exceeded, if any did.
    pub fn limit(&self) -> Option<LimitReached> {
        self.summary.limit
    }

    /// Returns the most useful next command, with its options and without the trace.
    pub fn next_command(&self) -> String {
        let own = &self.summary.own;
        match with_most_stacks(self.timeline) {
            _ if own.share(own.without_file()) >= 10.0 => "symbols".to_owned(),
            _ if own.total > 0 => "top".to_owned(),
            _ if self.timeline.facts().lacks_samples => "methods".to_owned(),
            Some(with_stacks) => format!("stacks --event '{}'", with_stacks.label()),
            None => "events".to_owned(),
        }
    }

    /// Returns the suspensions with the pid of each.
    pub(super) fn suspensions(&self) -> impl Iterator<Item = (Option<u32>, &SuspensionTotals)> {
        let pid_of = |it: &SuspensionTotals| self.timeline.process_view(it.process)?.pid;
        self.suspensions.iter().map(move |it| (pid_of(it), it))
    }

    /// Returns the number of samples of a process.
    pub(super) fn samples_of(&self, process: &ProcessView<'_>) -> u64 {
        let samples = self.summary.samples_of.get(&process.index);
        samples.copied().unwrap_or(0)
    }
}
