//! The segments of a file: converts file offsets and RVAs to virtual addresses.
//!
//! `objcopy --only-keep-debug` and similar tools keep the addresses and sizes in the program
//! headers of a debug file, but not the offsets, because they remove the code. An offset of the
//! image is converted only if it can be proved: by a segment that keeps its offset, or by a mapping
//! that no other segment fits.

use std::ops::Range;

use object::elf::SHF_EXECINSTR;
use object::read::{Object, ObjectSection, ObjectSegment};
use object::{BinaryFormat, SectionFlags};

use super::contents::{has_code, text_segment};
use super::layout::Layout;
use crate::answer::Address;

/// The bits of offsets within the pages of Linux: loaders map whole ones.
const PAGES: [u64; 3] = [0xfff, 0x3fff, 0xffff];

/// A range of a file that a loader mapped, as recorded in a trace.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// Offset in the file of its first byte.
    pub file_offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A segment: a part of a file that is mapped.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) memory: Range<u64>,
    pub(super) file: Range<u64>,
    pub(super) executable: bool,
    pub(super) writable: bool,
}

/// The segments of a file.
#[derive(Debug)]
pub(crate) struct Segments {
    list: Vec<Segment>,
    base: u64,
    /// False for a debug file, whose code was removed.
    has_code: bool,
}

impl Segments {
    /// Of a file that states addresses from the image's base and no offsets.
    pub(super) fn none() -> Self {
        Segments {
            list: Vec::new(),
            base: 0,
            has_code: false,
        }
    }

    pub(super) fn of(file: &object::File<'_>, layout: Option<&Layout>) -> Self {
        let list: Vec<Segment> = match layout {
            None => file.segments().filter_map(|s| segment(&s)).collect(),
            Some(layout) => file.sections().filter_map(|s| placed(&s, layout)).collect(),
        };
        let is_pe = file.format() == BinaryFormat::Pe;
        // For ELF files, the address of the first page.
        let base = match file.format() {
            BinaryFormat::Pe => file.relative_address_base(),
            BinaryFormat::MachO => text_segment(file).map_or(0, |text| text.address()),
            _ => (list.iter().map(|s| s.memory.start & !0xfff).min()).unwrap_or(0),
        };
        Segments {
            list,
            base,
            has_code: is_pe || has_code(file),
        }
    }

    /// Virtual address of the image's first byte.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Returns true for an address that is mapped.
    pub(crate) fn contains(&self, va: u64) -> bool {
        self.list.iter().any(|s| s.memory.contains(&va))
    }

    /// Virtual addresses of the executable segments.
    pub(super) fn code(&self) -> impl Iterator<Item = Range<u64>> {
        let code = self.list.iter().filter(|s| s.executable);
        code.map(|s| s.memory.clone())
    }

    /// Returns the first page of the only executable segment whose pages are `len` bytes.
    pub(crate) fn mapped_code(&self, len: u64) -> Option<u64> {
        // The sizes of pages of Linux. Mappings that are small enough for several have one start.
        const PAGES: [u64; 3] = [4 << 10, 16 << 10, 64 << 10];
        let mut starts = self.code().filter_map(|range| {
            PAGES.iter().find_map(|page| {
                let start = range.start.checked_div(*page)?.checked_mul(*page)?;
                let end = range.end.checked_next_multiple_of(*page)?;
                (end.checked_sub(start)? == len).then_some(start)
            })
        });
        let first = starts.next()?;
        starts.next().is_none().then_some(first)
    }

    /// Returns the virtual address equivalent to `address`, if there is one.
    pub(crate) fn virtual_address(&self, address: Address) -> Option<u64> {
        match address {
            Address::VirtualAddress(va) => Some(va),
            Address::Rva(rva) => self.base.checked_add(rva),
            Address::FileOffset(offset) => self.list.iter().find_map(|segment| {
                let within = offset.checked_sub(segment.file.start)?;
                let size = match self.has_code {
                    true => segment.file.end.checked_sub(segment.file.start)?,
                    false => segment.kept()?,
                };
                (within < size).then(|| segment.memory.start.checked_add(within))?
            }),
        }
    }

    /// Returns true if the program headers state where each byte of the image's file is mapped.
    pub(crate) fn has_offsets(&self) -> bool {
        self.has_code
    }

    /// Returns the number to add to file offsets of the image in an executable mapping to get
    /// virtual addresses, if the program headers of a debug file or the mapping prove it.
    pub(crate) fn offset_bias(&self, mapping: Mapping) -> Option<u64> {
        let last = mapping.file_offset.checked_add(mapping.size)?;
        let kept = self.list.iter().find(|segment| {
            let end = (segment.kept()).and_then(|size| segment.file.start.checked_add(size));
            end.is_some_and(|end| mapping.file_offset < end && segment.file.start < last)
        });
        match kept {
            Some(segment) => Some(segment.memory.start.wrapping_sub(segment.file.start)),
            None => self.bias_by_size(mapping),
        }
    }

    /// Returns the only bias with which an executable segment fills the mapping.
    fn bias_by_size(&self, mapping: Mapping) -> Option<u64> {
        let first = self
            .list
            .iter()
            .min_by_key(|segment| segment.memory.start)?;
        let end = self.list.iter().map(|segment| segment.memory.end).max()?;
        let mut biases = PAGES.into_iter().flat_map(|page| {
            let code = self.list.iter().filter(|segment| segment.is_code());
            code.filter_map(move |segment| {
                // Loaders reserve memory for all segments with the first.
                let is_first = std::ptr::eq(segment, first);
                let fills = mapping.is_filled_by(segment.memory.clone(), page)
                    || is_first && mapping.is_filled_by(segment.memory.start..end, page);
                // Nothing in the file overlaps its headers.
                let within_page = segment.memory.start & page;
                let start = mapping.file_offset.checked_add(within_page)?;
                let is_free = is_first || first.headers().is_none_or(|end| start >= end);
                (fills && is_free).then(|| segment.memory.start.wrapping_sub(start))
            })
        });
        let bias = biases.next()?;
        biases.all(|other| other == bias).then_some(bias)
    }
}

impl Mapping {
    /// Returns true if a range of addresses, in whole pages, has the size of the mapping.
    fn is_filled_by(&self, memory: Range<u64>, page: u64) -> bool {
        let end = memory.end.checked_add(page).map(|end| end & !page);
        let size = end.and_then(|end| end.checked_sub(memory.start & !page));
        (self.file_offset | self.size) & page == 0 && size == Some(self.size)
    }
}

impl Segment {
    /// Returns true for code, which has the same size in the file as in memory.
    fn is_code(&self) -> bool {
        self.executable && !self.writable && !self.memory.is_empty()
    }

    fn len(&self) -> u64 {
        self.memory.end.saturating_sub(self.memory.start)
    }

    /// Its size in the image's file, if it is code and a debug file still has its offset: it kept
    /// its size (`eu-strip`), or starts with the file's headers.
    fn kept(&self) -> Option<u64> {
        let in_file = self.file.end.saturating_sub(self.file.start);
        let is_whole = in_file > 0 && in_file == self.len();
        (self.is_code() && (is_whole || self.headers().is_some())).then(|| self.len())
    }

    /// Its size, if it starts with the file's headers and has the same size in the file as in
    /// memory.
    fn headers(&self) -> Option<u64> {
        (self.file.start == 0 && self.file.end > 0 && !self.writable).then(|| self.len())
    }
}

fn segment<'d>(segment: &impl ObjectSegment<'d>) -> Option<Segment> {
    let (offset, file_size) = segment.file_range();
    let start = segment.address();
    let permissions = segment.permissions();
    // Segments that only reserve addresses, such as the page at 0 of Mach-O.
    if segment.name_bytes() == Ok(Some(b"__PAGEZERO")) {
        return None;
    }
    Some(Segment {
        memory: start..start.checked_add(segment.size())?,
        file: offset..offset.checked_add(file_size)?,
        executable: permissions.executable(),
        writable: permissions.writable(),
    })
}

/// Returns a section of a file that is not linked.
fn placed<'d>(section: &impl ObjectSection<'d>, layout: &Layout) -> Option<Segment> {
    let memory = layout.range(section.index())?;
    let file = section.file_range();
    let file = file.and_then(|(offset, size)| Some(offset..offset.checked_add(size)?));
    let executable = match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(SHF_EXECINSTR),
        _ => false,
    };
    Some(Segment {
        executable: executable && !memory.is_empty(),
        memory,
        file: file.unwrap_or(0..0),
        writable: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Permissions, address, size in memory, offset, size in the file.
    type Header = (&'static str, u64, u64, u64, u64);

    fn segments(has_code: bool, headers: &[Header]) -> Segments {
        let list = headers
            .iter()
            .map(|&(permissions, start, size, offset, in_file)| Segment {
                memory: start..start + size,
                file: offset..offset + in_file,
                executable: permissions.contains('x'),
                writable: permissions.contains('w'),
            });
        Segments {
            list: list.collect(),
            base: 0,
            has_code,
        }
    }

    fn mapping(file_offset: u64, size: u64) -> Mapping {
        Mapping { file_offset, size }
    }

    /// As binutils write the program headers of debug files: of the code, neither offset nor size.
    const GNU: [Header; 4] = [
        ("r", 0x40_0000, 0x848, 0, 0x39c),
        ("rx", 0x40_1000, 0x139d, 0, 0),
        ("r", 0x40_3000, 0x1f3, 0, 0),
        ("rw", 0x40_4db0, 0x2a0, 0xdb0, 0),
    ];

    #[test]
    fn mappings_prove_the_offset_of_code() {
        let gnu = segments(false, &GNU);
        assert!(!gnu.has_offsets());
        assert_eq!(gnu.virtual_address(Address::FileOffset(0x1010)), None);
        assert_eq!(gnu.offset_bias(mapping(0x1000, 0x2000)), Some(0x40_0000));
        // An unknown part of the code; headers only; other sizes.
        assert_eq!(gnu.offset_bias(mapping(0x1000, 0x1000)), None);
        assert_eq!(gnu.offset_bias(mapping(0, 0x2000)), None);
        assert_eq!(gnu.offset_bias(mapping(0x1000, 0x3000)), None);
        assert_eq!(gnu.offset_bias(mapping(0x1000, 0x1fff)), None);
        // Linked by LLD: the code follows the headers in their page, and is mapped with them.
        let lld = [
            ("r", 0, 0x5c0, 0, 0x2c0),
            ("rx", 0x15c0, 0x800, 0x5c0, 0),
            ("rw", 0x2dc0, 0x200, 0xdc0, 0),
        ];
        let bias = segments(false, &lld).offset_bias(mapping(0, 0x1000));
        assert_eq!(bias, Some(0x1000));
        // Pages of 64 KiB.
        let arm = [("r", 0, 0x848, 0, 0x39c), ("rx", 0x1_0000, 0x1_0100, 0, 0)];
        let bias = segments(false, &arm).offset_bias(mapping(0x1_0000, 0x2_0000));
        assert_eq!(bias, Some(0));
    }

    #[test]
    fn code_is_found_by_the_length_of_its_mapping() {
        let one = segments(false, &GNU);
        assert_eq!(one.mapped_code(0x2000), Some(0x40_1000));
        for len in [0, 0x1000, 0x1fff, 0x3000] {
            assert_eq!(one.mapped_code(len), None, "{len:#x}");
        }
        let twins = segments(
            false,
            &[("rx", 0x1000, 0x900, 0, 0), ("rx", 0x3000, 0x10, 0, 0)],
        );
        assert_eq!(twins.mapped_code(0x1000), None);
    }

    #[test]
    fn two_segments_that_fill_a_mapping_prove_nothing() {
        let twins = [
            ("r", 0, 0x848, 0, 0x39c),
            ("rx", 0x1000, 0x900, 0, 0),
            ("rx", 0x4000, 0x900, 0, 0),
        ];
        let bias = segments(false, &twins).offset_bias(mapping(0x1000, 0x1000));
        assert_eq!(bias, None);
    }

    #[test]
    fn code_that_keeps_its_offset_is_found_without_a_mapping() {
        // Linked without a segment for code alone; loaders map the whole with it.
        let joined = [("rx", 0, 0xd63, 0, 0x32c), ("rw", 0x1db0, 0x2a0, 0xdb0, 0)];
        let joined = segments(false, &joined);
        assert_eq!(
            joined.virtual_address(Address::FileOffset(0xd00)),
            Some(0xd00)
        );
        assert_eq!(joined.virtual_address(Address::FileOffset(0xdc0)), None);
        assert_eq!(joined.offset_bias(mapping(0, 0x3000)), Some(0));
        // As eu-strip writes them: those of the image.
        let mut kept = GNU;
        kept[1] = ("rx", 0x40_1000, 0x139d, 0x800, 0x139d);
        let kept = segments(false, &kept);
        let address = kept.virtual_address(Address::FileOffset(0x810));
        assert_eq!(address, Some(0x40_1010));
        assert_eq!(kept.offset_bias(mapping(0, 0x2000)), Some(0x40_0800));
    }
}
