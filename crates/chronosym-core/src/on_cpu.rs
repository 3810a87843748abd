//! CPU samples as evidence of what wall-clock samples of the same threads show (rule 22).

use chronosym_events::{EventKey, EventSchema, Provider};

use crate::ids::ThreadIndex;
use crate::selection::{Options, SampleSelection};
use crate::terms::Weight;
use crate::timeline::Timeline;

/// CPU samples that are not stored.
#[derive(Debug, Default)]
pub(crate) struct OnCpu {
    /// Whether wall-clock samples are selected in their place.
    pub is_wanted: bool,
    pub seen: Vec<(ThreadIndex, u64)>,
}

impl OnCpu {
    pub fn of(options: &Options) -> Self {
        let ticks = EventSchema::new(EventKey::Manifest {
            provider: Provider::SampleProfiler,
            id: 0,
            version: 0,
        });
        let by_event = matches!(options.samples, SampleSelection::Events(_));
        OnCpu {
            // In a window of times, not every sample is stored.
            is_wanted: by_event && options.times.is_none() && options.selects(&ticks),
            seen: Vec::new(),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.seen.len() * size_of::<(ThreadIndex, u64)>()
    }

    /// Marks the wall-clock samples of a timeline in whose time a CPU sample of the thread was
    /// taken.
    pub fn mark(mut self, timeline: &mut Timeline) {
        if self.seen.is_empty() {
            return;
        }
        self.seen.sort_unstable();
        let classes = timeline.samples.classes();
        let marks = timeline.weighed().map(|(class, time_ns, weight)| {
            let class = &classes[class as usize];
            let ns = match weight {
                Weight::Ns(ns) if class.kind.is_wall() => ns,
                _ => return false,
            };
            let next = self
                .seen
                .partition_point(|&it| it < (class.thread, time_ns));
            let end_ns = time_ns.saturating_add(ns);
            let seen = self.seen.get(next);
            seen.is_some_and(|&(thread, at)| thread == class.thread && at < end_ns)
        });
        let marks: Vec<bool> = marks.collect();
        timeline.samples.mark_on_cpu(marks.into_iter());
        timeline.wall_times = Default::default();
    }
}
