//! Sequence numbers of each capture thread: gaps in them show dropped events.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read, and differences of 32-bit numbers in 64 bits"
)]

use chronosym_types::hash::HashMap;

use crate::clock::Clock;
use crate::diagnostics::{Diagnostics, LossWindow};

pub(crate) struct Sequences {
    clock: Clock,
    slots: HashMap<u64, usize>,
    /// Slots by the lowest bits of capture threads: runs of events are short, and threads few.
    recent: [usize; RECENT],
    threads: Vec<ThreadSequence>,
    /// The thread of the latest event, whose entry is updated once another thread follows.
    current: usize,
    last: u32,
    last_time: i64,
    /// How often a part of the trace with events was skipped.
    damages: u64,
}

struct ThreadSequence {
    capture_thread: u64,
    last: u32,
    last_time: i64,
    loss: Option<usize>,
    /// Index of the last damage across which the numbers were continuous.
    damages: u64,
    /// Number and time of the first event of each run: the latest ones, up to [`MAX_RUNS`].
    runs: Vec<(u32, i64)>,
}

const RECENT: usize = 256;
const MAX_RUNS: usize = 1024;
/// Maximum number of threads between two sequence points whose numbers are followed: each takes
/// about 140 bytes, and a trace can have a thread for each event.
const MAX_THREADS: usize = 1 << 18;

/// The thread of a sequence number, and its time.
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
            recent: [usize::MAX; RECENT],
            threads: Vec::new(),
            current: usize::MAX,
            last: 0,
            last_time: 0,
            damages: 0,
        }
    }

    /// Records the next event of the thread of the latest one.
    #[inline]
    pub(crate) fn next(&mut self, sequence: u32, time: i64) {
        self.last = sequence;
        self.last_time = time;
    }

    /// An event of any thread, the first of a run of events of that thread. Numbers start at 1; a
    /// smaller number than before belongs to a new thread with a reused id. False if a run began
    /// with the same number at the same time: the file has it twice.
    pub(crate) fn event(
        &mut self,
        seen: &Seen,
        sequence: u32,
        diagnostics: &mut Diagnostics,
    ) -> bool {
        self.current = self.slot(seen);
        let Some(thread) = self.threads.get_mut(self.current) else {
            diagnostics.unfollowed_threads += 1;
            return true;
        };
        let ahead = i64::from(sequence.wrapping_sub(thread.last).cast_signed());
        if ahead <= 0 && thread.has_run(sequence, seen.time) {
            self.current = usize::MAX;
            return false;
        }
        thread.start_run(sequence, seen.time);
        let damages = self.damages;
        thread.record(&self.clock, damages, seen, sequence, ahead - 1, diagnostics);
        self.next(sequence, seen.time);
        true
    }

    /// Records an event of another thread than the latest one's if it is the next one of its thread;
    /// false if [`event`](Self::event) must record it.
    #[inline]
    pub(crate) fn continues(&mut self, capture_thread: u64, sequence: u32, time: i64) -> bool {
        self.leave();
        let slot = *recent_of(&mut self.recent, capture_thread);
        let Some(thread) = self.threads.get_mut(slot) else {
            return false;
        };
        let is_next =
            thread.capture_thread == capture_thread && thread.last.wrapping_add(1) == sequence;
        if is_next {
            thread.start_run(sequence, time);
            thread.damages = self.damages;
            self.current = slot;
        }
        is_next
    }

    /// Records the number of the thread's latest event, as a sequence point or a thread's removal
    /// states it.
    pub(crate) fn point(&mut self, seen: &Seen, sequence: u32, diagnostics: &mut Diagnostics) {
        let slot = self.slot(seen);
        self.current = usize::MAX;
        let Some(thread) = self.threads.get_mut(slot) else {
            return;
        };
        let ahead = i64::from(sequence.wrapping_sub(thread.last).cast_signed());
        if ahead >= 0 || seen.time > thread.last_time {
            let damages = self.damages;
            thread.record(&self.clock, damages, seen, sequence, ahead, diagnostics);
        }
    }

    /// Events of any thread may have been in a damaged part: the first gap of each thread after it
    /// is not a loss of the traced process.
    pub(crate) fn damaged(&mut self) {
        self.damages += 1;
    }

    pub(crate) fn remove(&mut self, capture_thread: u64) {
        // The entry stays: other threads are found by their index in the list.
        self.slots.remove(&capture_thread);
        *recent_of(&mut self.recent, capture_thread) = usize::MAX;
    }

    pub(crate) fn clear(&mut self) {
        let damages = self.damages;
        *self = Self::new(self.clock);
        self.damages = damages;
    }

    /// Updates the entry of the latest event's thread.
    #[inline]
    fn leave(&mut self) {
        if let Some(thread) = self.threads.get_mut(self.current) {
            thread.last = self.last;
            thread.last_time = self.last_time;
        }
    }

    /// Returns the position of a thread in the list; `usize::MAX` if there are too many.
    fn slot(&mut self, seen: &Seen) -> usize {
        self.leave();
        let capture_thread = seen.capture_thread;
        let recent = recent_of(&mut self.recent, capture_thread);
        let is_it = |thread: &ThreadSequence| thread.capture_thread == capture_thread;
        if !self.threads.get(*recent).is_some_and(is_it) {
            *recent = match self.slots.get(&capture_thread) {
                Some(&slot) => slot,
                None if self.threads.len() >= MAX_THREADS => return usize::MAX,
                None => {
                    self.slots.insert(capture_thread, self.threads.len());
                    self.threads.push(ThreadSequence {
                        capture_thread,
                        last: 0,
                        last_time: seen.time,
                        loss: None,
                        damages: 0,
                        runs: Vec::new(),
                    });
                    self.threads.len() - 1
                }
            };
        }
        *recent
    }
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the remainder is less than the length, and has the lowest bits only"
)]
fn recent_of(recent: &mut [usize; RECENT], capture_thread: u64) -> &mut usize {
    &mut recent[capture_thread as usize % RECENT]
}

impl ThreadSequence {
    fn has_run(&self, sequence: u32, time: i64) -> bool {
        sequence != 0 && self.runs.contains(&(sequence, time))
    }

    #[inline]
    fn start_run(&mut self, sequence: u32, time: i64) {
        match self.runs.len() {
            // A trace can have a thread for each event.
            0 => self.runs.reserve_exact(1),
            MAX_RUNS => drop(self.runs.drain(..MAX_RUNS / 2)),
            _ => {}
        }
        self.runs.push((sequence, time));
    }

    /// Takes in a number, before which `missing` were not seen.
    fn record(
        &mut self,
        clock: &Clock,
        damages: u64,
        seen: &Seen,
        sequence: u32,
        missing: i64,
        diagnostics: &mut Diagnostics,
    ) {
        if missing > 0 {
            let window = LossWindow {
                capture_thread: Some(self.capture_thread),
                from_ns: clock.ns(self.last_time.min(seen.time)),
                to_ns: clock.ns(seen.time),
                events: missing.unsigned_abs(),
            };
            if self.damages == damages {
                let thread = (self.capture_thread, seen.thread_id);
                diagnostics.add_loss(&mut self.loss, thread, window.events);
            }
            diagnostics.add_window(window);
        }
        self.last = sequence;
        self.last_time = seen.time;
        self.damages = damages;
    }
}
