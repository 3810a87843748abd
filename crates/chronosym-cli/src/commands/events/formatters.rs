//! Threads that make the lines of records.

use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use super::chunk::Chunk;
use crate::args::EventFormat;

/// Formats chunks on a thread for each processor; they come back in order.
pub struct Formatters {
    format: EventFormat,
    /// Each takes the next chunk in turn. None before the second chunk, and if none can be started.
    threads: Vec<Formatter>,
    has_started: bool,
    /// Numbers of chunks.
    passed: usize,
    returned: usize,
}

struct Formatter {
    chunks: Sender<Chunk>,
    formatted: Receiver<Chunk>,
    thread: JoinHandle<()>,
}

impl Formatters {
    pub fn new(format: EventFormat) -> Self {
        Formatters {
            format,
            threads: Vec::new(),
            has_started: false,
            passed: 0,
            returned: 0,
        }
    }

    /// Passes a chunk to the next thread. If enough are under way, returns the first of them. The
    /// very first chunk is formatted at once: a short output starts no thread.
    pub fn pass(&mut self, mut chunk: Chunk) -> io::Result<Option<Chunk>> {
        let count = self.threads.len();
        if count == 0 {
            chunk.format(self.format);
            if !std::mem::replace(&mut self.has_started, true) {
                self.start();
            }
            return Ok(Some(chunk));
        }
        let first = match self.passed - self.returned < 2 * count {
            true => None,
            false => self.next()?,
        };
        // A thread that has ended panicked: `next` finds out.
        let _ = self.threads[self.passed % count].chunks.send(chunk);
        self.passed += 1;
        Ok(first)
    }

    /// Returns the first of the chunks under way, once it is formatted.
    pub fn next(&mut self) -> io::Result<Option<Chunk>> {
        if self.returned == self.passed {
            return Ok(None);
        }
        let index = self.returned % self.threads.len();
        self.returned += 1;
        match self.threads[index].formatted.recv() {
            Ok(chunk) => Ok(Some(chunk)),
            Err(_) => match self.threads.swap_remove(index).thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => Err(io::ErrorKind::BrokenPipe.into()),
            },
        }
    }

    fn start(&mut self) {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        if processors == 1 {
            return;
        }
        let format = self.format;
        let start = |_| {
            let (chunks, passed) = mpsc::channel::<Chunk>();
            let (done, formatted) = mpsc::channel();
            let work = move || {
                for mut chunk in passed {
                    chunk.format(format);
                    if done.send(chunk).is_err() {
                        break;
                    }
                }
            };
            let thread = thread::Builder::new().spawn(work).ok()?;
            Some(Formatter {
                chunks,
                formatted,
                thread,
            })
        };
        self.threads = (0..processors.min(MAX_THREADS)).map_while(start).collect();
    }
}

/// More threads than this wait for the one that reads.
const MAX_THREADS: usize = 8;
