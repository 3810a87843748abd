//! Gathers records on another thread, ahead of those that are taken.

use std::io::Read;

use chronosym_types::Ahead;

use crate::gather::{Batch, Described, Gatherer};

/// Bytes of a recording from which a thread is worth its start.
const LARGE: u64 = 4 << 20;
/// Most bytes of a round that is gathered ahead: several are in memory.
const MAX_ROUND: usize = 16 << 20;

/// The gatherer of a recording, here or with a thread.
pub(crate) struct Gathering<R> {
    /// `None` while it is with the thread.
    here: Option<Box<Gatherer<R>>>,
    /// A thread that gathers batches. One waits until it is taken, so that few rounds are in memory.
    thread: Option<Thread<R>>,
    /// Starts the thread, if that is wanted.
    start: Option<Start<R>>,
}

type Thread<R> = Ahead<Batch, Box<Gatherer<R>>>;
/// Starts a thread; returns the gatherer if there is no second processor or no thread can be
/// spawned.
type Start<R> = fn(Box<Gatherer<R>>) -> Result<Thread<R>, Box<Gatherer<R>>>;

impl<R: Read> Gathering<R> {
    pub(crate) fn new(gatherer: Box<Gatherer<R>>) -> Self {
        Gathering {
            here: Some(gatherer),
            thread: None,
            start: None,
        }
    }

    /// Gathers on another thread once the recording proves to be large.
    pub(crate) fn read_ahead(&mut self)
    where
        R: Send + 'static,
    {
        self.start = Some(|gatherer| Ahead::start(gatherer, |it| it.gather(), is_last));
    }

    /// Returns the next batch. `described` is what was described up to the batch before, and then
    /// up to this one.
    pub(crate) fn next(&mut self, described: &mut Described) -> Option<Batch> {
        self.start(described);
        if let Some(thread) = &mut self.thread {
            let batch = thread.next();
            if batch.as_ref().is_none_or(is_last) {
                self.here = thread.end();
                self.thread = None;
                if let Some(gatherer) = &mut self.here {
                    *described = std::mem::take(gatherer.described());
                }
            }
            return batch;
        }
        let gatherer = self.here.as_mut()?;
        std::mem::swap(described, gatherer.described());
        let batch = gatherer.gather();
        std::mem::swap(described, gatherer.described());
        Some(batch)
    }

    fn start(&mut self, described: &Described) {
        let is_large = |gatherer: &mut Box<Gatherer<R>>| gatherer.offset() >= LARGE;
        if let Some(start) = self.start
            && let Some(mut gatherer) = self.here.take_if(is_large)
        {
            self.start = None;
            gatherer.described().clone_from(described);
            match start(gatherer) {
                Ok(thread) => self.thread = Some(thread),
                Err(gatherer) => self.here = Some(gatherer),
            }
        }
    }
}

/// Returns whether a batch is the last one of a thread. Its receiver must know what is described
/// from here on.
fn is_last(batch: &Batch) -> bool {
    batch.end.is_some() || batch.has_described || batch.ready.size() > MAX_ROUND
}
