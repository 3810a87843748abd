//! Finds the buffers of a file.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "offsets up to the size of the file and one buffer more, and counts of buffers"
)]

use std::io;

use chronosym_types::{Gap, GapCause, PointerSize, bytes};

use crate::buffer::{Buffer, BufferHeader, HEADER, Index};
use crate::record::{frame, time_of_cut};
use crate::{Clock, Diagnostics, Error, ReadAt, TraceHeader};

/// The buffers of a file.
pub(crate) struct Scan {
    pub(crate) header: TraceHeader,
    pub(crate) clock: Clock,
    /// In file order, ranked from 0.
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) diagnostics: Diagnostics,
    /// Why the search ended before the end of the file.
    pub(crate) failure: Option<Error>,
    /// Bytes that compressed buffers unpack to.
    unpacked: u64,
    /// Numbers of the buffers.
    numbers: Vec<i64>,
}

/// Bytes read of each buffer: its header and its first records, whose time determines when the
/// buffer is needed.
const HEAD: usize = 512;
/// Compressed buffers may decompress to this many bytes, or to this multiple of their size in the
/// file; real ones take three to ten times as much. Buffers beyond are skipped.
const FREE_UNPACKED: u64 = 64 << 20;
const UNPACKED_RATIO: u64 = 200;
/// A day in ns: times this long after the end of a recording are damage.
const SLACK_NS: u64 = 24 * 3600 * 1_000_000_000;

/// A part of the file that no buffer header leads to.
#[derive(Clone, Copy)]
struct UnreadablePart {
    from: u64,
    /// End of the searched range.
    searched: u64,
    /// The searched range is all zeros.
    is_blank: bool,
}

/// Finds the buffers of `source`.
pub(crate) fn scan(source: &impl ReadAt) -> Result<Scan, Error> {
    let io = |source| Error::Io { offset: 0, source };
    let size = source.size().map_err(io)?;
    let (header, start_raw, first_size) = log_file_header(source)?;
    let frequency = header.frequency()?;
    let last_ns = header
        .duration_ns()
        .map_or(u64::MAX, |ns| ns.saturating_add(SLACK_NS));
    let clock = Clock::new(start_raw, header.start_time, frequency, last_ns);
    let mut scan = Scan {
        header,
        clock,
        buffers: Vec::new(),
        diagnostics: Diagnostics::default(),
        failure: None,
        unpacked: 0,
        numbers: Vec::new(),
    };
    let mut offset = 0;
    if let Err(source) = scan.walk(source, size, first_size.into(), &mut offset) {
        let gap = Gap::new(offset, size.saturating_sub(offset), GapCause::Unreadable);
        scan.diagnostics.gaps.add(gap);
        scan.failure = Some(Error::Io { offset, source });
    }
    if scan.diagnostics.gaps.is_empty() {
        let numbers = std::mem::take(&mut scan.numbers);
        scan.diagnostics.missing_buffers = scan.header.missing_buffers(numbers);
    }
    Ok(scan)
}

impl Scan {
    /// Goes from buffer to buffer; `offset` is the position reached.
    fn walk(
        &mut self,
        source: &impl ReadAt,
        size: u64,
        first_size: u64,
        offset: &mut u64,
    ) -> io::Result<()> {
        let mode = self.header.log_file_mode;
        // Where processors share buffers, the first record of a buffer need not be its earliest.
        let whole = mode.is_shared_by_processors() || mode.is_private();
        let mut scratch = Scratch::default();
        // Start of the last buffer, and the unreadable part after it.
        let mut last = 0;
        let mut lost: Option<UnreadablePart> = None;
        while *offset < size {
            scratch.read_head(source, *offset)?;
            if let Some(header) = BufferHeader::parse(&scratch.head) {
                if let Some(lost) = lost.take() {
                    let gap = Gap::new(lost.from, *offset - lost.from, GapCause::NoBlock);
                    self.diagnostics.gaps.add(gap);
                }
                let header = scratch.plausible(source, header, *offset, size, first_size)?;
                if let Some(mut buffer) = self.buffer(&header, *offset, size - *offset) {
                    if let Some(time) = scratch.first_time(source, &buffer, whole)? {
                        buffer.first_time = time;
                    }
                    self.buffers.push(buffer);
                }
                last = *offset;
                *offset = offset.saturating_add(header.stored.into());
                continue;
            }
            let is_blank = scratch.head.iter().all(|byte| *byte == 0);
            let from = lost.map_or(last + HEADER as u64, |lost| lost.searched);
            let searched = *offset;
            let next = if is_blank && !mode.is_compressed() {
                // The unused part of a preallocated file may be long; buffers of such a log are all
                // of one size.
                *offset + first_size.min(size - *offset)
            } else {
                scratch.next_header(source, from, size)?
            };
            if lost.is_none() && next < *offset {
                self.shorten_last(last, next);
            } else {
                let lost = lost.get_or_insert(UnreadablePart {
                    from: *offset,
                    searched,
                    is_blank,
                });
                lost.searched = searched + 1;
                lost.is_blank &= is_blank;
            }
            *offset = next;
        }
        if let Some(lost) = lost.filter(|lost| !lost.is_blank) {
            let length = size - lost.from;
            let cause = match length < HEADER as u64 {
                true => GapCause::CutShort,
                false => GapCause::NoBlock,
            };
            self.diagnostics
                .gaps
                .add(Gap::new(lost.from, length, cause));
        }
        Ok(())
    }

    /// The buffer at `offset` states too large a size: another one starts inside it, at `end`.
    fn shorten_last(&mut self, offset: u64, end: u64) {
        let last = self.buffers.last_mut();
        if let Some(last) = last.filter(|last| last.offset == offset) {
            last.stored = u32::try_from(end - offset).unwrap_or(last.stored);
            if !last.compressed {
                last.valid = last.valid.min(last.stored);
            }
            last.cut = false;
        }
    }

    /// Counts a buffer; `None` if it is empty.
    fn buffer(&mut self, header: &BufferHeader, offset: u64, left: u64) -> Option<Buffer> {
        let diagnostics = &mut self.diagnostics;
        let stored = u32::try_from(left).map_or(header.stored, |left| left.min(header.stored));
        let cut = stored < header.stored;
        diagnostics.buffers += 1;
        self.numbers.push(header.sequence);
        diagnostics.buffers_with_lost_events += u64::from(header.lost_events());
        diagnostics.buffers_after_lost_buffer += u64::from(header.lost_buffer());
        if header.valid as usize <= HEADER {
            diagnostics.empty_buffers += 1;
            if cut {
                diagnostics
                    .gaps
                    .add(Gap::new(offset, left, GapCause::CutShort));
            }
            return None;
        }
        let compressed = header.is_compressed();
        if compressed {
            let unpacked = self.unpacked + u64::from(header.valid);
            let most = UNPACKED_RATIO.saturating_mul(offset + u64::from(stored));
            if unpacked > most.max(FREE_UNPACKED) {
                diagnostics
                    .gaps
                    .add(Gap::new(offset, stored.into(), GapCause::TooLarge));
                return None;
            }
            self.unpacked = unpacked;
        }
        Some(Buffer {
            // If none of its records has a time, it is needed when the one before it is.
            first_time: self
                .buffers
                .last()
                .map_or(self.clock.start_raw, |before| before.first_time),
            rank: u32::try_from(self.buffers.len()).unwrap_or(u32::MAX),
            file: 0,
            cpu: header.cpu,
            sequence: header.sequence,
            offset,
            stored,
            valid: if compressed {
                header.valid
            } else {
                header.valid.min(stored)
            },
            compressed,
            cut,
        })
    }
}

/// Returns whether a file with these first bytes is an .etl: its first buffer is of the header type
/// and starts with a header record.
///
/// # Examples
///
/// ```
/// # let log = chronosym_support::etl::EtlWriter::new(Vec::new(), Default::default()).unwrap().finish().unwrap();
/// assert!(chronosym_etl::is_etl(&log[..4096]));
/// assert!(!chronosym_etl::is_etl(b"Nettrace"));
/// ```
pub fn is_etl(head: &[u8]) -> bool {
    let byte = |at: usize| head.get(at).copied();
    (byte(0x36), byte(0x37)) == (Some(4), Some(0))
        && byte(0x4b) == Some(0xc0)
        && matches!(byte(0x4a), Some(1 | 2))
        && (byte(0x4e), byte(0x4f)) == (Some(0), Some(0))
}

/// Reads the first record: the log file header, its raw time, and the size of the first buffer.
fn log_file_header(source: &impl ReadAt) -> Result<(TraceHeader, i64, u32), Error> {
    // The two names in it are at most 1024 units each.
    let mut bytes = vec![0; 8 << 10];
    let n = source
        .read_at(0, &mut bytes)
        .map_err(|source| Error::Io { offset: 0, source })?;
    let bytes = bytes.get(..n).unwrap_or(&bytes);
    let buffer = BufferHeader::parse(bytes)
        .ok_or(Error::NotEtl("it does not begin with a buffer header"))?;
    if buffer.is_compressed() {
        return Err(Error::NotEtl("its first buffer is compressed"));
    }
    const NO_RECORD: Error = Error::NotEtl("its first record is no log file header");
    let bytes = bytes.get(HEADER..).ok_or(NO_RECORD)?;
    let frame = frame(bytes).map_err(|_| NO_RECORD)?;
    let (Some(time), Some([_, _, kind @ (1 | 2), 0xc0, _, _, 0, 0])) =
        (frame.time, bytes::array(bytes, 0))
    else {
        return Err(NO_RECORD);
    };
    let width = if kind == 1 {
        PointerSize::Four
    } else {
        PointerSize::Eight
    };
    let payload = bytes.get(32..frame.size as usize).ok_or(NO_RECORD)?;
    Ok((TraceHeader::parse(payload, width)?, time, buffer.stored))
}

/// Memory that is reused for each buffer.
#[derive(Default)]
struct Scratch {
    head: Vec<u8>,
    compressed: Vec<u8>,
    bytes: Vec<u8>,
    index: Index,
}

impl Scratch {
    fn read_head(&mut self, source: &impl ReadAt, offset: u64) -> io::Result<()> {
        self.head.resize(HEAD, 0);
        let n = source.read_at(offset, &mut self.head)?;
        self.head.truncate(n);
        Ok(())
    }

    /// Returns the header of a buffer at `offset`, shortened if another buffer starts inside it,
    /// which is read separately.
    fn plausible(
        &mut self,
        source: &impl ReadAt,
        header: BufferHeader,
        offset: u64,
        size: u64,
        first_size: u64,
    ) -> io::Result<BufferHeader> {
        let stored = u64::from(header.stored);
        if stored > size - offset {
            let next = self.next_header(source, offset + HEADER as u64, size)?;
            self.read_head(source, offset)?;
            return Ok(header.shortened(next - offset, next < size));
        }
        if header.is_compressed() || stored <= first_size {
            return Ok(header);
        }
        // Buffers of an uncompressed log are mostly of one size.
        let mut next = [0; HEADER];
        let n = source.read_at(offset + first_size, &mut next)?;
        let is_next = next.get(..n).is_some_and(BufferHeader::is_certain);
        Ok(header.shortened(first_size, is_next))
    }

    /// Offset of the first buffer from `offset` on, or `size`.
    fn next_header(&mut self, source: &impl ReadAt, mut offset: u64, size: u64) -> io::Result<u64> {
        const CHUNK: usize = 64 << 10;
        loop {
            self.bytes.resize(CHUNK, 0);
            let n = source.read_at(offset, &mut self.bytes)?;
            self.bytes.truncate(n);
            let positions = n.saturating_sub(HEADER - 1);
            for at in 0..positions {
                let header = self.bytes.get(at..at + HEADER).unwrap_or_default();
                if !BufferHeader::is_certain(header) {
                    continue;
                }
                let start = offset + at as u64;
                if self.is_buffer(source, start, size)? {
                    return Ok(start);
                }
            }
            if positions == 0 {
                return Ok(size);
            }
            offset += positions as u64;
        }
    }

    /// Returns whether the buffer at `offset` is followed by another one, or by the end of the file
    /// and starts with a record.
    fn is_buffer(&mut self, source: &impl ReadAt, offset: u64, size: u64) -> io::Result<bool> {
        self.read_head(source, offset)?;
        let Some(header) = BufferHeader::parse(&self.head) else {
            return Ok(false);
        };
        let next = offset + u64::from(header.stored);
        if next == size {
            let record = self.head.get(HEADER..).unwrap_or_default();
            return Ok(header.is_compressed() || time_of_cut(record).is_some());
        }
        let mut head = [0; HEADER];
        let n = source.read_at(next.min(size), &mut head)?;
        Ok(head.get(..n).is_some_and(BufferHeader::is_certain))
    }

    /// Raw time of the first record of a buffer whose head was read; of the earliest one if
    /// `whole`, or if the first few show that they are not in order.
    fn first_time(
        &mut self,
        source: &impl ReadAt,
        buffer: &Buffer,
        whole: bool,
    ) -> io::Result<Option<i64>> {
        const NONE: i64 = i64::MIN;
        buffer.read_head(&self.head, &mut self.bytes);
        self.index.build(&self.bytes, NONE);
        if whole || self.index.unordered {
            buffer.read(source, &mut self.compressed, &mut self.bytes)?;
            self.index.build(&self.bytes, NONE);
        }
        let records = self.bytes.get(HEADER..).unwrap_or_default();
        Ok(self
            .index
            .first_time()
            .filter(|time| *time != NONE)
            .or_else(|| time_of_cut(records)))
    }
}
