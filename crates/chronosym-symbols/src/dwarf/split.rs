//! Split DWARF: entries in `.dwo` files, or many of them in one package (`.dwp`).

use std::path::Path;
use std::sync::OnceLock;

use chronosym_types::hash::HashMap;
use gimli::{DebugCuIndex, DebugInfo, DwoId, Endianity, IndexSectionId, SectionId};

use super::form::DwarfError;
use super::index::UnitStarts;
use super::names::{InfoSection, References};
use super::resolve::{Context, Scratch};
use super::unit::{Sections, Table, Unit};
use super::variables::{LocalVariable, Variables};
use crate::answer::{Answers, Missing};
use crate::elf::container::Container;
use crate::elf::sections::SectionData;
use crate::error::Error;

/// A split unit, its abbreviations, and the sections that its references lead into.
pub(crate) struct SplitUnit<'a> {
    unit: Unit<'a>,
    table: Table,
    sections: Sections<'a>,
    /// `.debug_loc.dwo` and `.debug_loclists.dwo`.
    locations: [&'a [u8]; 2],
}

impl<'a> SplitUnit<'a> {
    /// Returns the local variables of the function at an address.
    pub(crate) fn locals(&self, skeleton: Unit<'a>, address: u64) -> Vec<LocalVariable> {
        let starts = UnitStarts::default();
        let info = InfoSection {
            sections: self.sections,
            starts: &starts,
        };
        let variables = Variables::of_split(info, self.locations, skeleton);
        variables.locals(self.unit.offset, address)
    }

    /// As [`Scratch::resolve`], with the functions of this unit and the lines of its skeleton.
    pub(crate) fn resolve<'b>(
        mut self,
        skeleton: &Unit<'b>,
        context: Context<'b>,
        wanted: &[u64],
        out: &mut Answers,
        each: impl FnMut(&mut Answers, usize, usize),
    ) -> Option<Missing>
    where
        'b: 'a,
    {
        self.unit.adopt(skeleton);
        let starts = UnitStarts::default();
        let context = Context {
            references: References {
                main: InfoSection {
                    sections: self.sections,
                    starts: &starts,
                },
                supplement: None,
            },
            ..context
        };
        // Cached names are of one file only.
        let mut scratch = Scratch::default();
        let entries = Some((&self.unit, &self.table));
        scratch.resolve(skeleton, entries, context, wanted, out, each)
    }
}

/// A file of split units: a single one, or a package with or without an index (DWARF 5, section
/// 7.3.5).
#[derive(Debug)]
pub(crate) struct SplitFile {
    container: Container,
    units: OnceLock<Units>,
}

/// Units of a file by id: their rows in the index, or their offsets without one.
#[derive(Debug, Default)]
struct Units {
    by_id: HashMap<u64, usize>,
    /// Why the list is incomplete, if it is.
    damage: Option<DwarfError>,
}

/// Units in the contribution of an index row: the compilation unit and its type units.
const MAX_UNITS_IN_ROW: usize = 16;

impl SplitFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(SplitFile {
            container: Container::open(path)?,
            units: OnceLock::new(),
        })
    }

    /// Returns whether the file has the split unit with this id.
    pub(crate) fn has(&self, id: DwoId) -> bool {
        matches!(self.find(id), Ok(Some(_)))
    }

    /// Returns the split unit with this id.
    pub(crate) fn find(&self, id: DwoId) -> Result<Option<SplitUnit<'_>>, DwarfError> {
        let all = Sections::of(&self.container, true);
        // The index section of a package has no `.dwo` in its name.
        let index = self.container.debug.get(SectionId::DebugCuIndex, false);
        let units = self.units.get_or_init(|| match index {
            [] => Units::of_all(&all),
            index => Units::of_index(index, &all).unwrap_or_else(Units::damaged),
        });
        let Some(&at) = units.by_id.get(&id.0) else {
            return units.damage.map_or(Ok(None), Err);
        };
        let get = |id| self.container.debug.get(id, true);
        let mut locations = [get(SectionId::DebugLoc), get(SectionId::DebugLocLists)];
        if index.is_empty() {
            return read(all, locations, at, id);
        }
        let index = DebugCuIndex::from(all.slice(index)).index()?;
        let row = u32::try_from(at).map_err(|_| DwarfError::Truncated)?;
        let mut own = all;
        for part in index.sections(row)? {
            let start = part.offset as usize;
            let end = start
                .checked_add(part.size as usize)
                .ok_or(DwarfError::Truncated)?;
            match part.section {
                IndexSectionId::DebugAbbrev => own.abbrev = slice(all.abbrev, start, end)?,
                IndexSectionId::DebugInfo => own.info = slice_data(all.info, start, end)?,
                IndexSectionId::DebugLine => own.line = slice_data(all.line, start, end)?,
                IndexSectionId::DebugRngLists => own.rnglists = slice(all.rnglists, start, end)?,
                IndexSectionId::DebugStrOffsets => {
                    own.str_offsets = slice(all.str_offsets, start, end)?;
                }
                IndexSectionId::DebugLoc => locations[0] = slice(locations[0], start, end)?,
                IndexSectionId::DebugLocLists => locations[1] = slice(locations[1], start, end)?,
                _ => {}
            }
        }
        let info = own.info.from(0).unwrap_or_default();
        let mut units = DebugInfo::from(own.slice(info)).units();
        for _ in 0..MAX_UNITS_IN_ROW {
            let Some(unit) = units.next()? else { break };
            if let Some(offset) = unit.debug_info_offset()
                && let Some(unit) = read(own, locations, offset.0, id)?
            {
                return Ok(Some(unit));
            }
        }
        Ok(None)
    }
}

impl Units {
    fn damaged(error: DwarfError) -> Self {
        Units {
            damage: Some(error),
            ..Units::default()
        }
    }

    /// Reads the units of a file without an index.
    fn of_all(sections: &Sections<'_>) -> Self {
        let mut units = Units::default();
        units.damage = units.add_all(sections).err();
        units
    }

    fn add_all(&mut self, sections: &Sections<'_>) -> Result<(), DwarfError> {
        let info = sections.info.from(0).unwrap_or_default();
        let mut units = DebugInfo::from(sections.slice(info)).units();
        let mut table = Table::default();
        while let Some(unit) = units.next()? {
            let Some(offset) = unit.debug_info_offset() else {
                continue;
            };
            table.check(sections)?;
            if let Some(id) = Unit::read(sections, offset.0, &mut table)?.dwo_id {
                self.by_id.entry(id.0).or_insert(offset.0);
            }
        }
        Ok(())
    }

    /// Reads the slots of an index: a header of 16 bytes, the ids, then the rows, 0 for none.
    fn of_index(index: &[u8], sections: &Sections<'_>) -> Result<Self, DwarfError> {
        let slots = DebugCuIndex::from(sections.slice(index))
            .index()?
            .slot_count();
        let ids = (slots as usize)
            .checked_mul(8)
            .ok_or(DwarfError::Truncated)?;
        let tables = index.get(16..).unwrap_or_default();
        let (ids, rows) = tables.split_at_checked(ids).ok_or(DwarfError::Truncated)?;
        let pairs = ids.as_chunks::<8>().0.iter().zip(rows.as_chunks::<4>().0);
        let endian = sections.endian;
        let pairs = pairs.map(|(id, row)| (endian.read_u64(id), endian.read_u32(row) as usize));
        let mut units = Units::default();
        for (id, row) in pairs.filter(|&(_, row)| row != 0) {
            units.by_id.entry(id).or_insert(row);
        }
        Ok(units)
    }
}

fn slice(section: &[u8], start: usize, end: usize) -> Result<&[u8], DwarfError> {
    section.get(start..end).ok_or(DwarfError::Truncated)
}

fn slice_data(
    section: SectionData<'_>,
    start: usize,
    end: usize,
) -> Result<SectionData<'_>, DwarfError> {
    let len = end.checked_sub(start).ok_or(DwarfError::Truncated)?;
    let from = section.from(start).ok_or(DwarfError::Truncated)?;
    Ok(SectionData::Whole(slice(from, 0, len)?))
}

/// Returns the unit at an offset, if it has this id.
fn read<'a>(
    sections: Sections<'a>,
    locations: [&'a [u8]; 2],
    offset: usize,
    id: DwoId,
) -> Result<Option<SplitUnit<'a>>, DwarfError> {
    let mut table = Table::default();
    let unit = Unit::read(&sections, offset, &mut table)?;
    Ok((unit.dwo_id == Some(id)).then_some(SplitUnit {
        unit,
        table,
        sections,
        locations,
    }))
}
