//! Event blobs of V4 to V6: the headers inside event and metadata blocks.

use chronosym_types::{Cursor, ReadError};

use crate::fault::{Fault, Parsed};

/// Header fields that a compressed blob takes from the one before unless it gives them itself.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlobHeader {
    pub(crate) time: i64,
    /// OS thread id, in V6 a thread index.
    pub(crate) thread: u64,
    pub(crate) capture_thread: u64,
    pub(crate) metadata_id: u32,
    pub(crate) sequence: u32,
    pub(crate) processor: u32,
    pub(crate) stack_id: u32,
    pub(crate) payload_size: u32,
}

/// The positions of a blob's variable parts, and the header fields it has.
#[derive(Clone, Copy)]
pub(crate) struct Blob {
    pub(crate) flags: u8,
    /// Position of the activity ids or of the label list index.
    pub(crate) ids_at: usize,
    pub(crate) payload_at: usize,
    /// Position after the blob.
    pub(crate) end: usize,
}

pub(crate) mod flag {
    pub(crate) const METADATA_ID: u8 = 1;
    pub(crate) const CAPTURE: u8 = 2;
    pub(crate) const THREAD: u8 = 4;
    pub(crate) const STACK: u8 = 8;
    /// Activity id; in V6 the label list.
    pub(crate) const ACTIVITY: u8 = 16;
    pub(crate) const RELATED_ACTIVITY: u8 = 32;
    pub(crate) const PAYLOAD_SIZE: u8 = 128;
    /// Activity ids, or labels.
    pub(crate) const IDS: u8 = ACTIVITY | RELATED_ACTIVITY;
    /// All fields: those of an uncompressed blob.
    pub(crate) const ALL: u8 = 0xff;
}

/// The most bytes before a compressed blob's payload, and the rest of the word that its last number
/// is read with.
pub(crate) const LONGEST_HEAD: usize = 96;

/// Reads a compressed blob at `at` and updates the fields of `header` that it has. An incomplete
/// one may have updated some of them.
#[inline]
pub(crate) fn compressed(
    bytes: &[u8],
    at: usize,
    header: &mut BlobHeader,
    v6: bool,
) -> Parsed<Blob> {
    let rest = bytes.get(at..).unwrap_or_default();
    let padded;
    // The length is constant, so the bytes of numbers need not be counted.
    let head = match rest.first_chunk() {
        Some(head) => head,
        None => {
            padded = padded_head(rest);
            &padded
        }
    };
    let mut cursor = Cursor::new(head);
    let flags = cursor.u8()?;
    if flags & flag::METADATA_ID != 0 {
        header.metadata_id = cursor.var_u32()?;
    }
    if flags & flag::CAPTURE != 0 {
        header.sequence = header.sequence.wrapping_add(cursor.var_u32()?);
        header.capture_thread = cursor.var_u64()?;
        header.processor = cursor.var_u32()?;
    }
    // Definitions among events, which V6 has not, are not numbered.
    if v6 || header.metadata_id != 0 || flags & flag::CAPTURE != 0 {
        header.sequence = header.sequence.wrapping_add(1);
    }
    if flags & flag::THREAD != 0 {
        header.thread = cursor.var_u64()?;
    }
    if flags & flag::STACK != 0 {
        header.stack_id = cursor.var_u32()?;
    }
    header.time = header.time.wrapping_add(cursor.var_u64()?.cast_signed());
    let ids_at = at.wrapping_add(cursor.position());
    let ids = flags & flag::IDS;
    if ids != 0 {
        if !v6 {
            cursor.take(if ids.is_power_of_two() { 16 } else { 32 })?;
        } else if ids & flag::ACTIVITY != 0 {
            cursor.var_u32()?;
        }
    }
    if flags & flag::PAYLOAD_SIZE != 0 {
        header.payload_size = cursor.var_u32()?;
    }
    let size = cursor
        .position()
        .saturating_add(header.payload_size as usize);
    if size > rest.len() {
        return Err(Fault::Short);
    }
    Ok(Blob {
        flags,
        ids_at,
        payload_at: at.wrapping_add(cursor.position()),
        end: at.wrapping_add(size),
    })
}

#[cold]
fn padded_head(rest: &[u8]) -> [u8; LONGEST_HEAD] {
    let mut head = [0; LONGEST_HEAD];
    for (padded, byte) in head.iter_mut().zip(rest) {
        *padded = *byte;
    }
    head
}

/// Reads an uncompressed blob at `at`; `header` becomes its own.
pub(crate) fn uncompressed(
    bytes: &[u8],
    at: usize,
    header: &mut BlobHeader,
    v6: bool,
) -> Parsed<Blob> {
    const NOT_SORTED: u32 = 1 << 31;
    let mut cursor = Cursor::starting_at(bytes, at);
    let size = cursor.length()?;
    let body_at = cursor.position();
    cursor.take(size)?;
    let end = cursor.position();
    // The size is known: content that exceeds it is invalid.
    let mut cursor = Cursor::starting_at(bytes.get(..end).ok_or(Fault::Bad)?, body_at);
    *header = BlobHeader {
        metadata_id: cursor.u32().map_err(bad)? & !NOT_SORTED,
        sequence: cursor.u32().map_err(bad)?,
        thread: cursor.u64().map_err(bad)?,
        capture_thread: cursor.u64().map_err(bad)?,
        processor: cursor.u32().map_err(bad)?,
        stack_id: cursor.u32().map_err(bad)?,
        time: cursor.i64().map_err(bad)?,
        payload_size: 0,
    };
    let ids_at = cursor.position();
    cursor.take(if v6 { 4 } else { 32 }).map_err(bad)?;
    header.payload_size = cursor.u32().map_err(bad)?;
    let payload_at = cursor.position();
    cursor.take(header.payload_size as usize).map_err(bad)?;
    Ok(Blob {
        flags: flag::ALL,
        ids_at,
        payload_at,
        end,
    })
}

/// Returns the end of an uncompressed blob at `at` with invalid content, if its size is plausible.
pub(crate) fn uncompressed_end(bytes: &[u8], at: usize, v6: bool) -> Option<usize> {
    let header = if v6 { 48 } else { 76 };
    let mut cursor = Cursor::starting_at(bytes, at);
    let size = cursor.length().ok().filter(|&size| size >= header)?;
    cursor.take(size).ok()?;
    Some(cursor.position())
}

fn bad(_: ReadError) -> Fault {
    Fault::Bad
}
