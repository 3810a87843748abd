//! Sequence numbers a capture thread, by whose gaps dropped events show.

use std::collections::HashMap;

use crate::clock::Clock;
use crate::diagnostics::{Diagnostics, LossWindow};

pub(crate) struct Sequences {
    clock: Clock,
    slots: HashMap<u64, usize, foldhash::fast::RandomState>,
    threads: Vec<ThreadSequence>,
    current: usize,
}

struct ThreadSequence {
    capture_thread: u64,
    last: u32,
    last_time: i64,
    loss: Option<usize>,
}

/// Whom a sequence number belongs to and when it was seen.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) capture_thread: u64,
    pub(crate) thread_id: Option<u64>,
    /// Raw ticks.
    pub(crate) time: i64,
}

impl Sequences {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            slots: HashMap::default(),
            threads: Vec::new(),
            current: 0,
        }
    }

    /// Whether `sequence` follows the last one of the thread that the previous event came from.
    #[inline]
    pub(crate) fn continues(&mut self, capture_thread: u64, sequence: u32, time: i64) -> bool {
        match self.threads.get_mut(self.current) {
            Some(thread)
                if thread.capture_thread == capture_thread
                    && thread.last.wrapping_add(1) == sequence =>
            {
                thread.last = sequence;
                thread.last_time = time;
                true
            }
            _ => false,
        }
    }

    /// An event of any thread. Numbers begin at 1; one that goes back belongs to a new thread under an old id.
    pub(crate) fn event(&mut self, seen: Seen, sequence: u32, diagnostics: &mut Diagnostics) {
        let clock = self.clock;
        let (current, thread) = self.thread(seen);
        let ahead = sequence.wrapping_sub(thread.last).cast_signed();
        thread.record(clock, seen, sequence, i64::from(ahead) - 1, diagnostics);
        self.current = current;
    }

    /// What a sequence point or a thread's removal says: the number of the thread's latest event.
    pub(crate) fn point(&mut self, seen: Seen, sequence: u32, diagnostics: &mut Diagnostics) {
        let clock = self.clock;
        let (_, thread) = self.thread(seen);
        let ahead = sequence.wrapping_sub(thread.last).cast_signed();
        thread.record(clock, seen, sequence, i64::from(ahead), diagnostics);
    }

    pub(crate) fn remove(&mut self, capture_thread: u64) {
        // The slot stays behind: its place in the list is what others are found by.
        self.slots.remove(&capture_thread);
        if self
            .threads
            .get(self.current)
            .is_some_and(|thread| thread.capture_thread == capture_thread)
        {
            self.current = usize::MAX;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.clock);
    }

    fn thread(&mut self, seen: Seen) -> (usize, &mut ThreadSequence) {
        let slot = *self.slots.entry(seen.capture_thread).or_insert_with(|| {
            self.threads.push(ThreadSequence {
                capture_thread: seen.capture_thread,
                last: 0,
                last_time: seen.time,
                loss: None,
            });
            self.threads.len() - 1
        });
        (slot, &mut self.threads[slot])
    }
}

impl ThreadSequence {
    fn record(
        &mut self,
        clock: Clock,
        seen: Seen,
        sequence: u32,
        lost: i64,
        diagnostics: &mut Diagnostics,
    ) {
        if lost > 0 {
            let window = LossWindow {
                capture_thread: self.capture_thread,
                from_ns: clock.ns(self.last_time.min(seen.time)),
                to_ns: clock.ns(seen.time),
                events: lost.unsigned_abs(),
            };
            diagnostics.add_loss(&mut self.loss, seen.thread_id, window);
        }
        self.last = sequence;
        self.last_time = seen.time;
    }
}
