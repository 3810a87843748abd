//! V3 to V5: objects of the FastSerialization container, one block each. V1 and V2: the events inside one object.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::io::Read;

use chronosym_types::{Cursor, GapCause};

use crate::blocks::LARGEST_BLOCK;
use crate::fault::{Fault, Parsed};
use crate::netperf::{self, MetadataForm};
use crate::walk::{Framing, NETPERF_REGION, Search, Stage, Step, Trouble, Walk};

mod tag {
    pub(super) const NULL_REFERENCE: u8 = 1;
    /// Netperf begins objects with this tag, nettrace with the next.
    pub(super) const BEGIN_OBJECT: u8 = 4;
    pub(super) const BEGIN_PRIVATE_OBJECT: u8 = 5;
    pub(super) const END_OBJECT: u8 = 6;
}

/// Longest type name that there is.
const LONGEST_NAME: usize = 38;

pub(crate) enum Object<'a> {
    Begin { name: &'a [u8], version: u32 },
    EndOfStream,
}

/// Reads what begins an object, up to its payload.
pub(crate) fn begin<'a>(cursor: &mut Cursor<'a>) -> Parsed<Object<'a>> {
    let first = cursor.u8()?;
    if first == tag::NULL_REFERENCE {
        return Ok(Object::EndOfStream);
    }
    let begins = |tag| matches!(tag, tag::BEGIN_OBJECT | tag::BEGIN_PRIVATE_OBJECT);
    if !begins(first) || !begins(cursor.u8()?) || cursor.u8()? != tag::NULL_REFERENCE {
        return Err(Fault::Bad);
    }
    let version = cursor.u32()?;
    let _least_reader_version = cursor.u32()?;
    let length = cursor.length()?;
    if length > LONGEST_NAME {
        return Err(Fault::Bad);
    }
    let name = cursor.take(length)?;
    end(cursor)?;
    Ok(Object::Begin { name, version })
}

pub(crate) fn end(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if cursor.u8()? == tag::END_OBJECT {
        Ok(())
    } else {
        Err(Fault::Bad)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    End,
    Events,
    Metadata,
    Stacks,
    SequencePoint,
    Unknown,
}

/// Reads an object's start, its block size and the padding after it.
fn block_start(cursor: &mut Cursor<'_>, base: u64) -> Parsed<(Kind, u32)> {
    let kind = match begin(cursor)? {
        Object::EndOfStream => return Ok((Kind::End, 0)),
        Object::Begin {
            name: b"EventBlock",
            ..
        } => Kind::Events,
        Object::Begin {
            name: b"MetadataBlock",
            ..
        } => Kind::Metadata,
        Object::Begin {
            name: b"StackBlock",
            ..
        } => Kind::Stacks,
        Object::Begin {
            name: b"SPBlock", ..
        } => Kind::SequencePoint,
        Object::Begin { .. } => Kind::Unknown,
    };
    let size = cursor.length()?;
    // The content begins at a stream offset that four divides.
    let padding = (base + cursor.position() as u64).wrapping_neg() & 3;
    cursor.take(padding as usize)?;
    Ok((kind, u32::try_from(size).map_err(|_| Fault::Bad)?))
}

/// Whether the object ends here and another, or the end of the stream, follows.
pub(crate) fn follows(mut cursor: Cursor<'_>) -> Parsed<()> {
    end(&mut cursor)?;
    match cursor.u8()? {
        tag::NULL_REFERENCE | tag::BEGIN_OBJECT | tag::BEGIN_PRIVATE_OBJECT => Ok(()),
        _ => Err(Fault::Bad),
    }
}

/// Looks for the start of an object of a known kind; `base` is the stream offset of `bytes`.
pub(crate) fn find(bytes: &[u8], from: usize, base: u64) -> Search {
    let rest = bytes.get(from..).unwrap_or_default();
    for (position, byte) in (from..).zip(rest) {
        if !matches!(*byte, tag::BEGIN_OBJECT | tag::BEGIN_PRIVATE_OBJECT) {
            continue;
        }
        match block_start(&mut Cursor::starting_at(bytes, position), base) {
            Ok((Kind::Unknown, _)) | Err(Fault::Bad) => {}
            Ok(_) => return Search::Found(position),
            Err(Fault::Short) => return Search::NotBefore(position),
        }
    }
    Search::NotBefore(bytes.len())
}

impl<R: Read> Walk<R> {
    pub(crate) fn object(&mut self) -> Step {
        self.mark();
        match self.read(block_start) {
            Ok((Kind::End, _)) => self.end_of_stream(),
            Ok((Kind::Events, size)) if self.framing == Framing::NetperfObjects => {
                if !self.may_be_block(size.into()) {
                    self.lose(GapCause::BadBlock);
                    return Step::Next;
                }
                self.stage = Stage::NetperfEvents(self.window.offset(self.at) + u64::from(size));
            }
            Ok((Kind::Events, size)) => self.open_blobs(size, false),
            Ok((Kind::Metadata, size)) => self.open_blobs(size, true),
            Ok((kind, size)) => return self.whole_block(kind, size),
            Err(Trouble::Cut) => self.cut(),
            Err(Trouble::Bad) => self.lose(GapCause::BadBlock),
        }
        Step::Next
    }

    /// A block that is read in one piece.
    fn whole_block(&mut self, kind: Kind, size: u32) -> Step {
        if matches!(kind, Kind::Unknown) {
            self.unknown_block(u64::from(size));
            return Step::Next;
        }
        let mut step = Step::Next;
        self.with_block(size, |decoder, block| match kind {
            Kind::SequencePoint => {
                step = Step::RegionEnd;
                decoder.sequence_point(block).is_ok()
            }
            _ => decoder.stacks(block),
        });
        step
    }

    pub(crate) fn end_tag(&mut self) -> Step {
        self.mark();
        match self.read(|cursor, _| end(cursor)) {
            Ok(()) => self.stage = Stage::Between,
            Err(Trouble::Cut) => self.cut(),
            Err(Trouble::Bad) => self.lose(GapCause::BadBlock),
        }
        Step::Next
    }

    /// The events of a V3 block that ends at the stream offset `block_end`.
    pub(crate) fn netperf_events(&mut self, block_end: u64) -> Step {
        self.mark();
        let offset = self.window.offset(self.at);
        if offset >= block_end {
            self.end_block();
            let enough = self.at >= NETPERF_REGION;
            return if enough {
                self.end_netperf_region()
            } else {
                Step::Next
            };
        }
        let left = block_end - offset;
        match self.read(|cursor, _| netperf::event_size(cursor)) {
            Ok(size) if size as u64 <= left => self.netperf_event(size, MetadataForm::Numbered),
            Ok(_) | Err(Trouble::Bad) => {
                self.leave_block(left, GapCause::BadRecord);
                Step::Next
            }
            Err(Trouble::Cut) => {
                self.lose(GapCause::BadRecord);
                Step::Next
            }
        }
    }

    /// An event of V1 or V2, or the end of them all.
    pub(crate) fn bare_event(&mut self, form: MetadataForm) -> Step {
        self.mark();
        if self.read(netperf::end).is_ok() {
            self.end_of_stream();
            return Step::Next;
        }
        match self.read(|cursor, _| netperf::event_size(cursor)) {
            Ok(size) if size <= LARGEST_BLOCK as usize => self.netperf_event(size, form),
            Err(Trouble::Cut) => {
                self.cut();
                Step::Next
            }
            Ok(_) | Err(Trouble::Bad) => {
                self.lose(GapCause::BadRecord);
                Step::Next
            }
        }
    }

    fn netperf_event(&mut self, size: usize, form: MetadataForm) -> Step {
        let end = self.at.saturating_add(size);
        if !self.window.fill_to(end) {
            // Where the size is wrong there may be more behind it.
            self.lose(GapCause::BadRecord);
            return Step::Next;
        }
        let offset = self.window.offset(self.at);
        if self
            .decoder
            .netperf_event(self.window.bytes(), self.at, end, offset, form)
            .is_err()
        {
            self.decoder.bad_record(offset, size);
        }
        self.at = end;
        if matches!(self.framing, Framing::Events(_)) && self.at >= NETPERF_REGION {
            return self.end_netperf_region();
        }
        Step::Next
    }

    fn end_netperf_region(&mut self) -> Step {
        self.decoder.end_tables();
        Step::RegionEnd
    }
}
