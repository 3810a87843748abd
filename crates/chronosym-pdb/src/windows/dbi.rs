//! The DBI stream (number 3): which modules there are, and which bytes of which section are theirs.

use super::msf::{Msf, Stream};
use super::space::{DebugStreams, Place};
use super::symbols::until_nul;
use crate::{Error, Result, bytes};
use std::borrow::Cow;
use std::sync::OnceLock;

const WHAT: &str = "DBI stream";
const STREAM: u32 = 3;
const HEADER: u32 = 64;
/// `NewDBIHdr` version of Visual C++ 7.0, unchanged since.
const V70: u32 = 19_990_903;
/// Section contribution formats: entries of 28 bytes, and of 32 with the COFF section added.
const CONTRIBUTIONS_V60: u32 = 0xF12E_BA2D;
const CONTRIBUTIONS_V2: u32 = 0xF131_51E4;

/// The fixed header and where the substreams lie.
#[derive(Debug)]
pub(super) struct Dbi<'a> {
    pub(super) age: u32,
    pub(super) machine: u16,
    pub(super) publics: Option<u32>,
    pub(super) symbol_records: Option<u32>,
    pub(super) streams: DebugStreams,
    modules: std::ops::Range<u32>,
    contributions: Contributions<'a>,
    section_map: std::ops::Range<u32>,
}

#[derive(Debug)]
struct Contributions<'a> {
    /// The entries, if they lie in one piece in the file.
    lent: Option<&'a [u8]>,
    /// Offset of the first entry in the stream.
    first: u32,
    entry: u32,
    count: u32,
    /// The order by place, for a file whose entries are not sorted; made at the first miss.
    order: OnceLock<Option<Box<[u32]>>>,
}

/// A run of bytes in a section that one module contributed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contribution {
    pub(super) start: Place,
    pub(super) size: u32,
    pub(super) module: u16,
}

impl Contribution {
    fn contains(&self, place: Place) -> bool {
        self.start.section == place.section
            && place
                .offset
                .checked_sub(self.start.offset)
                .is_some_and(|at| at < self.size)
    }
}

impl<'a> Dbi<'a> {
    /// None if the file has no debug information stream (types only).
    pub(super) fn read(msf: &Msf<'a>) -> Result<Option<Self>> {
        let Some(stream) = msf.stream(STREAM, WHAT)?.filter(|stream| stream.len() > 0) else {
            return Ok(None);
        };
        let header: [u8; HEADER as usize] = stream.array(0).ok_or(stream.short(0, HEADER))?;
        let word = |at: usize| bytes::u32(&header, at).unwrap_or_default();
        let half = |at: usize| bytes::u16(&header, at).unwrap_or_default();
        if word(0) != u32::MAX || word(4) < V70 {
            return Err(Error::Unsupported {
                what: WHAT,
                version: word(4),
            });
        }
        let number = |at: usize| Some(half(at)).filter(|&n| n != u16::MAX).map(u32::from);
        // Substreams follow each other: modules, contributions, section map, file info, type server
        // map, edit-and-continue names, debug header. The header gives them in this order but for
        // the last two.
        let mut at = HEADER;
        let mut part = |size: u32| {
            let start = at;
            at = start
                .checked_add(size)
                .filter(|&end| end <= stream.len())
                .ok_or(stream.short(start, size))?;
            Ok::<_, Error>(start..at)
        };
        let modules = part(word(24))?;
        let contributions = part(word(28))?;
        let section_map = part(word(32))?;
        for size in [word(36), word(40), word(52)] {
            part(size)?;
        }
        let debug = part(word(48))?;
        let debug = stream.range(&debug)?;
        Ok(Some(Self {
            age: word(8),
            machine: half(58),
            publics: number(16),
            symbol_records: number(20),
            streams: DebugStreams::read(&debug),
            modules,
            contributions: Contributions::read(&stream, contributions)?,
            section_map,
        }))
    }

    /// The bytes of the section map.
    pub(super) fn section_map(&self, msf: &Msf<'a>) -> Result<Cow<'a, [u8]>> {
        msf.required(STREAM, WHAT)?.range(&self.section_map)
    }

    /// Scans the module list.
    pub(super) fn modules(&self, msf: &Msf<'a>) -> Result<ModuleList<'a>> {
        ModuleList::scan(msf.required(STREAM, WHAT)?.range(&self.modules)?)
    }

    pub(super) fn has_contributions(&self) -> bool {
        self.contributions.count > 0
    }

    /// The contribution that covers `place`.
    pub(super) fn contribution(&self, msf: &Msf<'_>, place: Place) -> Result<Option<Contribution>> {
        let stream = msf.required(STREAM, WHAT)?;
        let all = &self.contributions;
        if let Some(found) = all.find(&stream, place, None)? {
            return Ok(Some(found));
        }
        let order = match all.order.get() {
            Some(order) => order,
            None => {
                let order = all.order(&stream)?;
                all.order.get_or_init(|| order)
            }
        };
        match order {
            Some(order) => all.find(&stream, place, Some(order)),
            None => Ok(None),
        }
    }
}

/// How many of the sorted entries of `N` bytes start at or before `place`.
fn after<const N: usize>(entries: &[u8], place: Place) -> u32 {
    let (entries, _) = entries.as_chunks::<N>();
    let is_before = |entry: &[u8; N]| {
        let entry = entry.first_chunk();
        entry.is_some_and(|entry| start(entry) <= place)
    };
    u32::try_from(entries.partition_point(is_before)).unwrap_or(u32::MAX)
}

/// An entry begins with its section, two bytes of padding, its offset.
fn start(&[s0, s1, _, _, o0, o1, o2, o3]: &[u8; 8]) -> Place {
    Place {
        section: u16::from_le_bytes([s0, s1]),
        offset: u32::from_le_bytes([o0, o1, o2, o3]),
    }
}

impl<'a> Contributions<'a> {
    fn read(stream: &Stream<'_, 'a>, range: std::ops::Range<u32>) -> Result<Self> {
        let mut all = Self {
            lent: None,
            first: range.start.saturating_add(4),
            entry: 28,
            count: 0,
            order: OnceLock::new(),
        };
        if range.len() < 4 {
            return Ok(all);
        }
        all.entry = match stream.u32(range.start) {
            Some(CONTRIBUTIONS_V60) => 28,
            Some(CONTRIBUTIONS_V2) => 32,
            version => {
                return Err(Error::Unsupported {
                    what: "section contributions",
                    version: version.unwrap_or_default(),
                });
            }
        };
        let size = range.end.saturating_sub(all.first);
        all.count = size.checked_div(all.entry).unwrap_or_default();
        all.lent = match stream.bytes(all.first, all.count.saturating_mul(all.entry))? {
            Cow::Borrowed(entries) => Some(entries),
            Cow::Owned(_) => None,
        };
        Ok(all)
    }

    /// The first `N` bytes of entry `index`.
    fn entry<const N: usize>(&self, stream: &Stream<'_, '_>, index: u32) -> Result<[u8; N]> {
        let at = index.saturating_mul(self.entry);
        let in_stream = self.first.saturating_add(at);
        let entry = match self.lent {
            Some(entries) => bytes::array(entries, at as usize),
            None => stream.array(in_stream),
        };
        entry.ok_or(stream.short(in_stream, self.entry))
    }

    fn start(&self, stream: &Stream<'_, '_>, index: u32) -> Result<Place> {
        Ok(start(&self.entry(stream, index)?))
    }

    fn get(&self, stream: &Stream<'_, '_>, index: u32) -> Result<Contribution> {
        let entry: [u8; 18] = self.entry(stream, index)?;
        Ok(Contribution {
            start: self.start(stream, index)?,
            size: bytes::u32(&entry, 8).unwrap_or_default(),
            module: bytes::u16(&entry, 16).unwrap_or_default(),
        })
    }

    fn find(
        &self,
        stream: &Stream<'_, '_>,
        place: Place,
        order: Option<&[u32]>,
    ) -> Result<Option<Contribution>> {
        let entry = |index: u32| {
            let ordered = order.and_then(|order| order.get(index as usize));
            ordered.copied().unwrap_or(index)
        };
        let low = match (self.lent, order) {
            (Some(entries), None) if self.entry == 28 => after::<28>(entries, place),
            (Some(entries), None) => after::<32>(entries, place),
            _ => bytes::partition_point(0..self.count, |index| {
                Ok::<_, Error>(self.start(stream, entry(index))? <= place)
            })?,
        };
        // Empty contributions may share a start with the one that counts.
        for index in (low.saturating_sub(4)..low).rev() {
            let found = self.get(stream, entry(index))?;
            if found.contains(place) {
                return Ok(Some(found));
            }
            if found.size > 0 {
                break;
            }
        }
        Ok(None)
    }

    /// None if the entries ascend, as every known linker writes them.
    fn order(&self, stream: &Stream<'_, '_>) -> Result<Option<Box<[u32]>>> {
        let mut before = Place {
            section: 0,
            offset: 0,
        };
        for index in 0..self.count {
            let start = self.start(stream, index)?;
            if start < before {
                let mut order: Vec<u32> = (0..self.count).collect();
                let key = |&index: &u32| self.start(stream, index).ok();
                order.sort_by_cached_key(key);
                return Ok(Some(order.into()));
            }
            before = start;
        }
        Ok(None)
    }
}

/// The module list, and where each entry starts in it.
#[derive(Debug, Default)]
pub(super) struct ModuleList<'a> {
    data: Cow<'a, [u8]>,
    starts: Box<[u32]>,
}

/// One entry of the module list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleInfo<'d> {
    pub(super) stream: Option<u32>,
    pub(super) symbols: u32,
    pub(super) c11: u32,
    pub(super) c13: u32,
    pub(super) name: &'d [u8],
}

impl<'a> ModuleList<'a> {
    const FIXED: usize = 64;

    fn scan(data: Cow<'a, [u8]>) -> Result<Self> {
        let mut starts = Vec::new();
        let mut at = 0_u32;
        while let Some(names) = data.get((at as usize).saturating_add(Self::FIXED)..) {
            starts.push(at);
            let name = until_nul(names).len().saturating_add(1);
            let object = names.get(name..).ok_or(Error::truncated(
                "module list",
                at.into(),
                Self::FIXED as u64,
            ))?;
            let names = name.saturating_add(until_nul(object).len());
            let size = names.saturating_add(Self::FIXED + 1).next_multiple_of(4);
            at = at.saturating_add(u32::try_from(size).unwrap_or(u32::MAX));
        }
        Ok(Self {
            data,
            starts: starts.into(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<ModuleInfo<'_>> {
        let data = self.data.get(*self.starts.get(index)? as usize..)?;
        let name = until_nul(data.get(Self::FIXED..)?);
        Some(ModuleInfo {
            stream: Some(bytes::u16(data, 34)?)
                .filter(|&n| n != u16::MAX)
                .map(u32::from),
            symbols: bytes::u32(data, 36)?,
            c11: bytes::u32(data, 40)?,
            c13: bytes::u32(data, 44)?,
            name,
        })
    }
}
