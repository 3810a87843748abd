//! V3 to V5: objects of the FastSerialization container, one block each.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use chronosym_types::Cursor;

use crate::fault::{Fault, Parsed};
use crate::framing::Search;

mod tag {
    pub(super) const NULL_REFERENCE: u8 = 1;
    /// Netperf starts objects with this tag, nettrace with the next.
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

/// Reads the start of an object, up to its payload.
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

/// The kind of an object's content.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    End,
    Events,
    Metadata,
    Stacks,
    SequencePoint,
    Unknown,
}

/// Reads an object's start, its block size and the padding after it.
pub(crate) fn block_start(cursor: &mut Cursor<'_>, base: u64) -> Parsed<(Kind, u32)> {
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
    // The content starts at a stream offset divisible by four.
    let padding = (base + cursor.position() as u64).wrapping_neg() & 3;
    cursor.take(padding as usize)?;
    Ok((kind, u32::try_from(size).map_err(|_| Fault::Bad)?))
}

/// Returns whether the object ends here and another, or the end of the stream, follows.
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
