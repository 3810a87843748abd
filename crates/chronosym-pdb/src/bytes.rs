//! Bounds-checked little-endian reads whose errors name the structure.

use std::convert::Infallible;
use std::ops::Range;

use chronosym_types::copied_text;

pub(crate) use chronosym_types::bytes::{array, guid, slice, u16, u32, until_nul};

use crate::{Error, Result};

/// A read position in a structure, whose name is used in errors.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'d> {
    bytes: chronosym_types::Cursor<'d>,
    what: &'static str,
}

impl<'d> Cursor<'d> {
    pub(crate) fn new(data: &'d [u8], what: &'static str) -> Self {
        Self::at(data, 0, what)
    }

    pub(crate) fn at(data: &'d [u8], position: usize, what: &'static str) -> Self {
        Self {
            bytes: chronosym_types::Cursor::starting_at(data, position),
            what,
        }
    }

    pub(crate) fn position(&self) -> usize {
        self.bytes.position()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'d [u8]> {
        let truncated = Error::truncated(self.what, self.position() as u64, len as u64);
        self.bytes.take(len).map_err(|_| truncated)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let truncated = Error::truncated(self.what, self.position() as u64, N as u64);
        self.bytes.array().map_err(|_| truncated)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn damaged(&self, problem: &'static str) -> Error {
        Error::damaged(self.what, self.position() as u64, problem)
    }
}

/// Returns the bytes up to the first NUL, as text.
pub(crate) fn text_to_nul(bytes: &[u8]) -> String {
    copied_text(until_nul(bytes))
}

/// Returns the first number of `range` for which `before` is false; `range` must be partitioned by
/// `before`.
pub(crate) fn partition_point(range: Range<u32>, mut before: impl FnMut(u32) -> bool) -> u32 {
    let point = try_partition_point(range, |number| Ok::<_, Infallible>(before(number)));
    point.unwrap_or_else(|never| match never {})
}

/// As [`partition_point`], for a predicate that can fail.
pub(crate) fn try_partition_point<E>(
    mut range: Range<u32>,
    mut before: impl FnMut(u32) -> Result<bool, E>,
) -> Result<u32, E> {
    while !range.is_empty() {
        let middle = range.start.midpoint(range.end);
        if before(middle)? {
            range.start = middle.saturating_add(1);
        } else {
            range.end = middle;
        }
    }
    Ok(range.start)
}

/// Consecutive pairs of 32-bit integers; an incomplete last pair is dropped.
pub(crate) fn pairs(data: &[u8]) -> Box<[(u32, u32)]> {
    let pair = |pair: &[u8]| Some((u32(pair, 0)?, u32(pair, 4)?));
    data.chunks_exact(8).filter_map(pair).collect()
}

/// Prefetches the 8 KiB of `data` from `at` on and returns where they end.
///
/// A walk from record to record waits for each cache miss in turn. These reads do not depend on
/// each other, so the misses overlap: walks over cold modules take half as long.
pub(crate) fn fetch(data: &[u8], at: usize) -> usize {
    const CHUNK: usize = 8 << 10;
    const LINE: usize = 64;
    let end = data.len().min(at.saturating_add(CHUNK));
    let mut sum = 0;
    let chunk = data.get(at..end).unwrap_or_default();
    for byte in chunk.iter().step_by(LINE) {
        sum = std::hint::black_box(sum ^ byte);
    }
    end
}
