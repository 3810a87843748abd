//! The last event of the runtime on each thread of an .etl: its stack may follow as a separate
//! event.

use chronosym_core::EventTypeId;
use chronosym_types::hash::HashMap;

/// The last runtime event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastClr {
    pub raw_time: i64,
    pub id: EventTypeId,
    /// Whether its stack is wanted; the event is then counted when its stack is complete.
    pub wanted: bool,
    /// Whether a stack event of its own was counted.
    pub has_stack: bool,
}

/// The last runtime event of each thread.
#[derive(Debug, Default)]
pub(super) struct LastEvents {
    /// The latest, which is not among the others: a thread mostly logs several in a row.
    latest: Option<(u32, LastClr)>,
    others: HashMap<u32, LastClr>,
}

impl LastEvents {
    /// Replaces the last event of a thread.
    pub fn set(&mut self, tid: u32, event: LastClr) {
        let before = self.latest.replace((tid, event));
        if let Some((other, event)) = before.filter(|(other, _)| *other != tid) {
            self.others.insert(other, event);
        }
        if before.is_none_or(|(other, _)| other != tid) && !self.others.is_empty() {
            self.others.remove(&tid);
        }
    }

    /// Removes the last event of a thread.
    pub fn take(&mut self, tid: u32) -> Option<LastClr> {
        match self.latest.take_if(|(of, _)| *of == tid) {
            Some((_, event)) => Some(event),
            None => self.others.remove(&tid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronosym_core::{Options, Session};
    use chronosym_events::{EventKey, EventSchema};
    use chronosym_support::random::Random;

    #[test]
    fn each_thread_has_its_last_event() {
        let key = EventKey::Named {
            provider: "P".into(),
            name: "E".into(),
        };
        let mut session = Session::new(Options::default());
        let id = session.event_type(EventSchema::new(key).into());
        let event = |raw_time| LastClr {
            raw_time,
            id,
            wanted: false,
            has_stack: false,
        };
        // Random sets and takes of few threads, compared with a map.
        let (mut events, mut model) = (LastEvents::default(), HashMap::default());
        let mut random = Random::new(1);
        for time in 0..2_000 {
            let tid = random.below(4) as u32;
            if random.below(4) == 0 {
                assert_eq!(events.take(tid), model.remove(&tid));
            } else {
                events.set(tid, event(time));
                model.insert(tid, event(time));
            }
        }
    }
}
