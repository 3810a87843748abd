//! The part of a source that is held in memory.

use std::io::{self, ErrorKind, Read};

/// Least room for a read at the start of a source and later on.
const FIRST_CHUNK: usize = 16 * 1024;
const CHUNK: usize = 64 * 1024;

pub(crate) struct Stream<R> {
    source: R,
    /// Bytes before `at` have been used, those at and after `filled` are spare room.
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Offset in the source of `buffer[0]`.
    base: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl<R: Read> Stream<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            at: 0,
            filled: 0,
            base: 0,
            ended: false,
            failure: None,
        }
    }

    /// What has been read and not used.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.at..self.filled).unwrap_or_default()
    }

    /// Offset of the first byte that has not been used.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Offset after the last byte read.
    pub(crate) fn end_offset(&self) -> u64 {
        self.base + self.filled as u64
    }

    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// The next `count` bytes; `None` if the source ends before.
    #[inline]
    pub(crate) fn peek(&mut self, count: usize) -> Option<&[u8]> {
        while self.filled - self.at < count {
            if !self.read_more() {
                return None;
            }
        }
        self.bytes().get(..count)
    }

    /// Reads more, whatever comes; false at the end of the source. The room grows with what arrived, never with what a
    /// length promises.
    pub(crate) fn read_more(&mut self) -> bool {
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.filled, 0);
            self.base += self.at as u64;
            self.filled -= self.at;
            self.at = 0;
        }
        let room = self.filled.clamp(FIRST_CHUNK, CHUNK);
        if self.buffer.len() < self.filled + room {
            self.buffer.truncate(self.filled);
            self.buffer
                .resize((self.filled + room).next_power_of_two(), 0);
        }
        while !self.ended {
            let spare = self.buffer.get_mut(self.filled..).unwrap_or_default();
            match self.source.read(spare) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.filled += count;
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A compressed source that was cut says so this way: an end like any other.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
        false
    }

    /// Uses `count` bytes, at most those that [`bytes`](Self::bytes) has.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.at += count.min(self.filled - self.at);
    }

    /// Steps over `count` bytes without holding them; says how many there were.
    pub(crate) fn skip(&mut self, count: u64) -> u64 {
        let mut left = count;
        loop {
            let held = self.filled - self.at;
            let step = usize::try_from(left).map_or(held, |left| left.min(held));
            self.at += step;
            left -= step as u64;
            if left == 0 || !self.read_more() {
                return count - left;
            }
        }
    }
}
