//! Reads and decompresses buffers on another thread, ahead of the reader.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::ReadAt;
use crate::buffer::{Buffer, Contents};

/// The buffers of a recording and the files that hold them.
pub(crate) struct Files<S> {
    pub(crate) sources: Vec<S>,
    /// In the order in which they are needed.
    pub(crate) buffers: Vec<Buffer>,
}

impl<S: ReadAt> Files<S> {
    /// Reads a buffer into `contents`; `compressed` is scratch memory.
    pub(crate) fn load(
        &self,
        buffer: &Buffer,
        compressed: &mut Vec<u8>,
        contents: &mut Contents,
    ) -> io::Result<()> {
        let source = self.sources.get(buffer.file as usize);
        let source = source.ok_or(io::ErrorKind::NotFound)?;
        contents.load(buffer, source, compressed)
    }
}

/// A thread that loads the buffers in their order. At most two are loaded and not taken.
pub(crate) struct Ahead {
    /// `None` only while it is dropped, which ends the thread.
    loaded: Option<Receiver<io::Result<Contents>>>,
    /// Contents whose memory is reused.
    used: Sender<Contents>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a thread that loads buffers, from the one with a number on. `None` if there is no second
/// processor, or no thread can be spawned.
pub(crate) type Start<S> = fn(&Arc<Files<S>>, usize) -> Option<Ahead>;

impl Ahead {
    pub(crate) fn start<S: ReadAt + Send + Sync + 'static>(
        files: &Arc<Files<S>>,
        first: usize,
    ) -> Option<Self> {
        thread::available_parallelism()
            .ok()
            .filter(|processors| processors.get() > 1)?;
        let (send, loaded) = sync_channel(1);
        let (used, spare) = channel::<Contents>();
        let files = Arc::clone(files);
        let load_all = move || {
            let mut compressed = Vec::new();
            for buffer in files.buffers.iter().skip(first) {
                let mut contents = spare.try_recv().unwrap_or_default();
                let read = files.load(buffer, &mut compressed, &mut contents);
                if send.send(read.map(|()| contents)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().spawn(load_all).ok()?;
        Some(Ahead {
            loaded: Some(loaded),
            used,
            thread: Some(thread),
        })
    }

    /// Returns the next buffer, in exchange for one that is no longer needed; `None` if the thread
    /// has ended early.
    pub(crate) fn next(&self, used: Contents) -> Option<io::Result<Contents>> {
        // The thread ends before all its buffers are returned.
        let _ = self.used.send(used);
        self.loaded.as_ref()?.recv().ok()
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.loaded = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
