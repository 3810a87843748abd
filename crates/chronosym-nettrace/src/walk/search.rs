//! Distinguishes blocks from bytes that look like one, and finds the next block after damage.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::io::Read;

use chronosym_types::{Cursor, GapCause};

use super::{Stage, Step, Walk};
use crate::fault::{Fault, Parsed};
use crate::framing::{Framing, NETTRACE, Search};
use crate::{blocks, objects};

/// How far ahead of damage the end of its block is looked for: real blocks stay below 1 MB.
const FARTHEST_LOOK: usize = 16 << 20;

impl<R: Read> Walk<R> {
    /// Skips the rest of a block, `size` bytes, if another block follows it. If not, the size is
    /// wrong, and the next block is looked for.
    pub(crate) fn leave_block(&mut self, size: u64, cause: GapCause) {
        if !self.is_block_end(size) {
            return self.lose(cause);
        }
        self.step_over(size);
        self.gap_to(self.window.offset(self.at), cause);
    }

    /// Checks whether a block that starts here may be `size` bytes long: the bytes after it may
    /// follow a block, or at least no other block starts inside. This is checked before the block
    /// is read, since any bytes can be decoded as events.
    pub(crate) fn may_be_block(&mut self, size: u64) -> bool {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let end = self.at + size.min(FARTHEST_LOOK);
        let is_there = self.window.fill_to(end) && size <= FARTHEST_LOOK;
        is_there && !matches!(self.follows(end), Err(Fault::Bad)) || !self.is_block_before(end)
    }

    /// Returns whether no block ends `size` bytes from here: other bytes follow.
    pub(crate) fn is_no_block_end(&mut self, size: u64) -> bool {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let end = self.at.saturating_add(size);
        size <= FARTHEST_LOOK
            && self.window.fill_to(end)
            && matches!(self.follows(end), Err(Fault::Bad))
    }

    /// Checks whether a block ends `size` bytes from here, by the bytes that follow.
    pub(crate) fn is_block_end(&mut self, size: u64) -> bool {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > FARTHEST_LOOK || !self.window.fill_to(self.at + size) {
            return false;
        }
        let mut end = self.at + size;
        loop {
            match self.follows(end) {
                Ok(None) => return true,
                // The content of unknown blocks is not checked.
                Ok(Some(further)) if further.saturating_sub(self.at) <= FARTHEST_LOOK => {
                    end = further;
                }
                Err(Fault::Short) if self.window.read_more() => {}
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Returns whether a block may end at a position; the end of the block after it if its kind is
    /// unknown.
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
                objects::find(bytes, from, self.aligned_base())
            }
        }
    }

    /// Checks whether a block starts between here and a position, within the window.
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

    /// Looks for the next block after damage.
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

    /// Returns whether a block found after an end mark belongs to a trace that was appended to this
    /// one.
    fn is_another_trace(&self, cause: GapCause, position: usize) -> bool {
        let end_mark = self.used_to.saturating_sub(self.window.offset(0));
        let between = usize::try_from(end_mark)
            .ok()
            .and_then(|from| self.window.bytes().get(from..position));
        cause == GapCause::AfterEnd
            && between
                .is_none_or(|between| between.windows(NETTRACE.len()).any(|it| it == NETTRACE))
    }

    /// At the end of the stream: bytes that are too few for a block are not one.
    fn search_rest(&mut self, cause: GapCause) {
        if self.at < self.window.bytes().len() {
            self.at += 1;
        } else if cause == GapCause::AfterEnd {
            self.skip_rest();
        } else {
            self.cut();
        }
    }

    /// Skips everything up to the end of the stream without holding it.
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
}
