//! The way through a stream, from block to block.

use std::io::Read;

use chronosym_types::Cursor;

use crate::decoder::{Decoder, EventBlock, Stop};
use crate::diagnostics::Truncation;
use crate::fault::{Fault, Parsed};
use crate::netperf::MetadataForm;
use crate::window::Window;

/// A stream that is read, how far, and what was read of it.
pub(crate) struct Walk<R> {
    pub(crate) window: Window<R>,
    /// Position in the window of what comes next.
    pub(crate) at: usize,
    pub(crate) decoder: Decoder,
    pub(crate) framing: Framing,
    pub(crate) stage: Stage,
    /// Stream offset up to which everything has been used.
    used_to: u64,
}

/// How a file is cut into pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// V1, V2: one event after the other.
    Events(MetadataForm),
    /// V3: objects with blocks of netperf events.
    NetperfObjects,
    /// V4: objects with blocks.
    Objects,
    /// V6: blocks.
    Blocks,
}

/// Where in the file the reader stands.
pub(crate) enum Stage {
    /// Before a block, an object, or in V1 and V2 an event.
    Between,
    /// In a block of events or metadata events, V4 and later.
    Blobs(Box<EventBlock>),
    /// In a V3 block of events that ends at this stream offset.
    NetperfEvents(u64),
    /// Before an object's end tag.
    EndTag,
    /// Looking for the next object after damage.
    Lost,
    /// After the last thing that could be read.
    Ended,
}

pub(crate) enum Step {
    Next,
    /// A sequence point was passed, or a region reached a natural size in a format without them.
    RegionEnd,
    /// The region reached its limit.
    Full,
}

/// Why something was not read.
pub(crate) enum Trouble {
    /// The stream ends inside.
    Cut,
    /// It is not what it should be.
    Bad,
}

/// Netperf is in time order as it stands: any size of region will do.
pub(crate) const NETPERF_REGION: usize = 1 << 20;

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

    /// Reads something small; the stream is asked for no more bytes than it takes.
    pub(crate) fn read<T>(
        &mut self,
        read: impl Fn(&mut Cursor<'_>, u64) -> Parsed<T>,
    ) -> Result<T, Trouble> {
        loop {
            let mut cursor = Cursor::starting_at(self.window.bytes(), self.at);
            match read(&mut cursor, self.window.offset(0)) {
                Ok(value) => {
                    self.at = cursor.position();
                    return Ok(value);
                }
                Err(Fault::Short) if self.window.read_more() => {}
                Err(Fault::Short) => return Err(Trouble::Cut),
                Err(Fault::Bad) => return Err(Trouble::Bad),
            }
        }
    }

    /// Everything before the position has been used.
    pub(crate) fn mark(&mut self) {
        self.used_to = self.window.offset(self.at);
    }

    /// Ends the read where the stream ended too early.
    pub(crate) fn cut(&mut self) {
        let bytes_lost = self.window.end_offset() - self.used_to;
        self.at = self.window.bytes().len();
        self.decoder.diagnostics.truncation = Some(Truncation {
            at_offset: self.used_to,
            bytes_lost,
        });
        self.stage = Stage::Ended;
    }

    /// Ends the read where nothing more can be found, although the stream goes on.
    pub(crate) fn give_up(&mut self) {
        let position = self.window.bytes().len();
        while self.window.fill_to(position + 1) {
            let more = (self.window.bytes().len() - position) as u64;
            self.window.drop_bytes(position, more);
        }
        self.decoder.diagnostics.bad_bytes += self.window.end_offset() - self.used_to;
        self.cut();
    }

    /// Counts bytes that are stepped over because nothing can be made of them.
    pub(crate) fn give_up_to(&mut self, position: usize) {
        self.decoder.diagnostics.bad_bytes += position.saturating_sub(self.at) as u64;
        self.at = position;
    }

    /// Steps over what is left of a block, `size` bytes, without holding more than is there already.
    pub(crate) fn step_over(&mut self, size: u64) {
        let held = self.window.bytes().len() - self.at;
        if size <= held as u64 {
            self.at += size as usize;
        } else if !self.window.drop_bytes(self.at, size) {
            return self.cut();
        }
        self.end_block();
    }

    /// Begins a block of events at its header.
    pub(crate) fn open_blobs(&mut self, size: u32, metadata: bool) {
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
                self.decoder.diagnostics.bad_blocks += 1;
                self.decoder.diagnostics.bad_bytes += u64::from(size);
                self.step_over(u64::from(size));
            }
        }
    }

    /// After a block's last byte.
    pub(crate) fn end_block(&mut self) {
        self.stage = if self.framing == Framing::Blocks {
            Stage::Between
        } else {
            Stage::EndTag
        };
    }

    /// Reads on in a block of events.
    pub(crate) fn blobs(&mut self) -> Step {
        let Stage::Blobs(block) = &mut self.stage else {
            return Step::Next;
        };
        let base = self.window.offset(0);
        let block_end = (block.end - base) as usize;
        let bytes = self.window.bytes();
        let whole = bytes.len() >= block_end;
        let readable = &bytes[..block_end.min(bytes.len())];
        let (at, stop) = self.decoder.events(block, readable, self.at, whole, base);
        self.at = at;
        self.mark();
        match stop {
            Stop::Done => self.end_block(),
            Stop::Full => return Step::Full,
            Stop::NeedMore if self.window.read_more() => {}
            Stop::NeedMore => self.cut(),
            Stop::Bad => {
                self.decoder.diagnostics.bad_records += 1;
                let left = (block_end - at) as u64;
                self.decoder.diagnostics.bad_bytes += left;
                self.step_over(left);
            }
        }
        Step::Next
    }
}
