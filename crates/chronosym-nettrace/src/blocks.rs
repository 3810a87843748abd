//! V6: blocks of a size and a kind.

use std::io::Read;

use chronosym_types::Cursor;

use crate::decoder::Decoder;
use crate::walk::{Stage, Step, Trouble, Walk};

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const EVENTS: u8 = 2;
    pub(super) const METADATA: u8 = 3;
    pub(super) const SEQUENCE_POINT: u8 = 4;
    pub(super) const STACKS: u8 = 5;
    pub(super) const THREADS: u8 = 6;
    pub(super) const REMOVED_THREADS: u8 = 7;
    pub(super) const LABELS: u8 = 8;
}

/// Larger blocks than this, event blocks aside, are not read: real ones stay below 1 MB.
pub(crate) const LARGEST_BLOCK: u32 = 256 << 20;

impl<R: Read> Walk<R> {
    pub(crate) fn block(&mut self) -> Step {
        self.mark();
        let word = match self.read(|cursor, _| Ok(cursor.u32()?)) {
            Ok(word) => word,
            Err(Trouble::Cut | Trouble::Bad) => {
                self.cut();
                return Step::Next;
            }
        };
        let (size, block_kind) = (word & 0xff_ffff, (word >> 24) as u8);
        let read: fn(&mut Decoder, &mut Cursor<'_>) -> bool = match block_kind {
            kind::END => {
                self.end_of_stream();
                return Step::Next;
            }
            kind::EVENTS => {
                self.open_blobs(size, false);
                return Step::Next;
            }
            kind::METADATA => |decoder, block| decoder.metadata_rows(block).is_ok(),
            kind::SEQUENCE_POINT => |decoder, block| decoder.sequence_point(block).is_ok(),
            kind::STACKS => Decoder::stacks,
            kind::THREADS => |decoder, block| decoder.thread_rows(block).is_ok(),
            kind::REMOVED_THREADS => |decoder, block| decoder.removed_threads(block).is_ok(),
            kind::LABELS => |decoder, block| decoder.labels(block).is_ok(),
            _ => {
                self.decoder.diagnostics.unknown_blocks += 1;
                self.step_over(u64::from(size));
                return Step::Next;
            }
        };
        self.with_block(size, read);
        if block_kind == kind::SEQUENCE_POINT {
            Step::RegionEnd
        } else {
            Step::Next
        }
    }

    /// Hands a whole block to `read`, which tells whether it was sound.
    pub(crate) fn with_block(
        &mut self,
        size: u32,
        read: impl FnOnce(&mut Decoder, &mut Cursor<'_>) -> bool,
    ) {
        if size > LARGEST_BLOCK {
            self.decoder.diagnostics.bad_blocks += 1;
            self.decoder.diagnostics.bad_bytes += u64::from(size);
            return self.step_over(u64::from(size));
        }
        let end = self.at + size as usize;
        if !self.window.fill_to(end) {
            self.cut();
            return;
        }
        let mut block = Cursor::new(&self.window.bytes()[self.at..end]);
        if !read(&mut self.decoder, &mut block) {
            self.decoder.diagnostics.bad_blocks += 1;
            self.decoder.diagnostics.bad_bytes += block.remaining() as u64;
        }
        self.at = end;
        self.end_block();
    }

    /// After the end mark: whatever still follows is counted.
    pub(crate) fn end_of_stream(&mut self) {
        self.stage = Stage::Ended;
        let mut trailing = (self.window.bytes().len() - self.at) as u64;
        let position = self.window.bytes().len();
        while self.window.fill_to(position + 1) {
            let more = (self.window.bytes().len() - position) as u64;
            self.window.drop_bytes(position, more);
            trailing += more;
        }
        self.decoder.diagnostics.trailing_bytes = trailing;
    }
}
