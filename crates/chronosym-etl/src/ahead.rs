//! Merges buffers here or on another thread, ahead of the reader.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use chronosym_types::Ahead;

use crate::ReadAt;
use crate::merge::{Batch, Files, Merge};

/// The merge of a recording, here or with a thread.
pub(crate) struct Merging<S> {
    files: Arc<Files<S>>,
    /// `None` while a thread has it.
    here: Option<Box<Merge<S>>>,
    thread: Option<Thread<S>>,
    /// Starts the thread, if that is wanted.
    start: Option<Start<S>>,
}

/// A thread that merges batches. One waits until it is taken.
struct Thread<S> {
    batches: Ahead<Batch, Worker<S>>,
    /// Batches whose memory is reused.
    used: Sender<Batch>,
}

struct Worker<S> {
    merge: Box<Merge<S>>,
    used: Receiver<Batch>,
}

type Start<S> = fn(Box<Merge<S>>) -> Result<Thread<S>, Box<Merge<S>>>;

impl<S: ReadAt> Merging<S> {
    pub(crate) fn new(files: Files<S>) -> Self {
        let files = Arc::new(files);
        Merging {
            here: Some(Box::new(Merge::new(Arc::clone(&files)))),
            files,
            thread: None,
            start: None,
        }
    }

    /// Merges on another thread, if there is a second processor.
    pub(crate) fn read_ahead(&mut self)
    where
        S: Send + Sync + 'static,
    {
        self.start = Some(Thread::start);
    }

    /// Starts again with the first buffer.
    pub(crate) fn rewind(&mut self) {
        self.thread = None;
        self.here = Some(Box::new(Merge::new(Arc::clone(&self.files))));
    }

    /// Ends the merge; returns the files.
    pub(crate) fn into_files(self) -> Option<Files<S>> {
        // They are shared until the thread has ended.
        drop((self.here, self.thread));
        Arc::into_inner(self.files)
    }

    /// Replaces a batch, whose records are no longer needed, by the next one.
    pub(crate) fn next(&mut self, batch: &mut Batch) {
        if let Some(start) = self.start
            && let Some(merge) = self.here.take()
        {
            match start(merge) {
                Ok(thread) => self.thread = Some(thread),
                Err(merge) => (self.here, self.start) = (Some(merge), None),
            }
        }
        if let Some(merge) = &mut self.here {
            merge.next(batch);
        } else if let Some(thread) = &mut self.thread {
            // The thread may have ended.
            let _ = thread.used.send(std::mem::take(batch));
            match thread.batches.next() {
                Some(next) => *batch = next,
                None => {
                    thread.batches.end();
                    batch.is_last = true;
                }
            }
        }
    }
}

impl<S: ReadAt + Send + Sync + 'static> Thread<S> {
    fn start(merge: Box<Merge<S>>) -> Result<Self, Box<Merge<S>>> {
        let (send, used) = channel();
        let worker = Worker { merge, used };
        let batches = Ahead::start(worker, Worker::next, |batch: &Batch| batch.is_last)
            .map_err(|worker| worker.merge)?;
        Ok(Thread {
            batches,
            used: send,
        })
    }
}

impl<S: ReadAt> Worker<S> {
    fn next(&mut self) -> Batch {
        let mut batch = self.used.try_recv().unwrap_or_default();
        self.merge.next(&mut batch);
        batch
    }
}
