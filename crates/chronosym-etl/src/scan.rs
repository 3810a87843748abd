//! The walk over a file's buffer headers.

use std::io;
use std::mem::take;

use chronosym_types::{PointerSize, bytes};

use crate::buffer::{Buffer, BufferHeader, HEADER, Index};
use crate::record::{frame, time_of_cut};
use crate::{Clock, Diagnostics, EtlError, ReadAt, TraceHeader};

/// What one file's walk gives.
pub(crate) struct Scan {
    pub(crate) header: TraceHeader,
    pub(crate) clock: Clock,
    /// In file order, ranked from 0.
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) diagnostics: Diagnostics,
}

/// Bytes read of a buffer by the walk: its header and its first records, whose time says when the buffer is needed.
const HEAD: usize = 512;
/// A day in ns: times this long after the end of a recording are damage.
const SLACK_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Walks over the buffers of `source`.
pub(crate) fn scan(source: &impl ReadAt) -> Result<Scan, EtlError> {
    let io = |source| EtlError::Io { offset: 0, source };
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
    };
    if let Err(error) = scan.walk(source, size, first_size.into()) {
        scan.diagnostics.read_error(error);
    }
    Ok(scan)
}

impl Scan {
    fn walk(&mut self, source: &impl ReadAt, size: u64, first_size: u64) -> io::Result<()> {
        let mode = self.header.log_file_mode;
        // Where processors share buffers, the first record of a buffer need not be its earliest.
        let whole = mode.is_shared_by_processors() || mode.is_private();
        let mut work = Work::default();
        let mut offset = 0;
        let mut blank = false;
        while offset < size {
            work.read_head(source, offset)?;
            let left = size - offset;
            if let Some(header) = BufferHeader::parse(&work.head) {
                // Zeros in the middle were a buffer; at the end they are the unused part of a preallocated file.
                self.diagnostics.damaged_headers += u64::from(blank);
                blank = false;
                self.diagnostics.skipped_bytes += take(&mut self.diagnostics.unread_bytes);
                if let Some(mut buffer) = self.buffer(&header, offset, left) {
                    if let Some(time) = work.first_time(source, &buffer, whole)? {
                        buffer.first_time = time;
                    }
                    self.buffers.push(buffer);
                }
                offset = offset.saturating_add(header.stored.into());
                continue;
            }
            let zeros = if left < HEADER as u64 {
                work.head.iter().all(|byte| *byte == 0)
            } else {
                bytes::u32(&work.head, 0) == Some(0)
            };
            // Buffers of an uncompressed log are all of one size; the next one of others has to be looked for.
            let step = if mode.is_compressed() {
                work.next_header(source, offset + 1, size)? - offset
            } else {
                left.min(first_size)
            };
            if zeros {
                blank = true;
            } else {
                self.diagnostics.damaged_headers += u64::from(left >= HEADER as u64);
                self.diagnostics.unread_bytes += step;
            }
            offset += step;
        }
        Ok(())
    }

    /// Counts a buffer; `None` if it is empty.
    fn buffer(&mut self, header: &BufferHeader, offset: u64, left: u64) -> Option<Buffer> {
        let found = &mut self.diagnostics;
        let stored = u64::from(header.stored).min(left) as u32;
        let cut = stored < header.stored;
        found.buffers += 1;
        found.truncated_buffers += u64::from(cut);
        found.buffers_with_lost_events += u64::from(header.lost_events());
        found.buffers_after_lost_buffer += u64::from(header.lost_buffer());
        if header.valid as usize <= HEADER {
            found.empty_buffers += 1;
            return None;
        }
        let compressed = header.is_compressed();
        Some(Buffer {
            // Where no record of it has a time, it is needed when the one before it was.
            first_time: self
                .buffers
                .last()
                .map_or(self.clock.start_raw, |before| before.first_time),
            rank: self.buffers.len() as u32,
            file: 0,
            cpu: header.cpu,
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

/// Reads the first record: the log file header, its raw time, and the size of the first buffer.
fn log_file_header(source: &impl ReadAt) -> Result<(TraceHeader, i64, u32), EtlError> {
    // The two names in it are at most 1024 units each.
    let mut bytes = vec![0; 8 << 10];
    let n = source
        .read_at(0, &mut bytes)
        .map_err(|source| EtlError::Io { offset: 0, source })?;
    let bytes = &bytes[..n];
    let buffer = BufferHeader::parse(bytes)
        .ok_or(EtlError::NotEtl("it does not begin with a buffer header"))?;
    if buffer.is_compressed() {
        return Err(EtlError::NotEtl("its first buffer is compressed"));
    }
    const NO_RECORD: EtlError = EtlError::NotEtl("its first record is no log file header");
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

/// What the walk reads into.
#[derive(Default)]
struct Work {
    head: Vec<u8>,
    compressed: Vec<u8>,
    bytes: Vec<u8>,
    index: Index,
}

impl Work {
    fn read_head(&mut self, source: &impl ReadAt, offset: u64) -> io::Result<()> {
        self.head.resize(HEAD, 0);
        let n = source.read_at(offset, &mut self.head)?;
        self.head.truncate(n);
        Ok(())
    }

    /// Offset of the first buffer header from `offset` on, or `size`: one that another, or the end, follows.
    fn next_header(&mut self, source: &impl ReadAt, mut offset: u64, size: u64) -> io::Result<u64> {
        const CHUNK: usize = 64 << 10;
        loop {
            self.bytes.resize(CHUNK, 0);
            let n = source.read_at(offset, &mut self.bytes)?;
            self.bytes.truncate(n);
            let places = n.saturating_sub(HEADER - 1);
            for at in 0..places {
                if !BufferHeader::is_certain(&self.bytes[at..at + HEADER]) {
                    continue;
                }
                let found = offset + at as u64;
                let stored = bytes::u32(&self.bytes, at).unwrap_or(0);
                let next = found + u64::from(stored);
                self.head.resize(HEADER, 0);
                let n = source.read_at(next.min(size), &mut self.head)?;
                if next == size || BufferHeader::is_certain(&self.head[..n]) {
                    return Ok(found);
                }
            }
            if places == 0 {
                return Ok(size);
            }
            offset += places as u64;
        }
    }

    /// Raw time of the first record of a buffer whose head was read; of the earliest one if `whole`, or if the first
    /// few show that they are not in order.
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
