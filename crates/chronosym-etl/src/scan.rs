//! The walk over a file's buffer headers.

use std::io;

use crate::buffer::{BufferHeader, HEADER, Index};
use crate::bytes::u32_at;
use crate::record::{PointerSize, time_of_cut};
use crate::{Clock, Diagnostics, EtlError, ReadAt, TraceHeader, xpress};

/// A buffer that has records, found by the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    /// Raw time of its first record.
    pub(crate) first_time: i64,
    /// Position among all buffers: decides between records of one time.
    pub(crate) rank: u32,
    pub(crate) file: u16,
    pub(crate) cpu: u16,
    /// Where its header is in the file.
    pub(crate) offset: u64,
    /// Bytes to read, header included: less than it should have where the file is cut off.
    pub(crate) stored: u32,
    pub(crate) valid: u32,
    pub(crate) compressed: bool,
    /// The file ends inside it.
    pub(crate) cut: bool,
}

/// What one file's walk gives.
pub(crate) struct Scan {
    pub(crate) header: TraceHeader,
    pub(crate) clock: Clock,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) diagnostics: Diagnostics,
}

/// Bytes read of a buffer by the walk: its header and its first records, whose least time is where it belongs.
const PREFIX: usize = 512;
/// A day in ns: times this long after the end of a recording are damage.
const SLACK_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Walks `source`. Buffers come in file order, ranked from 0.
pub(crate) fn scan(source: &impl ReadAt) -> Result<Scan, EtlError> {
    let io = |offset, source| EtlError::Io { offset, source };
    let size = source.size().map_err(|e| io(0, e))?;
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
    let mut work = Prefix::default();
    let mut offset = 0;
    let mut zeros = 0;
    while offset < size {
        let bytes = work.read(source, offset).map_err(|e| io(offset, e))?;
        let left = size - offset;
        let blank = u32_at(bytes, 0) == Some(0);
        match BufferHeader::parse(bytes) {
            Some(header) => {
                if zeros != 0 {
                    scan.diagnostics.damaged_headers += 1;
                    zeros = 0;
                }
                scan.diagnostics.buffers += 1;
                scan.diagnostics.buffers_with_lost_events += u64::from(header.lost_events());
                scan.diagnostics.buffers_after_lost_buffer += u64::from(header.lost_buffer());
                scan.add(&header, offset, left, work.first_time(&header));
                offset = offset.saturating_add(header.stored.into());
            }
            None if left < HEADER as u64 => {
                scan.diagnostics.unread_bytes += if bytes.iter().all(|b| *b == 0) {
                    0
                } else {
                    left
                };
                break;
            }
            // Buffers of an uncompressed log are all of one size, so the next one can still be found.
            None if !scan.header.log_file_mode.is_compressed() && first_size as usize >= HEADER => {
                if blank {
                    zeros += 1;
                } else {
                    scan.diagnostics.damaged_headers += 1;
                    scan.diagnostics.unread_bytes += left.min(first_size.into());
                }
                offset += u64::from(first_size);
            }
            None => {
                if !blank {
                    scan.diagnostics.damaged_headers += 1;
                    scan.diagnostics.unread_bytes += left;
                }
                break;
            }
        }
    }
    Ok(scan)
}

impl Scan {
    fn add(&mut self, header: &BufferHeader, offset: u64, left: u64, first_time: Option<i64>) {
        let stored = u64::from(header.stored).min(left) as u32;
        let cut = stored < header.stored;
        if cut {
            self.diagnostics.truncated_buffers += 1;
        }
        if header.valid as usize <= HEADER {
            self.diagnostics.empty_buffers += 1;
            return;
        }
        let valid = if header.is_compressed() {
            header.valid
        } else {
            header.valid.min(stored)
        };
        self.buffers.push(Buffer {
            // A buffer whose start cannot be read is looked at where the one before it was.
            first_time: first_time.unwrap_or_else(|| {
                self.buffers
                    .last()
                    .map_or(self.clock.start_raw, |b| b.first_time)
            }),
            rank: self.buffers.len() as u32,
            file: 0,
            cpu: header.cpu,
            offset,
            stored,
            valid,
            compressed: header.is_compressed(),
            cut,
        });
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
    let frame = crate::record::frame(bytes).map_err(|_| NO_RECORD)?;
    let (Some(time), Some([_, _, kind @ (1 | 2), 0xc0, _, _, 0, 0])) =
        (frame.time, crate::bytes::array(bytes, 0))
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

/// The first bytes of a buffer.
#[derive(Default)]
struct Prefix {
    bytes: Vec<u8>,
    plain: Vec<u8>,
    index: Index,
}

impl Prefix {
    fn read(&mut self, source: &impl ReadAt, offset: u64) -> io::Result<&[u8]> {
        self.bytes.resize(PREFIX, 0);
        let n = source.read_at(offset, &mut self.bytes)?;
        self.bytes.truncate(n);
        Ok(&self.bytes)
    }

    /// The least raw time among the records that lie whole in the prefix, or that of the first one.
    fn first_time(&mut self, header: &BufferHeader) -> Option<i64> {
        let bytes = &self.bytes[..self.bytes.len().min(header.stored as usize)];
        let plain = if header.is_compressed() {
            self.plain
                .resize(PREFIX.min(header.valid as usize).max(HEADER), 0);
            let n = xpress::decompress(bytes.get(HEADER..)?, &mut self.plain[HEADER..]);
            &self.plain[..HEADER + n]
        } else {
            &bytes[..bytes.len().min(header.valid as usize)]
        };
        const NONE: i64 = i64::MIN;
        self.index.build(plain, NONE);
        self.index
            .first_time()
            .or_else(|| time_of_cut(plain.get(HEADER..)?))
    }
}
