//! Events stored whole for reports. Stored only if [`Options::keep`](crate::Options::keep) selects
//! their types.

use chronosym_events::PointerSize;

use crate::ids::{EventTypeId, ThreadIndex};

/// An event of a type that [`Options::keep`](crate::Options::keep) selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptEvent<'t> {
    /// ns since the trace began.
    pub time_ns: u64,
    /// The thread that logged it.
    pub thread: ThreadIndex,
    /// Its type, an index of [`Timeline::event_types`](crate::Timeline::event_types).
    pub event_type: EventTypeId,
    /// The size of pointers in the payload.
    pub pointer_size: PointerSize,
    /// The payload.
    pub payload: &'t [u8],
}

/// The kept events of a session, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct KeptEvents {
    rows: Vec<Row>,
    payloads: Vec<u8>,
    pub left_out: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    time_ns: u64,
    /// End of the payload; it starts at the end of the previous one.
    end: u64,
    thread: ThreadIndex,
    event_type: EventTypeId,
    pointer_size: PointerSize,
}

impl KeptEvents {
    /// Stores an event, unless it would exceed `max_bytes`.
    pub fn push(&mut self, event: KeptEvent<'_>, max_bytes: usize) {
        let bytes = self.memory_bytes();
        if bytes + size_of::<Row>() + event.payload.len() > max_bytes {
            self.left_out += 1;
            return;
        }
        self.payloads.extend_from_slice(event.payload);
        self.rows.push(Row {
            time_ns: event.time_ns,
            end: self.payloads.len() as u64,
            thread: event.thread,
            event_type: event.event_type,
            pointer_size: event.pointer_size,
        });
    }

    /// Bytes of the events.
    pub fn memory_bytes(&self) -> usize {
        self.rows.len() * size_of::<Row>() + self.payloads.len()
    }

    /// Returns the events in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = KeptEvent<'_>> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let end = row.end as usize;
            let payload = &self.payloads[std::mem::replace(&mut start, end)..end];
            KeptEvent {
                time_ns: row.time_ns,
                thread: row.thread,
                event_type: row.event_type,
                pointer_size: row.pointer_size,
                payload,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_kept_whole_up_to_the_limit() {
        let event = |time_ns, payload| KeptEvent {
            time_ns,
            thread: ThreadIndex(3),
            event_type: EventTypeId(4),
            pointer_size: PointerSize::Eight,
            payload,
        };
        let mut kept = KeptEvents::default();
        let events = [event(9, &[1, 2][..]), event(5, &[]), event(6, &[3])];
        let limit = 3 * size_of::<Row>() + 3;
        events.iter().for_each(|&it| kept.push(it, limit));
        assert_eq!(kept.iter().collect::<Vec<_>>(), events);
        kept.push(event(7, &[]), limit);
        assert_eq!((kept.iter().count(), kept.left_out), (3, 1));
    }
}
