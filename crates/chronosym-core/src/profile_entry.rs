//! Rows of a profile.

use crate::activity::Activity;
use crate::ids::{ActivityIdIndex, ResolvedStack, ThreadIndex};
use crate::terms::{SampleKind, Weight};

/// The samples of one thread with one resolved stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileEntry {
    /// The thread.
    pub thread: ThreadIndex,
    /// The stack.
    pub stack: ResolvedStack,
    /// The kind of samples.
    pub kind: SampleKind,
    /// The activity of the thread.
    pub activity: Activity,
    /// The activity that the thread carried, by the id that its events state
    /// ([`Options::activity_ids`](crate::Options::activity_ids)).
    pub activity_id: Option<ActivityIdIndex>,
    /// Number of samples.
    pub samples: u64,
    /// Sum of the times, in ns, of the samples whose time is known.
    pub time_ns: u64,
    /// Number of samples whose time is unknown.
    pub untimed: u64,
    /// Sum of the bytes, such as those of allocations.
    pub bytes: u64,
    /// Number of samples that state bytes.
    pub sized: u64,
    /// Sum of the events that a counter counted from one sample to the next: its periods.
    pub events: u64,
    /// Number of samples that state a period.
    pub counted: u64,
}

impl ProfileEntry {
    pub(crate) fn count(&mut self, weight: Weight) {
        self.samples += 1;
        match weight {
            Weight::Ns(ns) => self.time_ns = self.time_ns.saturating_add(ns),
            Weight::Bytes(bytes) => {
                self.bytes = self.bytes.saturating_add(bytes);
                self.sized += 1;
                self.untimed += 1;
            }
            Weight::Count(events) => {
                self.events = self.events.saturating_add(events);
                self.counted += 1;
                self.untimed += 1;
            }
            _ => self.untimed += 1,
        }
    }
}
