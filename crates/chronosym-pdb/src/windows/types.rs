//! The TPI and IPI streams: records by index.
//!
//! Records are numbered from a first index and have no offsets. Each stream's hash stream has index
//! offsets: a (type index, byte offset) pair for about every 8 KiB of records. A lookup starts at
//! the last pair at or before the index and walks the records from there.

use super::msf::{Msf, Stream, stream_number};
use crate::{Result, bytes};
use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const HEADER: u32 = 56;
/// The maximum number of cached record offsets.
const MAX_CACHED: u32 = 1 << 15;
/// Records between two pairs that replace missing index offsets.
const STRIDE: u32 = 128;
/// The maximum number of record bytes between two index offsets, which a lookup walks.
const MAX_GAP: u32 = 1 << 18;
/// The maximum depth of nested substring lists and scopes.
const MAX_DEPTH: u32 = 16;
/// The maximum number of records of one scope: lists can refer to each other any number of times.
const MAX_PARTS: u32 = 1024;

const LF_CLASS: u16 = 0x1504;
const LF_STRUCTURE: u16 = 0x1505;
const LF_UNION: u16 = 0x1506;
const LF_ENUM: u16 = 0x1507;
const LF_INTERFACE: u16 = 0x1519;
const LF_FUNC_ID: u16 = 0x1601;
const LF_MFUNC_ID: u16 = 0x1602;
const LF_SUBSTR_LIST: u16 = 0x1604;
const LF_STRING_ID: u16 = 0x1605;
const LF_CLASS2: u16 = 0x1608;
const LF_STRUCTURE2: u16 = 0x1609;
const LF_UNION2: u16 = 0x160A;
const LF_INTERFACE2: u16 = 0x160B;

/// A TPI or IPI stream.
#[derive(Debug)]
pub(super) struct TypeStream {
    number: u32,
    what: &'static str,
    first: u32,
    end: u32,
    records: u32,
    records_end: u32,
    /// The index offsets in the hash stream (stream number, offset, size); `None` without them.
    hash: Option<(u32, u32, u32)>,
    /// Index offsets: type index, and offset from `records`.
    pairs: OnceLock<Box<[(u32, u32)]>>,
    /// Direct-mapped cache: type index in the high half, offset in the low half, 0 if empty.
    cache: OnceLock<Box<[AtomicU64]>>,
}

impl TypeStream {
    pub(super) fn read(msf: &Msf<'_>, number: u32, what: &'static str) -> Result<Option<Self>> {
        let Some(stream) = msf.stream(number, what)?.filter(|stream| stream.len() > 0) else {
            return Ok(None);
        };
        let header: [u8; HEADER as usize] = stream.array(0).ok_or(stream.short(0, HEADER))?;
        let word = |at: usize| bytes::u32(&header, at).unwrap_or_default();
        let records = word(4);
        let records_end = records
            .checked_add(word(16))
            .filter(|&end| end <= stream.len())
            .ok_or(stream.short(records, word(16)))?;
        let (offset, size) = (word(40), word(44));
        let hash = match stream_number(&header, 20) {
            Some(number) => msf
                .stream(number, "type hash")?
                .map(|hash| (number, hash.len())),
            None => None,
        };
        let end = offset.checked_add(size).filter(|_| size >= 8);
        let hash = hash.filter(|&(_, len)| end.is_some_and(|end| end <= len));
        Ok(Some(Self {
            number,
            what,
            first: word(8),
            end: word(12),
            records,
            records_end,
            hash: hash.map(|(number, _)| (number, offset, size)),
            pairs: OnceLock::new(),
            cache: OnceLock::new(),
        }))
    }

    /// Returns the record `index` (kind, then fields); `None` for simple types and unknown indexes.
    fn record<'a>(&self, msf: &Msf<'a>, index: u32) -> Result<Option<Cow<'a, [u8]>>> {
        if index < self.first || index >= self.end {
            return Ok(None);
        }
        let stream = msf.required(self.number, self.what)?;
        let at = match self.cached(index) {
            Some(at) => at,
            None => {
                let Some(at) = self.search(msf, &stream, index)? else {
                    return Ok(None);
                };
                self.cache(index, at);
                at
            }
        };
        let len = stream.u16(at).ok_or(stream.short(at, 2))?;
        stream.bytes(at.saturating_add(2), u32::from(len)).map(Some)
    }

    fn cached(&self, index: u32) -> Option<u32> {
        let slot = slot(self.cache.get()?, index)?.load(Relaxed);
        (slot >> 32 == u64::from(index)).then_some((slot & 0xffff_ffff) as u32)
    }

    fn cache(&self, index: u32, at: u32) {
        let count = self.end.saturating_sub(self.first).clamp(1, MAX_CACHED);
        let empty = || (0..count).map(|_| AtomicU64::new(0)).collect();
        let slots = self.cache.get_or_init(empty);
        if let Some(slot) = slot(slots, index) {
            slot.store(u64::from(index) << 32 | u64::from(at), Relaxed);
        }
    }

    /// Walks to the record and returns its offset in the stream.
    fn search(&self, msf: &Msf<'_>, stream: &Stream<'_, '_>, index: u32) -> Result<Option<u32>> {
        let pairs = match self.pairs.get() {
            Some(pairs) => pairs,
            None => {
                let pairs = match self.hash {
                    Some((hash, offset, size)) => {
                        let hash = msf.required(hash, "type hash")?;
                        Some(bytes::pairs(&hash.bytes(offset, size)?))
                    }
                    None => None,
                };
                let pairs = pairs.filter(|pairs| self.are_close(pairs));
                let pairs = pairs.map_or_else(|| self.walk(stream), Ok)?;
                self.pairs.get_or_init(|| pairs)
            }
        };
        let after = pairs.partition_point(|&(first, _)| first <= index);
        let Some(&(mut current, start)) = after.checked_sub(1).and_then(|i| pairs.get(i)) else {
            return Ok(None);
        };
        let end = pairs.get(after).map_or(u32::MAX, |&(_, at)| at);
        let start = self.records.saturating_add(start);
        let end = self.records.saturating_add(end).min(self.records_end);
        let chunk = stream.bytes(start, end.saturating_sub(start))?;
        let mut at = 0_u32;
        while let Some(len) = bytes::u16(&chunk, at as usize) {
            if current == index {
                return Ok(Some(start.saturating_add(at)));
            }
            at = at.saturating_add(2).saturating_add(len.into());
            current = current.saturating_add(1);
        }
        Err(stream.damaged(start, "the index offsets do not lead to the record"))
    }

    /// Returns whether all adjacent pairs are at most [`MAX_GAP`] apart.
    fn are_close(&self, pairs: &[(u32, u32)]) -> bool {
        let end = self.records_end.saturating_sub(self.records);
        let next = pairs.iter().skip(1).map(|pair| pair.1).chain([end]);
        let mut gaps = pairs.iter().zip(next);
        gaps.all(|(&(_, at), next)| next.saturating_sub(at) <= MAX_GAP)
    }

    fn walk(&self, stream: &Stream<'_, '_>) -> Result<Box<[(u32, u32)]>> {
        let mut pairs = Vec::new();
        let mut at = self.records;
        for index in self.first..self.end {
            if index.saturating_sub(self.first).is_multiple_of(STRIDE) {
                pairs.push((index, at.saturating_sub(self.records)));
            }
            if at >= self.records_end {
                break;
            }
            let len = stream.u16(at).ok_or(stream.short(at, 2))?;
            at = at.saturating_add(2).saturating_add(len.into());
        }
        Ok(pairs.into())
    }
}

/// Returns the cache slot of an index.
fn slot(slots: &[AtomicU64], index: u32) -> Option<&AtomicU64> {
    slots.get((index as usize).checked_rem(slots.len())?)
}

/// A name in two parts: its scope (namespace or class), and the rest.
pub(super) type ScopedName = (String, String);

/// Both streams: ids (functions, strings) refer to types (classes).
#[derive(Debug, Default)]
pub(super) struct Types {
    pub(super) tpi: Option<TypeStream>,
    pub(super) ipi: Option<TypeStream>,
}

impl Types {
    pub(super) fn read(msf: &Msf<'_>) -> Result<Self> {
        Ok(Self {
            tpi: TypeStream::read(msf, 2, "TPI stream")?,
            ipi: TypeStream::read(msf, 4, "IPI stream")?,
        })
    }

    /// Returns the name of a function id.
    pub(super) fn function(&self, msf: &Msf<'_>, index: u32) -> Result<Option<ScopedName>> {
        let Some(record) = self.id(msf, index)? else {
            return Ok(None);
        };
        let scope = bytes::u32(&record, 2).unwrap_or_default();
        let scope = match bytes::u16(&record, 0) {
            Some(LF_FUNC_ID) => self.string(msf, scope, MAX_DEPTH, &mut { MAX_PARTS })?,
            Some(LF_MFUNC_ID) => self.class(msf, scope)?,
            _ => return Ok(None),
        };
        Ok(Some((scope, text_at(&record, 10))))
    }

    fn id<'a>(&self, msf: &Msf<'a>, index: u32) -> Result<Option<Cow<'a, [u8]>>> {
        self.ipi
            .as_ref()
            .map_or(Ok(None), |ipi| ipi.record(msf, index))
    }

    /// Returns an LF_STRING_ID: its substring list, then its own string. `left` counts records
    /// down.
    fn string(&self, msf: &Msf<'_>, index: u32, depth: u32, left: &mut u32) -> Result<String> {
        let mut text = String::new();
        let (Some(depth), Some(after)) = (depth.checked_sub(1), left.checked_sub(1)) else {
            return Ok(text);
        };
        *left = after;
        let Some(record) = self.id(msf, index)? else {
            return Ok(text);
        };
        let word = |at: usize| bytes::u32(&record, at).unwrap_or_default();
        match bytes::u16(&record, 0) {
            Some(LF_STRING_ID) if word(2) == 0 => text = text_at(&record, 6),
            Some(LF_STRING_ID) => {
                text = self.string(msf, word(2), depth, left)?;
                text.push_str(&text_at(&record, 6));
            }
            Some(LF_SUBSTR_LIST) => {
                for at in (6..record.len()).step_by(4).take(word(2) as usize) {
                    text.push_str(&self.string(msf, word(at), depth, left)?);
                    if *left == 0 || text.len() > usize::from(u16::MAX) {
                        break;
                    }
                }
            }
            _ => {}
        }
        Ok(text)
    }

    /// Returns the name of a class, structure, union or enumeration.
    fn class(&self, msf: &Msf<'_>, index: u32) -> Result<String> {
        let record = match &self.tpi {
            Some(tpi) => tpi.record(msf, index)?.unwrap_or_default(),
            None => Cow::default(),
        };
        // Fixed fields, then numeric leaves (sizes, counts), then the name.
        let (fixed, numbers) = match bytes::u16(&record, 0) {
            Some(LF_CLASS | LF_STRUCTURE | LF_INTERFACE) => (18, 1),
            Some(LF_UNION) => (10, 1),
            Some(LF_ENUM) => (14, 0),
            Some(LF_CLASS2 | LF_STRUCTURE2 | LF_INTERFACE2) => (18, 2),
            Some(LF_UNION2) => (10, 2),
            _ => return Ok(String::new()),
        };
        let mut at = fixed;
        for _ in 0..numbers {
            at = numeric_len(&record, at).saturating_add(at);
        }
        Ok(text_at(&record, at))
    }
}

/// Returns the length of a numeric leaf: a value below 0x8000, or a kind and the value.
fn numeric_len(record: &[u8], at: usize) -> usize {
    match bytes::u16(record, at) {
        Some(0x8000) => 3,
        Some(0x8001 | 0x8002) => 4,
        Some(0x8003 | 0x8004) => 6,
        Some(0x8009 | 0x800A) => 10,
        _ => 2,
    }
}

/// Returns the string at `at`.
fn text_at(record: &[u8], at: usize) -> String {
    bytes::text_to_nul(record.get(at..).unwrap_or_default())
}
