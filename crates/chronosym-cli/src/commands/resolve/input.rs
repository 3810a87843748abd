//! Standard input, read by a thread of its own: while a batch is resolved, the next one arrives.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Bytes that are read at once, as many as a pipe holds.
const CHUNK: usize = 1 << 16;
/// Chunks that wait. The more rows a batch has, the more of them find the code of their process in
/// the processor's caches.
const WAITING: usize = 256;

pub struct Input {
    chunks: Receiver<io::Result<Vec<u8>>>,
}

impl Input {
    pub fn start() -> io::Result<Self> {
        let (sender, chunks) = mpsc::sync_channel(WAITING);
        let read = move || {
            let mut input = io::stdin().lock();
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = input.read(&mut chunk).map(|length| {
                    chunk.truncate(length);
                    chunk
                });
                let is_last = !matches!(&read, Ok(chunk) if !chunk.is_empty());
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(read)?;
        Ok(Input { chunks })
    }

    /// Appends what has arrived, and waits if that is nothing. Returns false at the end.
    pub fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let Ok(first) = self.chunks.recv() else {
            return Ok(false);
        };
        bytes.extend(first?);
        for chunk in self.chunks.try_iter().take(WAITING) {
            bytes.extend(chunk?);
        }
        Ok(true)
    }
}
