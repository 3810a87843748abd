//! Contents of blocks, read alike in all framings.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::io::Read;

use chronosym_types::{Cursor, GapCause};

use super::{Stage, Step, Walk};
use crate::decoder::{Decoder, Stop};
use crate::fault::Fault;
use crate::framing::LARGEST_BLOCK;

impl<R: Read> Walk<R> {
    /// Begins a block of events at its header.
    pub(crate) fn open_blobs(&mut self, size: u32, metadata: bool) {
        if !self.may_be_block(size.into()) {
            return self.lose(GapCause::BadBlock);
        }
        let end = self.window.offset(self.at) + u64::from(size);
        let opened = loop {
            let bytes = self.window.bytes();
            let mut cursor = Cursor::starting_at(bytes, self.at);
            match self.decoder.open_block(&mut cursor, size, end, metadata) {
                Ok(block) => {
                    self.at = cursor.position();
                    break Ok(block);
                }
                Err(Fault::Short) if self.window.read_more() => {}
                Err(fault) => break Err(fault),
            }
        };
        match opened {
            Ok(block) => self.stage = Stage::Blobs(Box::new(block)),
            Err(Fault::Short) => self.cut(),
            Err(Fault::Bad) => {
                self.decoder.damaged();
                self.leave_block(u64::from(size), GapCause::BadBlock);
            }
        }
    }

    /// Reads on in a block of events.
    pub(crate) fn blobs(&mut self) -> Step {
        let Stage::Blobs(block) = &mut self.stage else {
            return Step::Next;
        };
        let base = self.window.offset(0);
        let block_end = usize::try_from(block.end.saturating_sub(base)).unwrap_or(usize::MAX);
        let bytes = self.window.bytes();
        let whole = bytes.len() >= block_end;
        let readable = bytes.get(..block_end).unwrap_or(bytes);
        let (at, stop) = self.decoder.events(block, readable, self.at, whole, base);
        self.at = at;
        self.mark();
        match stop {
            Stop::Done => self.end_block(),
            Stop::Full => return Step::Full,
            Stop::NeedMore if self.window.read_more() => {}
            Stop::NeedMore => self.lose(GapCause::BadRecord),
            Stop::Bad => self.leave_block(block_end.saturating_sub(at) as u64, GapCause::BadRecord),
        }
        Step::Next
    }

    /// Passes a whole block to `read`, which returns whether it was valid.
    pub(crate) fn with_block(
        &mut self,
        size: u32,
        read: impl FnOnce(&mut Decoder, &mut Cursor<'_>) -> bool,
    ) {
        let end = self.at.saturating_add(size as usize);
        if size > LARGEST_BLOCK || !self.may_be_block(size.into()) || !self.window.fill_to(end) {
            return self.lose(GapCause::BadBlock);
        }
        let mut block = Cursor::new(self.window.bytes().get(self.at..end).unwrap_or_default());
        if read(&mut self.decoder, &mut block) {
            self.at = end;
            return self.end_block();
        }
        let left = block.remaining();
        self.at = end - left;
        self.mark();
        self.leave_block(left as u64, GapCause::BadBlock);
    }

    /// A block of a kind that a later version may have, or damage.
    pub(crate) fn unknown_block(&mut self, size: u64) {
        if self.may_be_block(size) {
            self.decoder.diagnostics.unknown_blocks += 1;
            self.step_over(size);
        } else {
            self.lose(GapCause::BadBlock);
        }
    }

    /// Handles the end mark. Bytes after it are ignored, unless there are blocks among them: zeros
    /// look like an end mark.
    pub(crate) fn end_of_stream(&mut self) {
        self.mark();
        if self.at < self.window.bytes().len() || self.window.read_more() {
            self.lose(GapCause::AfterEnd);
        } else {
            self.stage = Stage::Ended;
        }
    }
}
