//! Reads a stream from block to block.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

mod content;
mod objects;
mod search;
mod v6;

use std::io::Read;

use chronosym_types::{Cursor, Gap, GapCause, Window};

use crate::decoder::{Decoder, EventBlock};
use crate::fault::{Fault, Parsed};
use crate::framing::Framing;

/// A stream, the current position, and the decoded values.
pub(crate) struct Walk<R> {
    pub(crate) window: Window<R>,
    /// Position of the next bytes in the window.
    pub(crate) at: usize,
    pub(crate) decoder: Decoder,
    pub(crate) framing: Framing,
    pub(crate) stage: Stage,
    /// Stream offset up to which everything has been used.
    used_to: u64,
}

/// The state of the reader.
pub(crate) enum Stage {
    /// Before a block, an object, or in V1 and V2 an event.
    Between,
    /// In a block of events or metadata events, V4 and later.
    Blobs(Box<EventBlock>),
    /// In a V3 block of events that ends at this stream offset.
    NetperfEvents(u64),
    /// Before an object's end tag.
    EndTag,
    /// Looking for the next block after damage of this kind.
    Lost(GapCause),
    /// After the last readable value.
    Ended,
}

pub(crate) enum Step {
    Next,
    /// A sequence point was passed, or a region reached a natural size in a format without them.
    RegionEnd,
    /// The region reached its limit.
    Full,
}

impl<R: Read> Walk<R> {
    pub(crate) fn new(window: Window<R>, at: usize, decoder: Decoder, framing: Framing) -> Self {
        Self {
            window,
            at,
            decoder,
            framing,
            stage: Stage::Between,
            used_to: 0,
        }
    }

    /// Reads something small, and no more bytes of the stream than it takes. [`Fault::Short`]: the
    /// stream ends inside.
    pub(crate) fn read<T>(
        &mut self,
        read: impl Fn(&mut Cursor<'_>, u64) -> Parsed<T>,
    ) -> Parsed<T> {
        loop {
            let mut cursor = Cursor::starting_at(self.window.bytes(), self.at);
            match read(&mut cursor, self.aligned_base()) {
                Ok(value) => {
                    self.at = cursor.position();
                    return Ok(value);
                }
                Err(Fault::Short) if self.window.read_more() => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Offset of the window's first byte in the file as it was written, modulo four.
    pub(crate) fn aligned_base(&self) -> u64 {
        self.window.offset(0) + self.decoder.shift
    }

    /// Everything before the position has been used.
    pub(crate) fn mark(&mut self) {
        self.used_to = self.window.offset(self.at);
    }

    /// Ends reading at a truncated end of the stream: unused bytes are lost.
    pub(crate) fn cut(&mut self) {
        self.at = self.window.bytes().len();
        self.gap_to(self.window.end_offset(), GapCause::CutShort);
        self.stage = Stage::Ended;
    }

    /// Records the bytes between the last used one and `end` as lost.
    fn gap_to(&mut self, end: u64, cause: GapCause) {
        let length = end.saturating_sub(self.used_to);
        let gap = Gap::new(self.used_to, length, cause);
        self.decoder.diagnostics.gaps.add(gap);
        if cause != GapCause::AfterEnd {
            self.decoder.missing();
        }
        self.used_to = end;
    }

    /// Skips unused bytes, and searches for the next block from here on: nothing is read twice.
    pub(crate) fn lose(&mut self, cause: GapCause) {
        self.decoder.lost();
        self.stage = Stage::Lost(cause);
    }

    /// Skips the rest of a block, `size` bytes, without reading more of it into memory.
    pub(crate) fn step_over(&mut self, size: u64) {
        let held = self.window.bytes().len() - self.at;
        if let Some(size) = usize::try_from(size).ok().filter(|size| *size <= held) {
            self.at += size;
        } else if self.window.drop_bytes(self.at, size) < size {
            return self.cut();
        }
        self.end_block();
    }

    /// After a block's last byte.
    pub(crate) fn end_block(&mut self) {
        self.stage = if self.framing == Framing::Blocks {
            Stage::Between
        } else {
            Stage::EndTag
        };
    }
}
