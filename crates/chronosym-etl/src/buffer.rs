//! Buffers: 72 bytes of header (`WMI_BUFFER_HEADER`), then records, possibly compressed.

use crate::bytes::{u16_at, u32_at};
use crate::record::{FrameError, frame};

/// Bytes of a buffer header.
pub(crate) const HEADER: usize = 72;
/// No session's buffers are larger, once decompressed.
pub(crate) const MAX_BUFFER: usize = 16 << 20;

const EVENTS_LOST: u16 = 2;
const BUFFER_LOST: u16 = 4;
const PROCESSOR_INDEX: u16 = 0x20;
const COMPRESSED: u16 = 0x40;

/// What the header of one buffer says, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferHeader {
    /// Bytes in the file, header included: the step to the next buffer.
    pub(crate) stored: u32,
    /// Bytes of header and records, after decompression.
    pub(crate) valid: u32,
    pub(crate) cpu: u16,
    flags: u16,
}

impl BufferHeader {
    /// `None` if no buffer can look like this.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER)?;
        let stored = u32_at(bytes, 0)?;
        let valid = u32_at(bytes, 0x30)?;
        let flags = u16_at(bytes, 0x34)?;
        let cpu = u16_at(bytes, 0x28)?;
        let limit = if flags & COMPRESSED != 0 {
            MAX_BUFFER
        } else {
            stored as usize
        };
        if (stored as usize) < HEADER
            || stored as usize > MAX_BUFFER + HEADER
            || valid as usize > limit
        {
            return None;
        }
        // Before processor indexes the upper byte held the alignment.
        let cpu = if flags & PROCESSOR_INDEX != 0 {
            cpu & 0x7ff
        } else {
            cpu & 0xff
        };
        Some(Self {
            stored,
            valid,
            cpu,
            flags,
        })
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.flags & COMPRESSED != 0
    }

    pub(crate) fn lost_events(&self) -> bool {
        self.flags & EVENTS_LOST != 0
    }

    pub(crate) fn lost_buffer(&self) -> bool {
        self.flags & BUFFER_LOST != 0
    }
}

/// Where the records of a decompressed buffer are, in time order.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// (raw time, offset).
    pub(crate) records: Vec<(i64, u32)>,
    /// The records did not lie in time order.
    pub(crate) unordered: bool,
    /// Bytes at the end that are no records.
    pub(crate) dropped: usize,
}

impl Index {
    /// Frames every record of `bytes` (offsets count from its start, as alignment does). Records without a time take
    /// that of the one before them, or of the first that has one, or `otherwise`.
    pub(crate) fn build(&mut self, bytes: &[u8], otherwise: i64) {
        self.records.clear();
        self.unordered = false;
        self.dropped = 0;
        let mut at = HEADER;
        let mut last = None;
        while at < bytes.len() {
            match frame(&bytes[at..]) {
                Ok(frame) => {
                    if let Some(time) = frame.time {
                        match last {
                            Some(last) => self.unordered |= time < last,
                            None => self.records.iter_mut().for_each(|record| record.0 = time),
                        }
                        last = Some(time);
                    }
                    self.records.push((last.unwrap_or(otherwise), at as u32));
                    at += (frame.size as usize).next_multiple_of(8);
                }
                Err(FrameError::End) => break,
                Err(FrameError::Damaged) => {
                    self.dropped = bytes.len() - at;
                    break;
                }
            }
        }
        if self.unordered {
            // Stable in effect: offsets differ.
            self.records.sort_unstable();
        }
    }

    /// The least time of the records; `None` without any, or if none has a time.
    pub(crate) fn first_time(&self) -> Option<i64> {
        self.records
            .first()
            .map(|r| r.0)
            .filter(|time| *time != i64::MIN)
    }
}
