//! Public symbols by address: the address map of the PSI stream, a sorted array of record offsets.

use super::address_map::SectionOffset;
use super::msf::{Msf, Stream};
use super::symbols::S_PUB32;
use crate::{Result, bytes};

const HEADER: u32 = 28;

/// The location of the address map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publics {
    stream: u32,
    records: u32,
    map: u32,
    count: u32,
}

/// An S_PUB32 record.
#[derive(Debug)]
pub(super) struct Public {
    pub(super) start: SectionOffset,
    pub(super) name: String,
}

/// The address map and the records that it names.
struct Streams<'m, 'a> {
    map: Stream<'m, 'a>,
    /// Offset of the map in its stream.
    first: u32,
    records: Stream<'m, 'a>,
}

impl Streams<'_, '_> {
    /// Returns the offset of the record of a public symbol.
    fn record(&self, index: u32) -> Result<u32> {
        let at = self.first.saturating_add(index.saturating_mul(4));
        self.map.u32(at).ok_or(self.map.short(at, 4))
    }

    fn start(&self, index: u32) -> Result<SectionOffset> {
        let (at, records) = (self.record(index)?, &self.records);
        let head: [u8; 14] = records.array(at).ok_or(records.short(at, 14))?;
        let [_, _, k0, k1, _, _, _, _, o0, o1, o2, o3, s0, s1] = head;
        if u16::from_le_bytes([k0, k1]) != S_PUB32 {
            return Err(records.damaged(at, "the address map names no public symbol"));
        }
        Ok(SectionOffset {
            section: u16::from_le_bytes([s0, s1]),
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
        })
    }
}

impl Publics {
    pub(super) fn read(msf: &Msf<'_>, stream: u32, records: u32) -> Result<Option<Self>> {
        let view = msf.stream(stream, "public symbols")?;
        let Some(view) = view.filter(|view| view.len() > 0) else {
            return Ok(None);
        };
        let (Some(hash), Some(size)) = (view.u32(0), view.u32(4)) else {
            return Err(view.short(0, HEADER));
        };
        let map = HEADER
            .checked_add(hash)
            .filter(|map| map.checked_add(size).is_some_and(|end| end <= view.len()))
            .ok_or(view.short(HEADER, size))?;
        Ok(Some(Self {
            stream,
            records,
            map,
            count: size / 4,
        }))
    }

    fn streams<'m, 'a>(&self, msf: &'m Msf<'a>) -> Result<Streams<'m, 'a>> {
        Ok(Streams {
            map: msf.required(self.stream, "public symbols")?,
            first: self.map,
            records: msf.required(self.records, "symbol records")?,
        })
    }

    /// Calls `each` with the start of every public symbol.
    pub(super) fn each_start(
        &self,
        msf: &Msf<'_>,
        mut each: impl FnMut(SectionOffset),
    ) -> Result<()> {
        let streams = self.streams(msf)?;
        (0..self.count).try_for_each(|index| streams.start(index).map(&mut each))
    }

    /// Returns the last public at or before `address` in its section (the first of several at one
    /// address), and the offset of the next one in the same section.
    pub(super) fn find(
        &self,
        msf: &Msf<'_>,
        address: SectionOffset,
    ) -> Result<Option<(Public, Option<u32>)>> {
        let streams = self.streams(msf)?;
        let records = &streams.records;
        let record = |index| streams.record(index);
        let start = |index| streams.start(index);
        let after = bytes::try_partition_point(0..self.count, |i| Ok(start(i)? <= address))?;
        let Some(last) = after.checked_sub(1) else {
            return Ok(None);
        };
        let start_of_last = start(last)?;
        if start_of_last.section != address.section {
            return Ok(None);
        }
        // Most addresses have one.
        let first = match last.checked_sub(1) {
            Some(other) if start(other)? == start_of_last => {
                bytes::try_partition_point(0..last, |i| Ok(start(i)? < start_of_last))?
            }
            _ => last,
        };
        let next = match after < self.count {
            true => Some(start(after)?).filter(|next| next.section == address.section),
            false => None,
        };
        let at = record(first)?;
        let size = u32::from(records.u16(at).ok_or(records.short(at, 2))?);
        let name = records.bytes(at.saturating_add(14), size.saturating_sub(12))?;
        let public = Public {
            start: start_of_last,
            name: bytes::text_to_nul(&name),
        };
        Ok(Some((public, next.map(|next| next.offset))))
    }
}
