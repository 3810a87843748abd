//! Split DWARF: entries in `.dwo` files of their own, or many of them in one package (`.dwp`).

use gimli::{DebugCuIndex, DebugInfo, DwoId, IndexSectionId, SectionId};

use super::form::Bad;
use super::index::UnitStarts;
use super::names::Space;
use super::resolve::{Context, Scratch};
use super::unit::{Sections, Table, Unit};
use crate::answer::{Answers, Missing};
use crate::elf::container::Container;
use crate::elf::sections::Parts;

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

/// The split unit with that id: in a package through its index (DWARF 5, section 7.3.5), else in a file of one unit.
pub(crate) fn find(container: &Container, id: DwoId) -> Result<Option<Split<'_>>, Bad> {
    let all = Sections::of(container, true);
    // The index of a package is not named `.dwo`.
    let index = container.debug.get(SectionId::DebugCuIndex, false);
    if index.is_empty() {
        return find_in(all, id);
    }
    let index = DebugCuIndex::from(all.slice(index)).index()?;
    let Some(row) = index.find(id.0) else {
        return Ok(None);
    };
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
            IndexSectionId::DebugStrOffsets => own.str_offsets = cut(all.str_offsets, start, end)?,
            _ => {}
        }
    }
    find_in(own, id)
}

fn cut(section: &[u8], start: usize, end: usize) -> Result<&[u8], Bad> {
    section.get(start..end).ok_or(Bad::Truncated)
}

fn cut_parts(section: Parts<'_>, start: usize, end: usize) -> Result<Parts<'_>, Bad> {
    let len = end.checked_sub(start).ok_or(Bad::Truncated)?;
    let from = section.from(start).ok_or(Bad::Truncated)?;
    Ok(Parts::Whole(cut(from, 0, len)?))
}

fn find_in(sections: Sections<'_>, id: DwoId) -> Result<Option<Split<'_>>, Bad> {
    let info = sections.info.from(0).unwrap_or_default();
    let mut units = DebugInfo::from(sections.slice(info)).units();
    while let Some(header) = units.next()? {
        let Some(offset) = header.debug_info_offset() else {
            continue;
        };
        let mut table = Table::default();
        let unit = Unit::read(&sections, offset.0, &mut table)?;
        if unit.dwo_id == Some(id) {
            return Ok(Some(Split {
                unit,
                table,
                sections,
            }));
        }
    }
    Ok(None)
}
