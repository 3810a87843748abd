//! The header and root entry of a unit, and the data its values refer to.

use gimli::{
    DebugAddr, DebugAddrBase, DebugAddrIndex, DebugInfo, DebugInfoOffset, DebugRanges,
    DebugRngLists, DebugRngListsBase, DebugRngListsIndex, DebugStrOffsets, DebugStrOffsetsBase,
    DebugStrOffsetsIndex, DwLang, DwarfFileType, DwoId, Encoding, EndianSlice, RangeLists,
    RangeListsOffset, RunTimeEndian, SectionId, UnitHeader, UnitType, constants as dw,
};

use super::abbrev::{Abbreviations, Attribute};
use super::budget::Budget;
use super::form::{Cursor, DwarfError, StringRef, Value, until_zero};
use crate::elf::container::Container;
use crate::elf::sections::SectionData;

pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The debug sections of one file, or of one unit in a DWARF package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sections<'a> {
    pub(crate) endian: RunTimeEndian,
    pub(crate) abbrev: &'a [u8],
    pub(crate) addr: &'a [u8],
    pub(crate) info: SectionData<'a>,
    pub(crate) line: SectionData<'a>,
    pub(crate) line_str: &'a [u8],
    pub(crate) ranges: &'a [u8],
    pub(crate) rnglists: &'a [u8],
    pub(crate) str: &'a [u8],
    pub(crate) str_offsets: &'a [u8],
    /// `.debug_str` of the supplementary file (dwz's `.gnu_debugaltlink`).
    pub(crate) supplement_str: &'a [u8],
    /// True for the `.dwo` forms.
    pub(crate) split: bool,
}

impl<'a> Sections<'a> {
    /// Returns the sections of a file: split ones (`.dwo`) or plain ones.
    pub(crate) fn of(container: &'a Container, split: bool) -> Self {
        container.debug.unpack_together(split, || ());
        let get = |id| container.debug.get(id, split);
        let parts = |id| container.debug.parts(id, split);
        Self {
            endian: container.endian,
            abbrev: get(SectionId::DebugAbbrev),
            addr: get(SectionId::DebugAddr),
            info: parts(SectionId::DebugInfo),
            line: parts(SectionId::DebugLine),
            line_str: get(SectionId::DebugLineStr),
            ranges: get(SectionId::DebugRanges),
            rnglists: get(SectionId::DebugRngLists),
            str: get(SectionId::DebugStr),
            str_offsets: get(SectionId::DebugStrOffsets),
            supplement_str: &[],
            split,
        }
    }

    pub(crate) fn slice(&self, data: &'a [u8]) -> Slice<'a> {
        EndianSlice::new(data, self.endian)
    }

    /// Returns a budget for the range lists of one unit, or of all units together.
    pub(crate) fn range_budget(&self) -> Budget {
        Budget::of(self.ranges.len().saturating_add(self.rnglists.len()))
    }

    fn file_type(&self) -> DwarfFileType {
        if self.split {
            DwarfFileType::Dwo
        } else {
            DwarfFileType::Main
        }
    }

    /// Returns the string at an offset of a string section.
    pub(crate) fn string(section: &'a [u8], offset: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(offset).ok()?;
        section.get(offset..).map(until_zero)
    }
}

/// A unit, ready to be walked.
#[derive(Debug)]
pub(crate) struct Unit<'a> {
    pub(crate) sections: Sections<'a>,
    /// Offset in `.debug_info`.
    pub(crate) offset: usize,
    /// Bytes from the unit's header on; offsets in the unit count from here.
    pub(crate) data: &'a [u8],
    pub(crate) encoding: Encoding,
    pub(crate) root: usize,
    /// Offset of the root's first child.
    pub(crate) first_child: usize,
    pub(crate) low_pc: u64,
    pub(crate) high_pc: Option<Value<'a>>,
    pub(crate) ranges: Option<Value<'a>>,
    pub(crate) stmt_list: Option<usize>,
    pub(crate) comp_dir: Option<&'a [u8]>,
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) dwo_name: Option<&'a [u8]>,
    pub(crate) dwo_id: Option<DwoId>,
    pub(crate) has_low_pc: bool,
    /// False for type and partial units, which refer to line tables for their file names only.
    pub(crate) has_code: bool,
    /// True for languages that do not mangle names.
    pub(crate) plain_names: bool,
    pub(crate) addr_base: DebugAddrBase<usize>,
    pub(crate) rnglists_base: DebugRngListsBase<usize>,
    pub(crate) str_offsets_base: DebugStrOffsetsBase<usize>,
}

impl<'a> Unit<'a> {
    /// Reads the unit at an offset of `.debug_info`, and its abbreviations into `table` unless that
    /// has them.
    pub(crate) fn read(
        sections: &Sections<'a>,
        offset: usize,
        table: &mut Table,
    ) -> Result<Self, DwarfError> {
        let header = header(sections, offset)?;
        table.load(sections, header.debug_abbrev_offset().0, header.encoding())?;
        Self::with_header(sections, offset, &header, table)
    }

    /// As [`Unit::read`], with the abbreviations that `table` has.
    pub(crate) fn read_again(
        sections: &Sections<'a>,
        offset: usize,
        table: &Table,
    ) -> Result<Self, DwarfError> {
        Self::with_header(sections, offset, &header(sections, offset)?, table)
    }

    fn with_header(
        sections: &Sections<'a>,
        offset: usize,
        header: &UnitHeader<Slice<'a>>,
        table: &Table,
    ) -> Result<Self, DwarfError> {
        let encoding = header.encoding();
        let data = sections.info.from(offset).ok_or(DwarfError::Reference)?;
        let data = data
            .get(..header.length_including_self())
            .ok_or(DwarfError::Truncated)?;
        let mut unit = Unit {
            sections: *sections,
            offset,
            data,
            encoding,
            root: header.header_size(),
            first_child: header.header_size(),
            low_pc: 0,
            high_pc: None,
            ranges: None,
            stmt_list: None,
            comp_dir: None,
            name: None,
            dwo_name: None,
            dwo_id: match header.type_() {
                UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
                _ => None,
            },
            has_low_pc: false,
            has_code: false,
            plain_names: false,
            addr_base: DebugAddrBase(0),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(
                encoding,
                sections.file_type(),
            ),
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding,
                sections.file_type(),
            ),
        };
        unit.read_root(&table.abbreviations)?;
        Ok(unit)
    }

    fn read_root(&mut self, abbreviations: &Abbreviations) -> Result<(), DwarfError> {
        let mut cursor = self.cursor(self.root);
        let code = cursor.uleb()?;
        if code == 0 {
            return Ok(());
        }
        let root = abbreviations.get(code)?;
        self.has_code = !matches!(root.tag, dw::DW_TAG_type_unit | dw::DW_TAG_partial_unit);
        let (mut name, mut comp_dir, mut dwo_name, mut low_pc) = (None, None, None, None);
        for &Attribute {
            name: attribute,
            form,
            implicit,
        } in abbreviations.attributes(root)
        {
            let value = cursor.value(form, implicit, self.encoding)?;
            let number = match value {
                Value::Unsigned(n) => usize::try_from(n).ok(),
                _ => None,
            };
            match attribute {
                dw::DW_AT_name => name = Some(value),
                dw::DW_AT_comp_dir => comp_dir = Some(value),
                dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name => dwo_name = Some(value),
                dw::DW_AT_low_pc => low_pc = Some(value),
                dw::DW_AT_high_pc => self.high_pc = Some(value),
                dw::DW_AT_ranges => self.ranges = Some(value),
                dw::DW_AT_stmt_list => self.stmt_list = number,
                dw::DW_AT_language => {
                    let language = number.and_then(|n| u16::try_from(n).ok()).map(DwLang);
                    self.plain_names = matches!(
                        language,
                        Some(
                            dw::DW_LANG_C
                                | dw::DW_LANG_C89
                                | dw::DW_LANG_C99
                                | dw::DW_LANG_C11
                                | dw::DW_LANG_C17
                                | dw::DW_LANG_Cobol74
                                | dw::DW_LANG_Cobol85
                                | dw::DW_LANG_Fortran77
                                | dw::DW_LANG_Pascal83
                                | dw::DW_LANG_PLI
                                | dw::DW_LANG_UPC
                        )
                    );
                }
                dw::DW_AT_addr_base | dw::DW_AT_GNU_addr_base => {
                    self.addr_base = DebugAddrBase(number.unwrap_or(0));
                }
                dw::DW_AT_rnglists_base | dw::DW_AT_GNU_ranges_base => {
                    self.rnglists_base = DebugRngListsBase(number.unwrap_or(0));
                }
                dw::DW_AT_str_offsets_base => {
                    self.str_offsets_base = DebugStrOffsetsBase(number.unwrap_or(0));
                }
                dw::DW_AT_GNU_dwo_id => {
                    if let (None, Value::Unsigned(id)) = (self.dwo_id, value) {
                        self.dwo_id = Some(DwoId(id));
                    }
                }
                _ => {}
            }
        }
        self.first_child = if root.has_children {
            cursor.pos
        } else {
            self.data.len()
        };
        self.name = name.and_then(|v| self.text(v));
        self.comp_dir = comp_dir.and_then(|v| self.text(v));
        self.dwo_name = dwo_name.and_then(|v| self.text(v));
        if let Some(address) = low_pc.and_then(|v| self.address(v)) {
            self.low_pc = address;
            self.has_low_pc = true;
        }
        Ok(())
    }

    /// Copies the data that only the skeleton of a split unit has.
    pub(crate) fn adopt(&mut self, skeleton: &Unit<'a>) {
        self.sections.addr = skeleton.sections.addr;
        self.addr_base = skeleton.addr_base;
        self.low_pc = skeleton.low_pc;
        self.comp_dir = skeleton.comp_dir.or(self.comp_dir);
        if self.encoding.version < 5 {
            // Before DWARF 5 the ranges remained in the linked file.
            self.sections.ranges = skeleton.sections.ranges;
            self.rnglists_base = skeleton.rnglists_base;
        }
    }

    pub(crate) fn cursor(&self, pos: usize) -> Cursor<'a> {
        Cursor {
            data: self.data,
            pos,
            big: self.sections.endian == RunTimeEndian::Big,
        }
    }

    /// Returns the string of a value; `None` if it is not a string or is damaged.
    pub(crate) fn text(&self, value: Value<'a>) -> Option<&'a [u8]> {
        let Value::StringRef(text) = value else {
            return None;
        };
        match text {
            StringRef::Here(text) => Some(text),
            StringRef::Str(offset) => Sections::string(self.sections.str, offset),
            StringRef::LineStr(offset) => Sections::string(self.sections.line_str, offset),
            StringRef::Index(index) => {
                let offsets = DebugStrOffsets::from(self.sections.slice(self.sections.str_offsets));
                let offset = offsets
                    .get_str_offset(
                        self.encoding.format,
                        self.str_offsets_base,
                        DebugStrOffsetsIndex(usize::try_from(index).ok()?),
                    )
                    .ok()?;
                Sections::string(self.sections.str, offset.0 as u64)
            }
            StringRef::Supplement(offset) => Sections::string(self.sections.supplement_str, offset),
        }
    }

    /// Returns the address of a value.
    pub(crate) fn address(&self, value: Value<'_>) -> Option<u64> {
        match value {
            Value::Address(address) => Some(address),
            Value::AddressIndex(index) => DebugAddr::from(self.sections.slice(self.sections.addr))
                .get_address(
                    self.encoding.address_size,
                    self.addr_base,
                    DebugAddrIndex(usize::try_from(index).ok()?),
                )
                .ok(),
            _ => None,
        }
    }

    /// The end in a `DW_AT_high_pc`: an address, or a length from `low`.
    pub(crate) fn high(&self, low: u64, value: Value<'_>) -> Option<u64> {
        match value {
            Value::Unsigned(len) => low.checked_add(len),
            other => self.address(other),
        }
    }

    /// Calls `each` with every non-empty range of a range list, within the budget.
    pub(crate) fn each_range(
        &self,
        value: Value<'_>,
        budget: &mut Budget,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), DwarfError> {
        let lists = RangeLists::new(
            DebugRanges::from(self.sections.slice(self.sections.ranges)),
            DebugRngLists::from(self.sections.slice(self.sections.rnglists)),
        );
        let offset = match value {
            Value::Unsigned(offset) => {
                let offset = usize::try_from(offset).map_err(|_| DwarfError::Reference)?;
                // In GNU's split DWARF 4 the offset counts from the skeleton's base.
                if self.sections.split && self.encoding.version < 5 {
                    RangeListsOffset(
                        offset
                            .checked_add(self.rnglists_base.0)
                            .ok_or(DwarfError::Reference)?,
                    )
                } else {
                    RangeListsOffset(offset)
                }
            }
            Value::RangeIndex(index) => lists.get_offset(
                self.encoding,
                self.rnglists_base,
                DebugRngListsIndex(usize::try_from(index).map_err(|_| DwarfError::Reference)?),
            )?,
            _ => return Ok(()),
        };
        let addr = DebugAddr::from(self.sections.slice(self.sections.addr));
        let mut ranges = lists.ranges(offset, self.encoding, self.low_pc, &addr, self.addr_base)?;
        // Entries that only set a base cost time as well.
        while let Some(entry) = ranges.next_raw()? {
            budget.take(1)?;
            if let Some(range) = ranges.convert_raw(entry)?
                && range.begin < range.end
            {
                each(range.begin, range.end);
            }
        }
        Ok(())
    }
}

fn header<'a>(sections: &Sections<'a>, offset: usize) -> Result<UnitHeader<Slice<'a>>, DwarfError> {
    let from = sections.info.from(offset).ok_or(DwarfError::Reference)?;
    let info = DebugInfo::from(sections.slice(from));
    Ok(info.header_from_offset(DebugInfoOffset(0))?)
}

/// An abbreviation table, which stays loaded while consecutive units share it.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) abbreviations: Abbreviations,
    /// Section (by its address in memory), offset and encoding of the loaded table.
    source: Option<(usize, usize, Encoding)>,
    /// Bytes read so far, over all tables.
    loaded: usize,
}

/// Bytes of abbreviations that are always read, and how often all those of a file are read in
/// addition.
const MAX_ABBREVIATION_BYTES: usize = 16 << 20;
const SHARING: usize = 64;

impl Table {
    /// Takes the loaded table out. The count of bytes stays.
    pub(crate) fn take(&mut self) -> Self {
        let loaded = self.loaded;
        std::mem::replace(
            self,
            Table {
                loaded,
                ..Table::default()
            },
        )
    }

    /// Checks the limit on bytes read. Units share abbreviations or have their own; overlapping
    /// lists would be read again for each unit.
    pub(crate) fn check(&self, sections: &Sections<'_>) -> Result<(), DwarfError> {
        let max =
            MAX_ABBREVIATION_BYTES.saturating_add(sections.abbrev.len().saturating_mul(SHARING));
        if self.loaded > max {
            Err(DwarfError::Shared)
        } else {
            Ok(())
        }
    }

    /// Heap in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.abbreviations.bytes()
    }

    pub(crate) fn load(
        &mut self,
        sections: &Sections<'_>,
        offset: usize,
        encoding: Encoding,
    ) -> Result<(), DwarfError> {
        let wanted = (sections.abbrev.as_ptr() as usize, offset, encoding);
        if self.source == Some(wanted) {
            return Ok(());
        }
        self.source = None;
        let data = sections.abbrev.get(offset..).ok_or(DwarfError::Reference)?;
        let len = self.abbreviations.read(data, encoding)?;
        self.loaded = self.loaded.saturating_add(len);
        self.source = Some(wanted);
        Ok(())
    }
}
