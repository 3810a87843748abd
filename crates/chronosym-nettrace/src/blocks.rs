//! V6: blocks of a size and a kind.

use chronosym_types::Cursor;

use crate::fault::{Fault, Parsed};
use crate::framing::Search;

pub(crate) mod kind {
    pub(crate) const END: u8 = 0;
    pub(crate) const EVENTS: u8 = 2;
    pub(crate) const METADATA: u8 = 3;
    pub(crate) const SEQUENCE_POINT: u8 = 4;
    pub(crate) const STACKS: u8 = 5;
    pub(crate) const THREADS: u8 = 6;
    pub(crate) const REMOVED_THREADS: u8 = 7;
    pub(crate) const LABELS: u8 = 8;
}

/// The header of a block.
#[derive(Clone, Copy)]
pub(crate) struct BlockHeader {
    pub(crate) size: u32,
    pub(crate) kind: u8,
}

impl BlockHeader {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Parsed<Self> {
        let [a, b, c, kind] = cursor.array()?;
        let size = u32::from_le_bytes([a, b, c, 0]);
        Ok(Self { size, kind })
    }

    fn is_known(self) -> bool {
        matches!(self.kind, kind::EVENTS..=kind::LABELS)
    }

    /// Checks whether the content may be the start of a block of a known kind.
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

/// Checks whether a block or the end of the stream may start here. For an unknown kind, returns the
/// start of the next block.
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
