//! Samples of a live session that wait to be taken.

use crate::ids::ProcessIndex;
use crate::room::Left;
use crate::samples::SampleLog;
use crate::selection::{Options, SampleSelection};
use crate::session::Session;
use crate::stacks::StackTable;
use crate::terms::{SampleKind, Weight};
use crate::timeline::Timeline;

/// A sample of a live session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LiveSample<'s> {
    /// The process.
    pub process: ProcessIndex,
    /// The thread's id.
    pub tid: u64,
    /// ns since the recording began.
    pub time_ns: u64,
    /// The kind of sample; [`SampleKind::leaf_position`] is that of its innermost address.
    pub kind: SampleKind,
    /// The weight.
    pub weight: Weight,
    /// The addresses of its stack, innermost first.
    pub leaf_first: &'s [u64],
}

/// Samples in a session that wait to be taken.
#[derive(Debug, Default)]
pub(crate) struct PendingSamples {
    most: u64,
    dropped: u64,
}

impl PendingSamples {
    /// Stores samples from now on, at most `most` until they are taken.
    pub fn keep(&mut self, session: &mut Session, most: u64) {
        session.options = Options::from(SampleSelection::Profilers);
        self.most = most;
    }

    /// Drops all samples if they are too many, or if the session has reached its memory budget.
    pub fn limit(&mut self, session: &mut Session) {
        let is_full = session.room_left(1) != Left::All && !session.samples.is_empty();
        if session.samples.len() > self.most || is_full {
            self.dropped += session.samples.len();
            clear(session);
        }
    }

    /// Calls `each` with the samples, and drops them. Returns how many were dropped before.
    pub fn drain(&mut self, session: &mut Session, mut each: impl FnMut(LiveSample<'_>)) -> u64 {
        let mut addresses = Vec::new();
        let samples = &session.samples;
        for (class, time_ns, weight) in samples.weighed() {
            let class = samples.classes()[class as usize];
            let Some(thread) = session.machine.processes.threads.get(class.thread.index()) else {
                continue;
            };
            addresses.clear();
            addresses.extend(session.stacks.addresses(class.stack));
            each(LiveSample {
                process: thread.process,
                tid: thread.tid,
                time_ns,
                kind: class.kind,
                weight: samples.weight(weight),
                leaf_first: &addresses,
            });
        }
        clear(session);
        std::mem::take(&mut self.dropped)
    }

    /// Moves the samples to a snapshot of the session. Returns how many were dropped before.
    pub fn move_to(&mut self, session: &mut Session, timeline: &mut Timeline) -> u64 {
        timeline.samples = std::mem::take(&mut session.samples);
        timeline.stacks = std::mem::take(&mut session.stacks);
        std::mem::take(&mut self.dropped)
    }
}

fn clear(session: &mut Session) {
    session.samples = SampleLog::default();
    session.stacks = StackTable::default();
    if let Some(room) = &mut session.room {
        room.unmeasured = 0;
    }
}
