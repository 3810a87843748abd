//! A sliding window over a source.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "`at` and `filled` stay within the buffer, offsets within what was read"
)]

use std::io::{self, ErrorKind, Read};

/// Smallest read at the start of a source and later.
const FIRST_CHUNK: usize = 16 * 1024;
const CHUNK: usize = 256 * 1024;

/// The bytes of a source that are read and unused. Positions count from the first unused byte,
/// offsets from the start of the source.
///
/// # Examples
///
/// ```
/// use chronosym_types::Window;
///
/// let source: &[u8] = b"headerbody";
/// let mut window = Window::new(source);
/// assert_eq!(window.peek(6), Some(&b"header"[..]));
/// window.discard(6);
/// assert_eq!(window.offset(0), 6);
/// assert_eq!(window.peek(4), Some(&b"body"[..]));
/// assert_eq!(window.peek(5), None); // the source ends before
/// ```
#[derive(Debug)]
pub struct Window<R> {
    source: R,
    /// Bytes before `at` are used; bytes from `filled` on are spare, kept so that growing does not
    /// clear them again.
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Offset of `buffer[0]` in the source.
    base: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl<R: Read> Window<R> {
    /// Returns a window at the start of a source.
    pub fn new(source: R) -> Self {
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

    /// Returns the bytes that are read and unused.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.at..self.filled).unwrap_or_default()
    }

    /// Returns the offset of a position.
    #[inline]
    pub fn offset(&self, position: usize) -> u64 {
        self.base + (self.at + position) as u64
    }

    /// Returns the offset after the last byte read.
    pub fn end_offset(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// Returns the size of its buffer in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Takes the error that ended reading, if the source failed.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Reads until the window has `end` bytes; returns false if the source ends before.
    #[inline]
    pub fn fill_to(&mut self, end: usize) -> bool {
        self.filled - self.at >= end || self.read_to(end)
    }

    fn read_to(&mut self, end: usize) -> bool {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.base += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        while self.filled < end && !self.ended {
            // Grow with the bytes that arrived, never with a length field.
            let room = self.filled.clamp(FIRST_CHUNK, CHUNK);
            if self.buffer.len() < self.filled + room {
                let grown = (self.filled + room).max(self.buffer.len() + self.buffer.len() / 8);
                self.buffer.resize(grown, 0);
            }
            // Limit each read: bytes read ahead are moved to the front later.
            let end = self.buffer.len().min(self.filled + CHUNK);
            let room = self.buffer.get_mut(self.filled..end).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => self.ended = true,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Truncated compressed sources return this error: treat it as the end.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
        self.filled >= end
    }

    /// Reads at least one more byte; returns false at the end of the source.
    pub fn read_more(&mut self) -> bool {
        self.fill_to(self.bytes().len() + 1)
    }

    /// Returns the next `count` bytes; `None` if the source ends before.
    #[inline]
    pub fn peek(&mut self, count: usize) -> Option<&[u8]> {
        self.fill_to(count).then(|| self.bytes().get(..count))?
    }

    /// Discards the bytes before `position`, which becomes 0.
    #[inline]
    pub fn discard(&mut self, position: usize) {
        self.at += position.min(self.filled - self.at);
    }

    /// Removes `count` bytes after `position` without buffering them; returns how many there were.
    pub fn drop_bytes(&mut self, position: usize, count: u64) -> u64 {
        let mut left = count;
        loop {
            let from = self.filled.min(self.at + position);
            let held = self.filled - from;
            let step = usize::try_from(left).map_or(held, |left| left.min(held));
            if position == 0 {
                self.at += step;
            } else {
                self.buffer.copy_within(from + step..self.filled, from);
                self.filled -= step;
                self.base += step as u64;
            }
            left -= step as u64;
            if left == 0 || !self.fill_to(position + 1) {
                return count - left;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_advance_with_the_bytes_used() {
        let bytes: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
        let mut window = Window::new(bytes.as_slice());
        assert_eq!(window.peek(3), Some(&[0, 1, 2][..]));
        window.discard(2);
        assert_eq!((window.offset(0), window.bytes()[0]), (2, 2));
        // Bytes 4 to 90,003 are removed, earlier ones stay.
        assert_eq!(window.drop_bytes(2, 90_000), 90_000);
        assert_eq!(window.peek(3), Some(&[2, 3, 90_004u32 as u8][..]));
        assert_eq!(window.offset(2), 90_004);
        assert!(!window.fill_to(10_000));
        window.discard(usize::MAX);
        assert_eq!(window.drop_bytes(0, 1), 0);
        assert_eq!((window.offset(0), window.end_offset()), (100_000, 100_000));
        assert!(window.bytes().is_empty() && !window.read_more());
    }
}
