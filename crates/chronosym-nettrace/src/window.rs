//! The part of a stream that is held in memory: one ordering region and what was read ahead.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "`position` and `filled` stay within the buffer, stream offsets within what was read"
)]

use std::io::{self, ErrorKind, Read};

/// Least room for a read at the start of a stream and later on.
const FIRST_CHUNK: usize = 16 * 1024;
const CHUNK: usize = 256 * 1024;

pub(crate) struct Window<R> {
    source: R,
    /// Bytes at and after `filled` are spare room, kept so that growing does not clear it again.
    buffer: Vec<u8>,
    filled: usize,
    /// Stream offset of `buffer[0]`.
    base: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            filled: 0,
            base: 0,
            ended: false,
            failure: None,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// Stream offset of a position in the window.
    pub(crate) fn offset(&self, position: usize) -> u64 {
        self.base + position as u64
    }

    /// Stream offset after the last byte read.
    pub(crate) fn end_offset(&self) -> u64 {
        self.offset(self.filled)
    }

    /// Why reading stopped early, if the source failed rather than ended.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Reads until `end` bytes are in the window; false if the source ends before.
    pub(crate) fn fill_to(&mut self, end: usize) -> bool {
        while self.filled < end && !self.ended {
            // The room grows with what arrived, never with what a length field promises.
            let room = self.filled.clamp(FIRST_CHUNK, CHUNK);
            if self.buffer.len() < self.filled + room {
                let grown = (self.filled + room).max(self.buffer.len() + self.buffer.len() / 2);
                self.buffer.resize(grown, 0);
            }
            // No more at a time than this: what was read ahead is moved to the front after each region.
            let end = self.buffer.len().min(self.filled + CHUNK);
            let room = self.buffer.get_mut(self.filled..end).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => self.ended = true,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A compressed source that was cut says so this way: an end like any other.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
        self.filled >= end
    }

    /// Reads more, whatever comes; false at the end of the source.
    pub(crate) fn read_more(&mut self) -> bool {
        self.fill_to(self.filled + 1)
    }

    /// Forgets everything before `position`, which becomes 0.
    pub(crate) fn discard(&mut self, position: usize) {
        let position = position.min(self.filled);
        self.buffer.copy_within(position..self.filled, 0);
        self.filled -= position;
        self.base += position as u64;
    }

    /// Removes `count` bytes that follow `position`, without holding them; false if the source ends before.
    pub(crate) fn drop_bytes(&mut self, position: usize, count: u64) -> bool {
        let mut left = count;
        loop {
            let held = (self.filled - position) as u64;
            let dropped = usize::try_from(held.min(left)).unwrap_or(usize::MAX);
            self.buffer
                .copy_within(position + dropped..self.filled, position);
            self.filled -= dropped;
            self.base += dropped as u64;
            left -= dropped as u64;
            if left == 0 {
                return true;
            }
            if !self.fill_to(position + 1) {
                return false;
            }
        }
    }
}
