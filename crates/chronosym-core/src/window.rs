//! A time window: samples outside of it are not stored, but all that those inside depend on is kept
//! of them.

use std::ops::Range;

use crate::recording::TraceFacts;
use crate::stays::Stays;
use crate::ticks::{Tick, TickWindow, Ticks};

/// The samples outside of a time window.
#[derive(Debug)]
pub(crate) struct Window {
    times: Range<u64>,
    ticks: TickWindow,
    /// Those inside too.
    pub stays: Stays,
    /// The sampling intervals, as of the first tick: the first one, and the number of changes.
    intervals: Option<(Option<u64>, usize)>,
    /// Whether all is known of the samples outside that those inside depend on.
    pub suffices: bool,
}

impl Window {
    pub fn new(times: Range<u64>) -> Self {
        Window {
            times,
            ticks: TickWindow::default(),
            stays: Stays::default(),
            intervals: None,
            suffices: true,
        }
    }

    /// Returns whether samples of a time are stored.
    pub fn has(&self, time_ns: u64) -> bool {
        self.times.contains(&time_ns)
    }

    /// Takes the next sample of a tick. Whether it is stored: inside, or up to the tick after the
    /// next, which decide how long the last ones inside last.
    pub fn tick(&mut self, mut tick: Tick, facts: &TraceFacts) -> bool {
        let intervals = (
            facts.sample_interval_ns,
            facts.sample_interval_changes.len(),
        );
        self.suffices &= *self.intervals.get_or_insert(intervals) == intervals;
        tick.asked_for = facts.sample_interval_at(tick.ns);
        let stored = self.ticks.count(tick, &self.times);
        self.suffices &= stored.is_some();
        stored.unwrap_or(true)
    }

    /// Returns the ticks of all samples.
    pub fn finish(&mut self) -> Ticks {
        std::mem::take(&mut self.ticks).finish()
    }
}
