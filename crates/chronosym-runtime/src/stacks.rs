//! The stacks of kept events: the samples of the same type, thread and time.

use std::collections::VecDeque;

use chronosym_core::{EventTypeId, SampleKind, StackId, ThreadIndex, Timeline};
use chronosym_types::hash::HashMap;

use crate::events::RuntimeEvent;

/// Stacks by event. Several events of one type, thread and time have theirs in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Stacks(HashMap<(u64, ThreadIndex, EventTypeId), VecDeque<StackId>>);

impl Stacks {
    /// Returns the stacks of events with these ids.
    pub fn new(timeline: &Timeline) -> Self {
        let (samples, types) = (timeline.samples(), timeline.event_types());
        let mut stacks = Stacks::default();
        for (class, time_ns) in samples.iter() {
            let class = &samples.classes()[class as usize];
            if class.kind == SampleKind::Event && types.get(class.event.index()).is_some() {
                let key = (time_ns, class.thread, class.event);
                stacks.0.entry(key).or_default().push_back(class.stack);
            }
        }
        stacks
    }

    /// Returns the stack of an event, once.
    pub fn take(&mut self, event: &RuntimeEvent<'_>) -> Option<StackId> {
        let key = (event.time_ns, event.thread, event.event_type);
        self.0.get_mut(&key)?.pop_front()
    }
}
