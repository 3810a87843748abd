//! RVAs and section offsets: section headers and, where an optimizer moved code, the OMAP tables.
//!
//! PDBs of precompiled .NET Framework images (`X.ni.pdb`) have no section headers. Their section
//! map has the sizes of the sections, which the images lay out one after the other, each on a new
//! page.

use super::msf::{Msf, Stream, stream_number};
use crate::{Result, bytes};
use std::cmp::Ordering;

/// The address of a symbol record: section number from 1, and offset in the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectionOffset {
    pub(super) section: u16,
    pub(super) offset: u32,
}

impl SectionOffset {
    /// Returns whether the address is one of the `size` bytes from `start` on.
    pub(super) fn is_within(self, start: Self, size: u32) -> bool {
        let at = self.offset.checked_sub(start.offset);
        self.section == start.section && at.is_some_and(|at| at < size)
    }

    /// Bytes from `from` to this address, wrapping; `None` in different sections.
    pub(super) fn distance(self, from: Self) -> Option<u32> {
        (self.section == from.section).then(|| self.offset.wrapping_sub(from.offset))
    }
}

/// By section, then offset; compared as one number, for binary searches without branches.
impl Ord for SectionOffset {
    fn cmp(&self, other: &Self) -> Ordering {
        let number = |address: &Self| u64::from(address.section) << 32 | u64::from(address.offset);
        number(self).cmp(&number(other))
    }
}

impl PartialOrd for SectionOffset {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Clone, Copy)]
struct Section {
    rva: u32,
    size: u32,
}

/// Pairs (source RVA, target RVA), ascending by source; target 0 marks removed code.
type Omap = Box<[(u32, u32)]>;

#[derive(Debug, Default)]
pub(super) struct AddressMap {
    /// The sections of symbol records: the original ones if there is an OMAP.
    sections: Box<[Section]>,
    to_source: Option<Omap>,
    from_source: Option<Omap>,
    /// End of the last section, if the layout is assumed from the section map.
    pub(super) assumed_end: Option<u32>,
}

impl AddressMap {
    pub(super) fn read(msf: &Msf<'_>, debug_header: &[u8], section_map: &[u8]) -> Result<Self> {
        let number = |index: usize| stream_number(debug_header, index.saturating_mul(2));
        let open = |number: Option<u32>, what| number.map_or(Ok(None), |it| msf.stream(it, what));
        let to_source = omap(open(number(3), "OMAP to source")?)?;
        let from_source = omap(open(number(4), "OMAP from source")?)?;
        let moved = to_source.is_some() || from_source.is_some();
        let original = number(10).filter(|_| moved);
        let mut addresses = Self {
            sections: sections(open(original.or(number(5)), "section headers")?)?,
            to_source,
            from_source,
            assumed_end: None,
        };
        if addresses.sections.is_empty()
            && let Some((sections, end)) = laid_out(section_map)
        {
            addresses.sections = sections;
            addresses.assumed_end = Some(end);
        }
        Ok(addresses)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Returns true if an optimizer moved code.
    pub(super) fn is_moved(&self) -> bool {
        self.to_source.is_some() || self.from_source.is_some()
    }

    /// Returns the numbers of the sections and their sizes in bytes.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (u16, u32)> {
        (1..=u16::MAX).zip(self.sections.iter().map(|section| section.size))
    }

    /// Returns the section offset of an RVA; `None` outside all sections, and for code that the
    /// optimizer added.
    pub(super) fn section_offset(&self, rva: u32) -> Option<SectionOffset> {
        let rva = match &self.to_source {
            Some(map) => translate(map, rva)?,
            None => rva,
        };
        let mut sections = (1..=u16::MAX).zip(&self.sections);
        sections.find_map(|(number, section)| {
            let offset = rva.checked_sub(section.rva)?;
            (offset < section.size).then_some(SectionOffset {
                section: number,
                offset,
            })
        })
    }

    /// Returns the RVA of a section offset in the optimized image.
    pub(super) fn rva(&self, address: SectionOffset) -> Option<u32> {
        let section = self.section(address.section)?;
        let rva = section.rva.checked_add(address.offset)?;
        match &self.from_source {
            Some(map) => translate(map, rva),
            None => Some(rva),
        }
    }

    pub(super) fn section_size(&self, section: u16) -> Option<u32> {
        self.section(section).map(|section| section.size)
    }

    fn section(&self, number: u16) -> Option<&Section> {
        self.sections.get(usize::from(number).checked_sub(1)?)
    }
}

/// Reads `IMAGE_SECTION_HEADER`s of 40 bytes: virtual size at 8, RVA at 12, raw size at 16.
fn sections(stream: Option<Stream<'_, '_>>) -> Result<Box<[Section]>> {
    let Some(stream) = stream else {
        return Ok(Box::default());
    };
    let data = stream.bytes(0, stream.len())?;
    let read = |header: &[u8]| {
        let size = match bytes::u32(header, 8)? {
            0 => bytes::u32(header, 16)?,
            size => size,
        };
        Some(Section {
            rva: bytes::u32(header, 12)?,
            size,
        })
    };
    Ok(data.chunks_exact(40).filter_map(read).collect())
}

/// Returns the sections of a section map, laid out from the first page after the headers on, and
/// the end of the last one; `None` if the map's sections are not numbered from 1 in order.
///
/// The map has a count of 2 bytes, another one, then entries of 20 bytes: flags at 0, section
/// number at 6, size at 16. Its last entry is for absolute addresses.
fn laid_out(map: &[u8]) -> Option<(Box<[Section]>, u32)> {
    const PAGE: u32 = 0x1000;
    const ABSOLUTE: u16 = 0x200;
    let count = usize::from(bytes::u16(map, 0)?);
    let mut sections = Vec::new();
    let mut end = PAGE;
    for entry in map.get(4..)?.chunks_exact(20).take(count) {
        if bytes::u16(entry, 0)? & ABSOLUTE != 0 {
            continue;
        }
        if usize::from(bytes::u16(entry, 6)?).checked_sub(1) != Some(sections.len()) {
            return None;
        }
        let size = bytes::u32(entry, 16)?;
        sections.push(Section { rva: end, size });
        end = end.checked_add(size.checked_next_multiple_of(PAGE)?)?;
    }
    (!sections.is_empty()).then(|| (sections.into(), end))
}

fn omap(stream: Option<Stream<'_, '_>>) -> Result<Option<Omap>> {
    let Some(stream) = stream.filter(|stream| stream.len() >= 8) else {
        return Ok(None);
    };
    let mut map = bytes::pairs(&stream.bytes(0, stream.len())?);
    map.sort_by_key(|&(source, _)| source);
    Ok(Some(map))
}

fn translate(map: &[(u32, u32)], rva: u32) -> Option<u32> {
    let index = map.partition_point(|&(source, _)| source <= rva);
    let (source, target) = *map.get(index.checked_sub(1)?)?;
    target
        .checked_add(rva.checked_sub(source)?)
        .filter(|_| target != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> AddressMap {
        // Source 0x1000..0x1100 moved to 0x5000, 0x1100..0x1200 dropped, the rest to 0x4000.
        AddressMap {
            sections: [Section {
                rva: 0x1000,
                size: 0x1000,
            }]
            .into(),
            to_source: Some([(0x4000, 0x1200), (0x4E00, 0), (0x5000, 0x1000), (0x5100, 0)].into()),
            from_source: Some([(0x1000, 0x5000), (0x1100, 0), (0x1200, 0x4000)].into()),
            assumed_end: None,
        }
    }

    #[test]
    fn a_section_map_is_laid_out_in_pages() {
        let entry = |flags: u16, section: u16, size: u32| {
            let mut entry = [0; 20];
            entry[..2].copy_from_slice(&flags.to_le_bytes());
            entry[6..8].copy_from_slice(&section.to_le_bytes());
            entry[16..].copy_from_slice(&size.to_le_bytes());
            entry
        };
        let map = |entries: &[[u8; 20]]| {
            let count = (entries.len() as u16).to_le_bytes();
            [&count, &count, entries.concat().as_slice()].concat()
        };
        let sections = [
            entry(0x10D, 1, 0x1001),
            entry(0x109, 2, 0x20),
            entry(0x208, 3, !0),
        ];
        let (laid, end) = laid_out(&map(&sections)).unwrap();
        let laid: Vec<_> = laid.iter().map(|s| (s.rva, s.size)).collect();
        assert_eq!(
            (laid, end),
            (vec![(0x1000, 0x1001), (0x3000, 0x20)], 0x4000)
        );
        for bad in [
            map(&[entry(0x10D, 2, 16)]),
            map(&[entry(0x10D, 1, u32::MAX)]),
            map(&[entry(0x10D, 1, 0xFFFF_F000), entry(0x10D, 2, 1)]),
            map(&[entry(0x208, 1, 16)]),
            map(&[]),
            vec![1, 0],
            vec![],
        ] {
            assert!(laid_out(&bad).is_none(), "{bad:x?}");
        }
        // A map that is cut short has the sections that are left.
        let cut = &map(&sections)[..4 + 20 + 19];
        assert_eq!(
            laid_out(cut).map(|(laid, end)| (laid.len(), end)),
            Some((1, 0x3000))
        );
    }

    #[test]
    fn omap_translates_both_ways() {
        let addresses = addresses();
        for (rva, offset) in [
            (0x5010, 0x10),
            (0x50FF, 0xFF),
            (0x4000, 0x200),
            (0x4DFF, 0xFFF),
        ] {
            let address = SectionOffset { section: 1, offset };
            assert_eq!(addresses.section_offset(rva), Some(address), "{rva:#x}");
            assert_eq!(addresses.rva(address), Some(rva), "{rva:#x}");
        }
    }

    #[test]
    fn code_that_only_one_side_has_is_nowhere() {
        let addresses = addresses();
        for rva in [0x4E00, 0x5100, 0x3FFF] {
            assert_eq!(addresses.section_offset(rva), None, "{rva:#x}");
        }
        for (section, offset) in [(1, 0x100), (2, 0), (0, 0)] {
            assert_eq!(
                addresses.rva(SectionOffset { section, offset }),
                None,
                "{section}"
            );
        }
    }
}
