//! V6: blocks of a size and a kind.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::io::Read;

use chronosym_types::{Cursor, GapCause};

use crate::decoder::Decoder;
use crate::fault::{Fault, Parsed};
use crate::walk::{Search, Stage, Step, Trouble, Walk};

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

/// What stands before a block.
#[derive(Clone, Copy)]
struct BlockHeader {
    size: u32,
    kind: u8,
}

impl BlockHeader {
    fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
        let [a, b, c, kind] = cursor.array()?;
        let size = u32::from_le_bytes([a, b, c, 0]);
        Ok(Self { size, kind })
    }

    fn is_known(self) -> bool {
        matches!(self.kind, kind::EVENTS..=kind::LABELS)
    }

    /// Whether a block of a known kind may begin with what follows.
    fn suits(self, content: Cursor<'_>) -> Parsed<()> {
        const SEQUENCE_POINT: u32 = 16;
        const IDS_AND_COUNT: u32 = 8;
        let mut content = content;
        let fits = match self.kind {
            kind::EVENTS => (20..=self.size).contains(&content.u16()?.into()),
            kind::METADATA | kind::THREADS => {
                u32::from(content.u16()?) <= self.size.saturating_sub(2)
            }
            kind::SEQUENCE_POINT => self.size >= SEQUENCE_POINT,
            kind::STACKS | kind::LABELS => self.size >= IDS_AND_COUNT,
            _ => self.size >= 2,
        };
        if fits { Ok(()) } else { Err(Fault::Bad) }
    }
}

/// Whether a block or the end of the stream may begin here; where the one after it does if its kind is unknown.
pub(crate) fn follows(mut cursor: Cursor<'_>) -> Parsed<Option<usize>> {
    let header = BlockHeader::read(&mut cursor)?;
    if header.is_known() {
        header.suits(cursor)?;
    } else if header.kind != kind::END {
        return Ok(Some(cursor.position().saturating_add(header.size as usize)));
    } else if header.size != 0 {
        return Err(Fault::Bad);
    }
    Ok(None)
}

/// Looks for blocks that follow each other: four bytes alone look like a header too easily.
pub(crate) fn find(bytes: &[u8], from: usize) -> Search {
    for position in from..bytes.len() {
        match chain(Cursor::starting_at(bytes, position)) {
            Ok(()) => return Search::Found(position),
            Err(Fault::Short) => return Search::NotBefore(position),
            Err(Fault::Bad) => {}
        }
    }
    Search::NotBefore(bytes.len())
}

/// Three blocks of known kinds, or fewer with events among them and then the end of the stream.
fn chain(mut cursor: Cursor<'_>) -> Parsed<()> {
    let mut has_events = false;
    for _ in 0..3 {
        let header = BlockHeader::read(&mut cursor)?;
        if header.kind == kind::END && header.size == 0 && has_events && cursor.is_at_end() {
            return Ok(());
        }
        if !header.is_known() {
            return Err(Fault::Bad);
        }
        header.suits(cursor)?;
        cursor.take(header.size as usize)?;
        has_events |= header.kind == kind::EVENTS;
    }
    Ok(())
}

impl<R: Read> Walk<R> {
    pub(crate) fn block(&mut self) -> Step {
        self.mark();
        let header = match self.read(|cursor, _| BlockHeader::read(cursor)) {
            Ok(header) => header,
            Err(Trouble::Cut | Trouble::Bad) => {
                self.cut();
                return Step::Next;
            }
        };
        let size = header.size;
        let read: fn(&mut Decoder, &mut Cursor<'_>) -> bool = match header.kind {
            kind::END if size == 0 => {
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
                self.unknown_block(u64::from(size));
                return Step::Next;
            }
        };
        self.with_block(size, read);
        if header.kind == kind::SEQUENCE_POINT {
            Step::RegionEnd
        } else {
            Step::Next
        }
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

    /// Hands a whole block to `read`, which tells whether it was sound.
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

    /// After the end mark. What follows it is part of nothing, unless blocks are among it: zeros look like an end mark.
    pub(crate) fn end_of_stream(&mut self) {
        self.mark();
        if self.at < self.window.bytes().len() || self.window.read_more() {
            self.lose(GapCause::AfterEnd);
        } else {
            self.stage = Stage::Ended;
        }
    }
}
