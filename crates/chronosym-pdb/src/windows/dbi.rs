//! The DBI stream (number 3): the modules and their section contributions.

use super::address_map::SectionOffset;
use super::msf::{Msf, stream_number};
use crate::bytes::{self, until_nul};
use crate::{Error, Result};
use std::borrow::Cow;
use std::sync::OnceLock;

const WHAT: &str = "DBI stream";
const STREAM: u32 = 3;
const HEADER: u32 = 64;
/// Version of the DBI header since Visual C++ 7.0 (`DBIImpvV70`).
const V70: u32 = 19_990_903;
/// Versions of section contributions: entries of 28 bytes, and of 32 with the COFF section.
const CONTRIBUTIONS_V60: u32 = 0xF12E_BA2D;
const CONTRIBUTIONS_V2: u32 = 0xF131_51E4;

/// Characteristics of sections with code: `IMAGE_SCN_CNT_CODE`, `IMAGE_SCN_MEM_EXECUTE`.
const CODE: u32 = 0x2000_0020;

/// The header and its substreams.
#[derive(Debug)]
pub(super) struct Dbi<'a> {
    pub(super) age: u32,
    pub(super) publics: Option<u32>,
    pub(super) symbol_records: Option<u32>,
    /// Stream numbers in the order of `DBGTYPE`.
    pub(super) debug_header: Cow<'a, [u8]>,
    pub(super) section_map: Cow<'a, [u8]>,
    modules: std::ops::Range<u32>,
    contributions: Contributions<'a>,
}

#[derive(Debug, Default)]
struct Contributions<'a> {
    /// A version, then the entries.
    data: Cow<'a, [u8]>,
    /// Size of an entry in bytes; 0 without entries.
    entry: usize,
    /// The order by address of unsorted entries, determined at the first failed search.
    order: OnceLock<Option<Box<[u32]>>>,
}

/// A section contribution: bytes of a section that one module contributed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contribution {
    pub(super) start: SectionOffset,
    pub(super) size: u32,
    pub(super) module: u16,
    /// False if its section is stated to have data only.
    pub(super) is_code: bool,
}

impl Contribution {
    /// Offset in the section after the last byte.
    pub(super) fn end(&self) -> u32 {
        self.start.offset.saturating_add(self.size)
    }

    fn contains(&self, address: SectionOffset) -> bool {
        address.is_within(self.start, self.size)
    }
}

impl<'a> Dbi<'a> {
    /// `None` if the file has no DBI stream (types only).
    pub(super) fn read(msf: &Msf<'a>) -> Result<Option<Self>> {
        let Some(stream) = msf.stream(STREAM, WHAT)?.filter(|stream| stream.len() > 0) else {
            return Ok(None);
        };
        let header: [u8; HEADER as usize] = stream.array(0).ok_or(stream.short(0, HEADER))?;
        let word = |at: usize| bytes::u32(&header, at).unwrap_or_default();
        if word(0) != u32::MAX || word(4) < V70 {
            return Err(Error::Unsupported {
                what: WHAT,
                version: word(4),
            });
        }
        // The substreams are modules, contributions, section map, file info, type server map, EC
        // names and debug header; the sizes of the last two are in reverse order in the header.
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
        let debug_header = part(word(48))?;
        Ok(Some(Self {
            age: word(8),
            publics: stream_number(&header, 16),
            symbol_records: stream_number(&header, 20),
            debug_header: stream.range(&debug_header)?,
            section_map: stream.range(&section_map)?,
            modules,
            contributions: Contributions::read(stream.range(&contributions)?)?,
        }))
    }

    /// Scans the module list.
    pub(super) fn modules(&self, msf: &Msf<'a>) -> Result<ModuleList<'a>> {
        ModuleList::scan(msf.required(STREAM, WHAT)?.range(&self.modules)?)
    }

    pub(super) fn has_contributions(&self) -> bool {
        self.contributions.count() > 0
    }

    /// Returns all contributions.
    pub(super) fn contributions(&self) -> impl Iterator<Item = Contribution> {
        let all = &self.contributions;
        (0..all.count()).filter_map(|index| all.get(index))
    }

    /// Returns the contribution that covers `address`.
    pub(super) fn contribution(&self, address: SectionOffset) -> Option<Contribution> {
        let all = &self.contributions;
        all.find(address, Some).or_else(|| {
            let order = all.order.get_or_init(|| all.order()).as_ref()?;
            all.find(address, |index| order.get(index as usize).copied())
        })
    }
}

impl<'a> Contributions<'a> {
    fn read(data: Cow<'a, [u8]>) -> Result<Self> {
        let entry = match bytes::u32(&data, 0) {
            None => 0,
            Some(CONTRIBUTIONS_V60) => 28,
            Some(CONTRIBUTIONS_V2) => 32,
            Some(version) => {
                return Err(Error::Unsupported {
                    what: "section contributions",
                    version,
                });
            }
        };
        Ok(Self {
            data,
            entry,
            order: OnceLock::new(),
        })
    }

    fn count(&self) -> u32 {
        let count = self.data.len().saturating_sub(4).checked_div(self.entry);
        count.unwrap_or_default().try_into().unwrap_or(u32::MAX)
    }

    /// Returns the first `N` bytes of an entry.
    fn entry<const N: usize>(&self, index: u32) -> Option<[u8; N]> {
        let at = (index as usize).checked_mul(self.entry)?.checked_add(4)?;
        bytes::array(&self.data, at)
    }

    /// An entry starts with its section, two bytes of padding, and its offset.
    #[inline]
    fn start(&self, index: u32) -> Option<SectionOffset> {
        let [s0, s1, _, _, o0, o1, o2, o3] = self.entry(index)?;
        Some(SectionOffset {
            section: u16::from_le_bytes([s0, s1]),
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
        })
    }

    fn get(&self, index: u32) -> Option<Contribution> {
        let entry: [u8; 18] = self.entry(index)?;
        let flags = bytes::u32(&entry, 12)?;
        Some(Contribution {
            start: self.start(index)?,
            size: bytes::u32(&entry, 8)?,
            module: bytes::u16(&entry, 16)?,
            is_code: flags == 0 || flags & CODE != 0,
        })
    }

    /// Returns the entry that covers `address`; `nth` maps the order by address to entry numbers.
    fn find(
        &self,
        address: SectionOffset,
        nth: impl Fn(u32) -> Option<u32>,
    ) -> Option<Contribution> {
        let is_before = |i| nth(i).and_then(|index| self.start(index)) <= Some(address);
        let after = bytes::partition_point(0..self.count(), is_before);
        // An empty contribution can have the same start as another.
        let before = (after.saturating_sub(4)..after).rev();
        let mut before = before.filter_map(|i| self.get(nth(i)?));
        let last = before.find(|contribution| contribution.size > 0)?;
        last.contains(address).then_some(last)
    }

    /// `None` if the entries ascend, as all known linkers write them.
    fn order(&self) -> Option<Box<[u32]>> {
        let all = 0..self.count();
        if all.clone().is_sorted_by_key(|index| self.start(index)) {
            return None;
        }
        let mut order: Vec<u32> = all.collect();
        order.sort_by_cached_key(|&index| self.start(index));
        Some(order.into())
    }
}

/// The module list, and the offset of each entry.
#[derive(Debug, Default)]
pub(super) struct ModuleList<'a> {
    data: Cow<'a, [u8]>,
    starts: Box<[u32]>,
}

/// An entry of the module list.
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
            stream: stream_number(data, 34),
            symbols: bytes::u32(data, 36)?,
            c11: bytes::u32(data, 40)?,
            c13: bytes::u32(data, 44)?,
            name,
        })
    }
}
