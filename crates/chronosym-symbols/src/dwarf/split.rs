//! Split DWARF: entries in `.dwo` files of their own, or many of them in one package (`.dwp`).

use std::path::Path;
use std::sync::OnceLock;

use chronosym_types::hash::HashMap;
use gimli::{DebugCuIndex, DebugInfo, DwoId, Endianity, IndexSectionId, SectionId};

use super::form::Bad;
use super::index::UnitStarts;
use super::names::Space;
use super::resolve::{Context, Scratch};
use super::unit::{Sections, Table, Unit};
use crate::answer::{Answers, Missing};
use crate::elf::container::Container;
use crate::elf::sections::Parts;
use crate::error::Error;

/// A split unit, its abbreviations, and where references out of it lead.
pub(crate) struct Split<'a> {
    unit: Unit<'a>,
    table: Table,
    sections: Sections<'a>,
}

impl<'a> Split<'a> {
    /// As [`Scratch::resolve`], the functions from this unit, the lines from its skeleton.
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
            main: Space {
                sections: self.sections,
                starts: &starts,
            },
            supplement: None,
            ..context
        };
        // Names found in a split file mean nothing in the next: working memory of its own.
        let mut scratch = Scratch::default();
        let entries = Some((&self.unit, &self.table));
        scratch.resolve(skeleton, entries, context, wanted, out, each)
    }
}

/// A file of split units: one of them, or a package of many, with an index (DWARF 5, section 7.3.5) or without.
#[derive(Debug)]
pub(crate) struct SplitFile {
    container: Container,
    units: OnceLock<Units>,
}

/// Where the units of a file are: their rows in its index, or without one their offsets.
#[derive(Debug, Default)]
struct Units {
    by_id: HashMap<u64, usize>,
    /// What ended the search for them.
    damage: Option<Bad>,
}

/// Units in what a row of an index leads to: the one that it is about, and types of it.
const MOST_IN_ROW: usize = 16;

impl SplitFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(SplitFile {
            container: Container::open(path)?,
            units: OnceLock::new(),
        })
    }

    /// Whether it holds the split unit with that id.
    pub(crate) fn has(&self, id: DwoId) -> bool {
        matches!(self.find(id), Ok(Some(_)))
    }

    /// The split unit with that id.
    pub(crate) fn find(&self, id: DwoId) -> Result<Option<Split<'_>>, Bad> {
        let all = Sections::of(&self.container, true);
        // The index of a package is not named `.dwo`.
        let index = self.container.debug.get(SectionId::DebugCuIndex, false);
        let units = self.units.get_or_init(|| match index {
            [] => Units::of_all(&all),
            index => Units::of_index(index, &all).unwrap_or_else(Units::damaged),
        });
        let Some(&at) = units.by_id.get(&id.0) else {
            return units.damage.map_or(Ok(None), Err);
        };
        if index.is_empty() {
            return read(all, at, id);
        }
        let index = DebugCuIndex::from(all.slice(index)).index()?;
        let row = u32::try_from(at).map_err(|_| Bad::Truncated)?;
        let mut own = all;
        for part in index.sections(row)? {
            let start = part.offset as usize;
            let end = start
                .checked_add(part.size as usize)
                .ok_or(Bad::Truncated)?;
            match part.section {
                IndexSectionId::DebugAbbrev => own.abbrev = cut(all.abbrev, start, end)?,
                IndexSectionId::DebugInfo => own.info = cut_parts(all.info, start, end)?,
                IndexSectionId::DebugLine => own.line = cut_parts(all.line, start, end)?,
                IndexSectionId::DebugRngLists => own.rnglists = cut(all.rnglists, start, end)?,
                IndexSectionId::DebugStrOffsets => {
                    own.str_offsets = cut(all.str_offsets, start, end)?;
                }
                _ => {}
            }
        }
        let info = own.info.from(0).unwrap_or_default();
        let mut units = DebugInfo::from(own.slice(info)).units();
        for _ in 0..MOST_IN_ROW {
            let Some(unit) = units.next()? else { break };
            if let Some(offset) = unit.debug_info_offset()
                && let Some(found) = read(own, offset.0, id)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Units {
    fn damaged(bad: Bad) -> Self {
        Units {
            damage: Some(bad),
            ..Units::default()
        }
    }

    /// The units of a file, each with its offset.
    fn of_all(sections: &Sections<'_>) -> Self {
        let mut found = Units::default();
        found.damage = found.add_all(sections).err();
        found
    }

    fn add_all(&mut self, sections: &Sections<'_>) -> Result<(), Bad> {
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

    /// The slots of an index: behind a head of 16 bytes the ids, then the rows, 0 for none.
    fn of_index(index: &[u8], sections: &Sections<'_>) -> Result<Self, Bad> {
        let slots = DebugCuIndex::from(sections.slice(index))
            .index()?
            .slot_count();
        let ids = (slots as usize).checked_mul(8).ok_or(Bad::Truncated)?;
        let tables = index.get(16..).unwrap_or_default();
        let (ids, rows) = tables.split_at_checked(ids).ok_or(Bad::Truncated)?;
        let pairs = ids.as_chunks::<8>().0.iter().zip(rows.as_chunks::<4>().0);
        let endian = sections.endian;
        let pairs = pairs.map(|(id, row)| (endian.read_u64(id), endian.read_u32(row) as usize));
        let mut found = Units::default();
        for (id, row) in pairs.filter(|&(_, row)| row != 0) {
            found.by_id.entry(id).or_insert(row);
        }
        Ok(found)
    }
}

fn cut(section: &[u8], start: usize, end: usize) -> Result<&[u8], Bad> {
    section.get(start..end).ok_or(Bad::Truncated)
}

fn cut_parts(section: Parts<'_>, start: usize, end: usize) -> Result<Parts<'_>, Bad> {
    let len = end.checked_sub(start).ok_or(Bad::Truncated)?;
    let from = section.from(start).ok_or(Bad::Truncated)?;
    Ok(Parts::Whole(cut(from, 0, len)?))
}

/// The unit at an offset, if it has that id.
fn read(sections: Sections<'_>, offset: usize, id: DwoId) -> Result<Option<Split<'_>>, Bad> {
    let mut table = Table::default();
    let unit = Unit::read(&sections, offset, &mut table)?;
    Ok((unit.dwo_id == Some(id)).then_some(Split {
        unit,
        table,
        sections,
    }))
}
