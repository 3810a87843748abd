//! Buffers: 72 bytes of header (`WMI_BUFFER_HEADER`), then records, possibly compressed.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions in a buffer, which has at most 16 MiB"
)]

use std::io;

use chronosym_types::{Gap, GapCause, bytes};

use crate::record::{FrameError, frame};
use crate::{ReadAt, xpress};

/// Bytes of a buffer header.
pub(crate) const HEADER: usize = 72;
/// No session's buffers are larger, once decompressed.
pub(crate) const MAX_BUFFER: usize = 16 << 20;

const EVENTS_LOST: u16 = 2;
const BUFFER_LOST: u16 = 4;
const PROCESSOR_INDEX: u16 = 0x20;
const COMPRESSED: u16 = 0x40;

/// The header of a buffer, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferHeader {
    /// Bytes in the file, header included: the step to the next buffer.
    pub(crate) stored: u32,
    /// Bytes of header and records, after decompression.
    pub(crate) valid: u32,
    pub(crate) cpu: u16,
    /// Number of the buffer in its session.
    pub(crate) sequence: i64,
    flags: u16,
}

impl BufferHeader {
    /// `None` if no buffer can look like this.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER)?;
        let stored = bytes::u32(bytes, 0)?;
        let valid = bytes::u32(bytes, 0x30)?;
        let flags = bytes::u16(bytes, 0x34)?;
        let cpu = bytes::u16(bytes, 0x28)?;
        let sequence = bytes::i64(bytes, 0x18)?;
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
            sequence,
            flags,
        })
    }

    /// Returns whether bytes at an arbitrary offset are a header beyond reasonable doubt.
    pub(crate) fn is_certain(bytes: &[u8]) -> bool {
        const LAST_STATE: u32 = 6;
        const LAST_TYPE: u16 = 7;
        // The state first: it rules out most other bytes.
        bytes::u32(bytes, 0x2c).is_some_and(|state| state <= LAST_STATE)
            && bytes::u16(bytes, 0x36).is_some_and(|kind| kind <= LAST_TYPE)
            && Self::parse(bytes).is_some_and(|header| header.valid as usize >= HEADER)
    }

    /// With another size, if `is_wrong`.
    pub(crate) fn shortened(self, stored: u64, is_wrong: bool) -> Self {
        match u32::try_from(stored) {
            Ok(stored) if is_wrong => Self { stored, ..self },
            _ => self,
        }
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

/// A buffer that has records, found by the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    /// Raw time of its first record.
    pub(crate) first_time: i64,
    /// Position among all buffers: decides between records of one time.
    pub(crate) rank: u32,
    pub(crate) file: u32,
    pub(crate) cpu: u16,
    /// As in [`BufferHeader::sequence`].
    pub(crate) sequence: i64,
    /// File offset of its header.
    pub(crate) offset: u64,
    /// Bytes to read, including the header: fewer than the buffer's size if the file is cut off.
    pub(crate) stored: u32,
    pub(crate) valid: u32,
    pub(crate) compressed: bool,
    /// The file ends inside it.
    pub(crate) cut: bool,
}

impl Buffer {
    /// Returns whether this is a copy of another buffer of the same file. Sessions number their
    /// buffers from 0; programs that rewrite files may leave 0 in all of them.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            (
                it.file,
                it.cpu,
                it.first_time,
                it.sequence,
                it.stored,
                it.valid,
            )
        };
        self.sequence != 0 && key(self) == key(other)
    }

    /// Returns the gap from offset `from` to the end of the buffer. A compressed buffer is a gap as
    /// a whole.
    pub(crate) fn gap(&self, from: usize, cause: GapCause) -> Gap {
        let end = match self.cut || self.compressed {
            true => self.stored,
            false => self.valid,
        };
        let from = match self.compressed {
            true => 0,
            false => from.min(end as usize) as u64,
        };
        let mut gap = Gap::new(self.offset + from, u64::from(end) - from, cause);
        gap.file = self.file;
        gap
    }

    /// Reads and decompresses the buffer into `bytes`, including the header: offsets are those of
    /// the format.
    pub(crate) fn read(
        &self,
        source: &impl ReadAt,
        compressed: &mut Vec<u8>,
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        if self.compressed {
            compressed.resize((self.stored as usize).saturating_sub(HEADER), 0);
            let n = source.read_at(self.offset + HEADER as u64, compressed)?;
            let compressed = compressed.get(..n).unwrap_or(compressed);
            self.unpack(compressed, self.valid as usize, bytes);
        } else {
            bytes.resize(self.valid as usize, 0);
            let n = source.read_at(self.offset, bytes)?;
            bytes.truncate(n);
        }
        Ok(())
    }

    /// As [`read`](Self::read), for the first bytes of a buffer: `head` holds its header and some
    /// records.
    pub(crate) fn read_head(&self, head: &[u8], bytes: &mut Vec<u8>) {
        let head = head.get(..self.stored as usize).unwrap_or(head);
        if self.compressed {
            let size = (self.valid as usize).min(head.len());
            self.unpack(head.get(HEADER..).unwrap_or_default(), size, bytes);
        } else {
            bytes.clear();
            bytes.extend_from_slice(head.get(..self.valid as usize).unwrap_or(head));
        }
    }

    fn unpack(&self, compressed: &[u8], size: usize, bytes: &mut Vec<u8>) {
        let room = size.max(HEADER) + xpress::SLACK;
        if room > bytes.capacity() {
            // Nothing in it is needed.
            *bytes = vec![0; room];
        }
        bytes.resize(room, 0);
        let records = bytes.get_mut(HEADER..).unwrap_or_default();
        let n = xpress::decompress(compressed, records);
        bytes.truncate(HEADER + n);
    }
}

/// Positions of the records of a decompressed buffer, in time order.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// (raw time, offset).
    pub(crate) records: Vec<(i64, u32)>,
    /// Whether the records were out of time order.
    pub(crate) unordered: bool,
    /// Bytes at the end that are not records.
    pub(crate) dropped: usize,
}

impl Index {
    /// Frames every record of `bytes` (offsets count from its start, as alignment does). Records
    /// without a time take that of the preceding one, or of the first that has one, or `otherwise`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a buffer has at most 16 MiB"
    )]
    pub(crate) fn build(&mut self, bytes: &[u8], otherwise: i64) {
        self.records.clear();
        self.unordered = false;
        self.dropped = 0;
        let mut at = HEADER;
        let mut last = None;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match frame(rest) {
                Ok(frame) => {
                    if let Some(time) = frame.time {
                        match last {
                            Some(last) => self.unordered |= time < last,
                            None => self.records.iter_mut().for_each(|record| record.0 = time),
                        }
                        last = Some(time);
                    }
                    self.records.push((last.unwrap_or(otherwise), at as u32));
                    at += (frame.size as usize + 7) & !7;
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

    /// Returns the earliest time of the records; `None` if there are none, or if none has a time.
    pub(crate) fn first_time(&self) -> Option<i64> {
        self.records
            .first()
            .map(|r| r.0)
            .filter(|time| *time != i64::MIN)
    }
}
