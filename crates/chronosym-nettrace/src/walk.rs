//! The way through a stream, from block to block.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::io::Read;

use chronosym_types::{Cursor, Gap, GapCause, Window};

use crate::blocks;
use crate::decoder::{Decoder, EventBlock, Stop};
use crate::fault::{Fault, Parsed};
use crate::netperf::MetadataForm;
use crate::objects;
use crate::open::NETTRACE;

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
    /// Looking for the next block behind damage of this kind.
    Lost(GapCause),
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

/// What the search for the next block comes to.
pub(crate) enum Search {
    /// One begins at this position.
    Found(usize),
    /// None begins before this position; from there on more bytes are needed to say.
    NotBefore(usize),
}

/// How far ahead of damage the end of its block is looked for: real blocks stay below 1 MB.
const FARTHEST_LOOK: usize = 16 << 20;

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

    /// Ends the read where the stream ended too early: what has not been used is lost.
    pub(crate) fn cut(&mut self) {
        self.at = self.window.bytes().len();
        self.gap_to(self.window.end_offset(), GapCause::CutShort);
        self.stage = Stage::Ended;
    }

    /// What lies between the last that was used and `end` is lost.
    fn gap_to(&mut self, end: u64, cause: GapCause) {
        let length = end.saturating_sub(self.used_to);
        let gap = Gap::new(self.used_to, length, cause);
        self.decoder.diagnostics.gaps.add(gap);
        self.used_to = end;
    }

    /// Gives up what has not been used, and looks for the next block from here on: nothing is read twice.
    pub(crate) fn lose(&mut self, cause: GapCause) {
        self.decoder.lost();
        self.stage = Stage::Lost(cause);
    }

    /// Leaves out the rest of a block, `size` bytes from here on, if the next one begins behind it. If not, the size is
    /// wrong, and the next block is looked for.
    pub(crate) fn leave_block(&mut self, size: u64, cause: GapCause) {
        if !self.is_block_end(size) {
            return self.lose(cause);
        }
        self.step_over(size);
        self.gap_to(self.window.offset(self.at), cause);
    }

    /// Whether a block that begins here may be `size` bytes long: what follows it is what follows blocks, or at least no
    /// other block begins inside. It has to be seen before it is read, since events can be read out of any bytes.
    pub(crate) fn may_be_block(&mut self, size: u64) -> bool {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let end = self.at + size.min(FARTHEST_LOOK);
        let is_there = self.window.fill_to(end) && size <= FARTHEST_LOOK;
        is_there && !matches!(self.follows(end), Err(Fault::Bad)) || !self.is_block_before(end)
    }

    /// Whether a block ends `size` bytes from here, by what follows.
    fn is_block_end(&mut self, size: u64) -> bool {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > FARTHEST_LOOK || !self.window.fill_to(self.at + size) {
            return false;
        }
        let mut end = self.at + size;
        loop {
            match self.follows(end) {
                Ok(None) => return true,
                // What unknown blocks hold is not looked at.
                Ok(Some(further)) if further.saturating_sub(self.at) <= FARTHEST_LOOK => {
                    end = further;
                }
                Err(Fault::Short) if self.window.read_more() => {}
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Whether what follows a block stands at a position; where the next one ends if nothing is known of it.
    fn follows(&self, end: usize) -> Parsed<Option<usize>> {
        let cursor = Cursor::starting_at(self.window.bytes(), end);
        match self.framing {
            Framing::Blocks => blocks::follows(cursor),
            _ => objects::follows(cursor).map(|()| None),
        }
    }

    fn search(&self, from: usize) -> Search {
        let bytes = self.window.bytes();
        match self.framing {
            // Bare events have nothing to find them by.
            Framing::Events(_) => Search::NotBefore(bytes.len()),
            Framing::Blocks => blocks::find(bytes, from),
            Framing::NetperfObjects | Framing::Objects => {
                objects::find(bytes, from, self.window.offset(0))
            }
        }
    }

    /// Whether a block begins between here and a position, in what is in the window.
    fn is_block_before(&self, end: usize) -> bool {
        let mut from = self.at;
        while from < end.min(self.window.bytes().len()) {
            match self.search(from) {
                Search::Found(position) => return position < end,
                Search::NotBefore(position) => from = position + 1,
            }
        }
        false
    }

    /// Looks for the next block behind damage.
    pub(crate) fn find(&mut self, cause: GapCause) -> Step {
        match self.search(self.at) {
            Search::Found(position) if !self.is_another_trace(cause, position) => {
                self.at = position;
                let cause = match cause {
                    GapCause::AfterEnd => GapCause::NoBlock,
                    cause => cause,
                };
                self.gap_to(self.window.offset(position), cause);
                self.stage = Stage::Between;
            }
            Search::Found(_) => self.skip_rest(),
            Search::NotBefore(position) => {
                self.at = position;
                if !self.window.read_more() {
                    self.search_rest(cause);
                }
            }
        }
        Step::Next
    }

    /// Steps over what is part of nothing, up to the end of the stream, without holding it.
    fn skip_rest(&mut self) {
        let position = self.window.bytes().len();
        while self.window.fill_to(position + 1) {
            let more = (self.window.bytes().len() - position) as u64;
            self.window.drop_bytes(position, more);
        }
        self.at = position;
        self.gap_to(self.window.end_offset(), GapCause::AfterEnd);
        self.stage = Stage::Ended;
    }

    /// Whether a block found behind an end mark is of a trace that was appended to this one.
    fn is_another_trace(&self, cause: GapCause, position: usize) -> bool {
        let end_mark = self.used_to.saturating_sub(self.window.offset(0));
        let between = usize::try_from(end_mark)
            .ok()
            .and_then(|from| self.window.bytes().get(from..position));
        cause == GapCause::AfterEnd
            && between
                .is_none_or(|between| between.windows(NETTRACE.len()).any(|it| it == NETTRACE))
    }

    /// At the end of the stream: what needed more bytes to be known for a block is none.
    fn search_rest(&mut self, cause: GapCause) {
        if self.at < self.window.bytes().len() {
            self.at += 1;
        } else if cause == GapCause::AfterEnd {
            self.skip_rest();
        } else {
            self.cut();
        }
    }

    /// Steps over what is left of a block, `size` bytes, without holding more than is there already.
    pub(crate) fn step_over(&mut self, size: u64) {
        let held = self.window.bytes().len() - self.at;
        if let Some(size) = usize::try_from(size).ok().filter(|size| *size <= held) {
            self.at += size;
        } else if self.window.drop_bytes(self.at, size) < size {
            return self.cut();
        }
        self.end_block();
    }

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
}
