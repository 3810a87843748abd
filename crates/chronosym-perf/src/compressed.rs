//! Compressed records: zstd streams in parts, which are never finished: one in a file, and one for
//! each thread of `perf record --threads`.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read and unpacked, and sizes that three bytes of a header hold"
)]

use std::collections::VecDeque;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use chronosym_types::ByteOrder;

use crate::raw::RawRecord;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Most bytes of a frame's header, and of a block's.
const FRAME_HEADER: usize = 18;
const BLOCK_HEADER: usize = 3;
/// An empty last block of a frame, and space for the frame's checksum.
const LAST_BLOCK: [u8; BLOCK_HEADER + CHECKSUM] = [1, 0, 0, 0, 0, 0, 0];
const CHECKSUM: usize = 4;
/// Most decompressed bytes per compressed byte, and in any case. Real recordings stay below 20.
const MAX_EXPANSION: u64 = 200;
const FREE_EXPANSION: u64 = 64 << 20;

#[derive(Default)]
pub(crate) struct Unpacker {
    decoder: FrameDecoder,
    in_frame: bool,
    /// Bytes of the checksum after the frame's last block.
    checksum: usize,
    /// Bytes the decoder retains for back-references, if the frame states it.
    window: Option<u64>,
    /// Whether it retains that many, and not fewer.
    is_window_full: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of the output that have been consumed.
    used: usize,
    total_in: u64,
    total_out: u64,
    /// Positions in the output at which the recorder ended a round.
    marks: VecDeque<u64>,
    /// Positions in the output at which a stream ended and the next one began.
    ends: VecDeque<u64>,
    /// Set once the stream is corrupt; later input is counted only.
    is_broken: bool,
    pub(crate) bad_bytes: u64,
}

/// The next item of the decompressed stream.
pub(crate) enum Unpacked {
    /// A whole record of this size is first in [`Unpacker::output`].
    Record(usize),
    /// A round ended here.
    Mark,
    /// More input is needed.
    Nothing,
}

impl Unpacker {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if bytes.starts_with(&MAGIC) {
            self.begin_stream();
        }
        if self.is_broken {
            self.bad_bytes += bytes.len() as u64;
        } else {
            self.input.extend_from_slice(bytes);
            self.total_in += bytes.len() as u64;
        }
    }

    /// Ends the stream before. The recorder ends a block with each record: no block starts with the
    /// magic number, which would be its size.
    fn begin_stream(&mut self) {
        self.finish();
        while self.decode_block() {}
        if !self.output().is_empty() {
            self.ends.push_back(self.total_out);
        }
        self.bad_bytes += self.input.len() as u64;
        self.input.clear();
        (self.in_frame, self.is_broken) = (false, false);
    }

    /// Drops the rest of a stream that does not have a whole record of `size` bytes. Returns
    /// whether a stream ended here.
    fn end_stream(&mut self, done: u64, size: Option<usize>) -> bool {
        let Some(left) = self.ends.front().map(|end| end.saturating_sub(done)) else {
            return false;
        };
        let has_header = left >= RawRecord::HEADER as u64;
        if has_header && size.is_none_or(|size| size as u64 <= left) {
            return false;
        }
        self.bad_bytes += left;
        self.advance(usize::try_from(left).unwrap_or_default());
        self.ends.pop_front();
        true
    }

    /// Returns whether any record was compressed.
    pub(crate) fn is_used(&self) -> bool {
        self.total_in > 0
    }

    /// Marks the end of a round; false if no output is pending. As long as the decoder's window is
    /// not full the position of the end is unknown, and the mark is dropped: its round becomes
    /// longer.
    pub(crate) fn mark(&mut self) -> bool {
        if !self.in_frame && self.input.is_empty() && self.output.is_empty() {
            return false;
        }
        if let (true, true, Some(window)) =
            (self.is_window_full, self.input.is_empty(), self.window)
        {
            self.marks.push_back(self.total_out + window);
        }
        true
    }

    pub(crate) fn output(&self) -> &[u8] {
        self.output.get(self.used..).unwrap_or_default()
    }

    /// Consumes the first `count` bytes of the output.
    pub(crate) fn advance(&mut self, count: usize) {
        self.used += count;
    }

    pub(crate) fn next(&mut self, order: ByteOrder) -> Unpacked {
        loop {
            let done = self.total_out - self.output().len() as u64;
            if self.marks.front().is_some_and(|&mark| mark <= done) {
                self.marks.pop_front();
                return Unpacked::Mark;
            }
            let size = RawRecord::size(self.output(), order);
            if self.end_stream(done, size) {
                continue;
            }
            match size {
                Some(size) if size < RawRecord::HEADER => {
                    self.give_up();
                    return Unpacked::Nothing;
                }
                Some(size) if size <= self.output().len() => return Unpacked::Record(size),
                _ => {}
            }
            self.output.drain(..self.used);
            self.used = 0;
            if !self.decode_block() {
                return Unpacked::Nothing;
            }
        }
    }

    /// Ends the input and flushes the decoder.
    pub(crate) fn finish(&mut self) {
        if self.in_frame && !self.is_broken {
            // An incomplete block is lost.
            self.bad_bytes += self.input.len() as u64;
            self.input.clear();
            let end = LAST_BLOCK.iter().take(BLOCK_HEADER + self.checksum);
            self.input.extend(end);
        }
    }

    /// Bytes left at the end: an incomplete record or frame.
    pub(crate) fn leftover(&self) -> u64 {
        (self.output().len() + self.input.len()) as u64
    }

    fn give_up(&mut self) {
        self.bad_bytes += self.leftover();
        self.is_broken = true;
        self.input = Vec::new();
        self.output = Vec::new();
        self.used = 0;
    }

    /// Decodes one block; false if it is incomplete or corrupt.
    fn decode_block(&mut self) -> bool {
        match self.try_block() {
            Some(used) => {
                self.input.drain(..used);
                used > 0
            }
            None => {
                self.give_up();
                false
            }
        }
    }

    /// Bytes of input consumed, 0 if there are too few; `None` if they are corrupt.
    fn try_block(&mut self) -> Option<usize> {
        if self.is_broken {
            return Some(0);
        }
        if !self.in_frame {
            if self.input.len() < FRAME_HEADER {
                return Some(0);
            }
            (self.window, self.checksum) = frame(&self.input)?;
            let mut rest = self.input.as_slice();
            self.decoder.reset(&mut rest).ok()?;
            (self.in_frame, self.is_window_full) = (true, false);
            return Some(self.input.len() - rest.len());
        }
        let Some(&[low, middle, high]) = self.input.first_chunk::<BLOCK_HEADER>() else {
            return Some(0);
        };
        let header = u32::from_le_bytes([low, middle, high, 0]);
        const RUN: u32 = 1;
        let size = if (header >> 1) & 3 == RUN {
            1
        } else {
            (header >> 3) as usize
        };
        let size = BLOCK_HEADER + size + if header & 1 == 0 { 0 } else { self.checksum };
        if self.input.len() < size {
            return Some(0);
        }
        let mut rest = self.input.as_slice();
        let strategy = BlockDecodingStrategy::UptoBlocks(1);
        let finished = self.decoder.decode_blocks(&mut rest, strategy).ok()?;
        let collected = self.decoder.collect_to_writer(&mut self.output).ok()? as u64;
        self.total_out += collected;
        self.is_window_full |= collected > 0;
        if finished {
            (self.in_frame, self.is_window_full) = (false, false);
        }
        let allowed = self.total_in.saturating_mul(MAX_EXPANSION);
        (self.total_out <= allowed.saturating_add(FREE_EXPANSION)).then_some(size)
    }
}

/// Returns the window size of a frame, by its header, and the size of its checksum.
fn frame(header: &[u8]) -> Option<(Option<u64>, usize)> {
    const SINGLE_SEGMENT: u8 = 1 << 5;
    const HAS_CHECKSUM: u8 = 1 << 2;
    let &[descriptor, window] = header.strip_prefix(&MAGIC)?.first_chunk()?;
    let base = 1u64 << (10 + (window >> 3));
    let window = base + base / 8 * u64::from(window & 7);
    let checksum = if descriptor & HAS_CHECKSUM == 0 {
        0
    } else {
        CHECKSUM
    };
    Some((
        (descriptor & SINGLE_SEGMENT == 0).then_some(window),
        checksum,
    ))
}
