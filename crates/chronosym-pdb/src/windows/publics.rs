//! Public symbols by address: the PSI stream's address map, a sorted array of record offsets.

use super::msf::Msf;
use super::space::Place;
use super::symbols::{S_PUB32, until_nul};
use crate::Result;
use std::borrow::Cow;

const HEADER: u32 = 28;

/// Where the address map lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publics {
    stream: u32,
    records: u32,
    map: u32,
    count: u32,
}

/// One S_PUB32.
#[derive(Debug)]
pub(super) struct Public<'a> {
    pub(super) start: Place,
    pub(super) name: Cow<'a, [u8]>,
}

impl Publics {
    pub(super) fn read(msf: &Msf<'_>, stream: u32, records: u32) -> Result<Option<Self>> {
        let Some(view) = msf.stream(stream, "public symbols")? else {
            return Ok(None);
        };
        if view.len() == 0 {
            return Ok(None);
        }
        let (hash, map) = (view.u32(0), view.u32(4));
        let (Some(hash), Some(size)) = (hash, map) else {
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

    /// The last public at or before `place` in its section (the first of several at one place), and
    /// where the next one starts if that is in the same section.
    pub(super) fn find<'a>(
        &self,
        msf: &Msf<'a>,
        place: Place,
    ) -> Result<Option<(Public<'a>, Option<u32>)>> {
        let map = msf.required(self.stream, "public symbols")?;
        let records = msf.required(self.records, "symbol records")?;
        let record = |index: u32| {
            let at = self.map + index * 4;
            map.u32(at).ok_or(map.short(at, 4))
        };
        let start = |index: u32| {
            let at = record(index)?;
            let head: [u8; 14] = records.array(at).ok_or(records.short(at, 14))?;
            if u16::from_le_bytes([head[2], head[3]]) != S_PUB32 {
                return Err(records.damaged(at, "the address map names no public symbol"));
            }
            Ok(Place {
                section: u16::from_le_bytes([head[12], head[13]]),
                offset: u32::from_le_bytes([head[8], head[9], head[10], head[11]]),
            })
        };
        let bound = |beyond: &dyn Fn(Place) -> bool, mut low: u32, mut high: u32| {
            while low < high {
                let middle = low + (high - low) / 2;
                if beyond(start(middle)?) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            Ok(low)
        };
        let after = bound(&|at| at > place, 0, self.count)?;
        let Some(mut index) = after.checked_sub(1) else {
            return Ok(None);
        };
        let found = start(index)?;
        if found.section != place.section {
            return Ok(None);
        }
        while index > 0 && start(index - 1)? == found {
            index -= 1;
        }
        let next = match after < self.count {
            true => Some(start(after)?).filter(|next| next.section == place.section),
            false => None,
        };
        let at = record(index)?;
        let size = u32::from(records.u16(at).ok_or(records.short(at, 2))?);
        let name = records.bytes(at + 14, size.saturating_sub(12))?;
        let public = Public {
            start: found,
            name: match name {
                Cow::Borrowed(name) => Cow::Borrowed(until_nul(name)),
                Cow::Owned(name) => Cow::Owned(until_nul(&name).to_vec()),
            },
        };
        Ok(Some((public, next.map(|next| next.offset))))
    }
}
