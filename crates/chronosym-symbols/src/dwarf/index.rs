//! Which unit an address belongs to.

use std::sync::OnceLock;

use gimli::{DebugAranges, DebugInfo, EndianSlice, SectionId};

use super::budget::Budget;
use super::form::Bad;
use super::lines::Lines;
use super::ranges::Ranges;
use super::unit::{Sections, Table, Unit};
use crate::elf::container::Container;
use crate::elf::sections::Parts;

/// The index of a file: what `.debug_aranges` says at once, what only the units themselves say when it is needed.
///
/// Where units overlap, the one that is first in the file has the address: of an inline function that several units
/// contain the linker keeps the first copy, and GNU's lets the debug information of the others point there too.
#[derive(Debug, Default)]
pub(crate) struct UnitIndex {
    listed: OnceLock<Listed>,
    rest: OnceLock<(Ranges<usize>, Option<Bad>)>,
}

#[derive(Debug)]
struct Listed {
    ranges: Ranges<usize>,
    /// The units that are listed, by their offsets, sorted.
    units: Vec<usize>,
    /// Nothing that is listed can be that of a unit that is not.
    alone: bool,
}

impl UnitIndex {
    /// The unit that holds the code at `va`, where the file's table of them is enough to say it.
    pub(crate) fn listed(&self, container: &Container, va: u64) -> Option<usize> {
        let listed = self.listed.get_or_init(|| listed(container));
        listed.ranges.find(va).filter(|_| listed.alone)
    }

    /// The unit that says of itself that it holds the code at `va`.
    pub(crate) fn find(
        &self,
        container: &Container,
        sections: &Sections<'_>,
        starts: &UnitStarts,
        va: u64,
    ) -> Option<usize> {
        let listed = self.listed.get_or_init(|| listed(container));
        let found = listed.ranges.find(va);
        if found.is_some() && listed.alone {
            return found;
        }
        let rest = || rest(container, sections, starts, &listed.units);
        let (rest, _) = self.rest.get_or_init(rest);
        // The first in the file.
        found.into_iter().chain(rest.find(va)).min()
    }

    /// What kept the index from being whole.
    pub(crate) fn damage(&self) -> Option<Bad> {
        self.rest.get().and_then(|&(_, damage)| damage)
    }
}

/// Reads `.debug_aranges` (DWARF 5, section 6.1.2).
fn listed(container: &Container) -> Listed {
    let data = container.debug.get(SectionId::DebugAranges, false);
    let data = EndianSlice::new(data, container.endian);
    let mut ranges: Vec<(u64, u64, usize)> = Vec::new();
    let mut units = Vec::new();
    let mut headers = DebugAranges::from(data).headers();
    // A damaged table ends here; the units that it does not list are asked themselves.
    while let Ok(Some(header)) = headers.next() {
        let unit = header.debug_info_offset().0;
        let from = ranges.len();
        let mut entries = header.entries();
        let mut whole = true;
        loop {
            match entries.next_raw() {
                Ok(Some(entry)) => {
                    let start = entry.address();
                    // Entries of functions that the linker dropped stand at 0 or the like.
                    if let Some(end) = start.checked_add(entry.length())
                        && start < end
                        && container.is_code(start)
                    {
                        // Compilers list a range for each function, and linkers keep them together.
                        match ranges.last_mut() {
                            Some((_, last, same)) if *same == unit && *last == start => *last = end,
                            _ => ranges.push((start, end, unit)),
                        }
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    whole = false;
                    break;
                }
            }
        }
        // A unit without entries may as well be one whose producer did not bother.
        if whole && ranges.len() > from {
            units.push(unit);
        }
    }
    units.sort_unstable();
    units.dedup();
    Listed {
        ranges: Ranges::new(ranges),
        units,
        // GCC lists every unit with code; what other compilers leave out may hold the copy that the linker kept.
        alone: container.is_all_of_gcc(),
    }
}

/// Asks the units that are not `listed` for their ranges.
fn rest(
    container: &Container,
    sections: &Sections<'_>,
    starts: &UnitStarts,
    listed: &[usize],
) -> (Ranges<usize>, Option<Bad>) {
    let mut ranges = Vec::new();
    let mut damage = None;
    // Line tables stand in where there are no ranges, and every unit has its own.
    let parts = [
        sections.ranges.len(),
        sections.rnglists.len(),
        sections.line.len(),
    ];
    let mut budget = Budget::of(parts.into_iter().fold(0, usize::saturating_add));
    let mut table = Table::default();
    let mut ask = |sections: &Sections<'_>, offset: usize| {
        if let Err(bad) = table.check(sections) {
            damage = Some(bad);
            return;
        }
        // A unit that cannot be read says nothing; that it is damaged shows when something leads to it.
        if listed.binary_search(&offset).is_err()
            && let Ok(unit) = Unit::read(sections, offset, &mut table)
        {
            let read = unit_ranges(&unit, &mut budget, &mut |start, end| {
                if container.is_code(start) {
                    ranges.push((start, end, offset));
                }
            });
            damage = damage.or(read.err().filter(|&bad| bad == Bad::Shared));
        }
    };
    match sections.info {
        Parts::Packed(chunks) => chunks.each(|offset, unit| {
            let info = Parts::One(offset, unit);
            ask(&Sections { info, ..*sections }, offset);
        }),
        _ => {
            for &offset in starts.all(sections) {
                ask(sections, offset);
            }
        }
    }
    (Ranges::new(ranges), damage)
}

fn unit_ranges(
    unit: &Unit<'_>,
    budget: &mut Budget,
    each: &mut impl FnMut(u64, u64),
) -> Result<(), Bad> {
    if let Some(ranges) = unit.ranges {
        return unit.each_range(ranges, budget, each);
    }
    if unit.has_low_pc
        && let Some(high) = unit.high_pc
    {
        if let Some(high) = unit.high(unit.low_pc, high)
            && high > unit.low_pc
        {
            each(unit.low_pc, high);
        }
        return Ok(());
    }
    // Some assemblers state nothing but lines.
    if !unit.has_code || unit.stmt_list.is_none() {
        return Ok(());
    }
    budget.take(1)?;
    if let Some(lines) = Lines::read(unit)? {
        budget.take(lines.len())?;
        lines.run(|_| true, |start, end, _| each(start, end))?;
    }
    Ok(())
}

/// Where each unit of `.debug_info` starts.
#[derive(Debug, Default)]
pub(crate) struct UnitStarts(OnceLock<Vec<usize>>);

impl UnitStarts {
    fn all(&self, sections: &Sections<'_>) -> &[usize] {
        self.0.get_or_init(|| {
            let mut starts = Vec::new();
            let info = sections.info.from(0).unwrap_or_default();
            let mut units = DebugInfo::from(sections.slice(info)).units();
            while let Ok(Some(unit)) = units.next() {
                starts.extend(unit.debug_info_offset().map(|o| o.0));
            }
            starts
        })
    }

    pub(crate) fn containing(&self, sections: &Sections<'_>, at: usize) -> Option<usize> {
        if let Parts::Packed(chunks) = sections.info {
            return chunks.start(at);
        }
        let all = self.all(sections);
        let next = all.partition_point(|&start| start <= at);
        all.get(next.checked_sub(1)?).copied()
    }
}
