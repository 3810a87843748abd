//! Finds the unit of an address.

use std::sync::OnceLock;

use gimli::{
    ArangeHeader, DebugAranges, DebugInfo, EndianSlice, Endianity, Reader, RunTimeEndian, SectionId,
};

use super::budget::Budget;
use super::form::DwarfError;
use super::lines::LineProgram;
use super::ranges::Ranges;
use super::unit::{Sections, Table, Unit};
use crate::elf::container::Container;
use crate::elf::sections::SectionData;

/// The units of a file by address: first from `.debug_aranges`, then from the units themselves,
/// each read on demand.
///
/// Where units overlap, the first one in the file wins: of an inline function in several units the
/// linker keeps the first copy, and with GNU's linker the debug information of the other units
/// refers to that copy too.
#[derive(Debug, Default)]
pub(crate) struct UnitIndex {
    aranges: OnceLock<Aranges>,
    unlisted: OnceLock<(Ranges<usize>, Option<DwarfError>)>,
}

#[derive(Debug)]
struct Aranges {
    ranges: Ranges<usize>,
    /// Offsets of the listed units, sorted.
    units: Vec<usize>,
    /// No unlisted unit can have a listed address.
    is_complete: bool,
}

impl UnitIndex {
    /// Returns the unit with the code at `va`, if `.debug_aranges` suffices to find it.
    pub(crate) fn listed(&self, container: &Container, va: u64) -> Option<usize> {
        let aranges = self.aranges.get_or_init(|| aranges(container));
        aranges.ranges.find(va).filter(|_| aranges.is_complete)
    }

    /// Returns the unit with the code at `va`.
    pub(crate) fn find(
        &self,
        container: &Container,
        sections: &Sections<'_>,
        starts: &UnitStarts,
        va: u64,
    ) -> Option<usize> {
        let aranges = self.aranges.get_or_init(|| aranges(container));
        let listed = aranges.ranges.find(va);
        if listed.is_some() && aranges.is_complete {
            return listed;
        }
        let unlisted = || unlisted(container, sections, starts, &aranges.units);
        let (unlisted, _) = self.unlisted.get_or_init(unlisted);
        // The first in the file.
        listed.into_iter().chain(unlisted.find(va)).min()
    }

    /// Calls `each` with every address at which the unit can change.
    pub(crate) fn each_boundary(
        &self,
        container: &Container,
        sections: &Sections<'_>,
        starts: &UnitStarts,
        mut each: impl FnMut(u64),
    ) {
        let aranges = self.aranges.get_or_init(|| aranges(container));
        aranges.ranges.boundaries().for_each(&mut each);
        let unlisted = || unlisted(container, sections, starts, &aranges.units);
        let (unlisted, _) = self.unlisted.get_or_init(unlisted);
        unlisted.boundaries().for_each(each);
    }

    /// Returns why the index is incomplete, if it is.
    pub(crate) fn damage(&self) -> Option<DwarfError> {
        self.unlisted.get().and_then(|&(_, damage)| damage)
    }
}

/// Reads `.debug_aranges` (DWARF 5, section 6.1.2).
fn aranges(container: &Container) -> Aranges {
    let data = container.debug.get(SectionId::DebugAranges, false);
    let data = EndianSlice::new(data, container.endian);
    let mut ranges: Vec<(u64, u64, usize)> = Vec::new();
    let mut units = Vec::new();
    let mut headers = DebugAranges::from(data).headers();
    // A damaged table ends here; the units that it does not list are read themselves.
    while let Ok(Some(header)) = headers.next() {
        let unit = header.debug_info_offset().0;
        let from = ranges.len();
        let mut add = |start: u64, len: u64| {
            // Functions that the linker dropped have an address such as 0.
            if let Some(end) = start.checked_add(len)
                && start < end
                && container.is_code(start)
            {
                // Compilers list one range per function, and linkers keep them adjacent.
                match ranges.last_mut() {
                    Some((_, last, same)) if *same == unit && *last == start => *last = end,
                    _ => ranges.push((start, end, unit)),
                }
            }
        };
        let is_whole = match wide_entries(&data, &header) {
            Some(entries) => {
                entries.for_each(|[start, len]| add(start, len));
                true
            }
            None => {
                let mut entries = header.entries();
                loop {
                    match entries.next_raw() {
                        Ok(Some(entry)) => add(entry.address(), entry.length()),
                        Ok(None) => break true,
                        Err(_) => break false,
                    }
                }
            }
        };
        // Some producers write no entries for a unit with code.
        if is_whole && ranges.len() > from {
            units.push(unit);
        }
    }
    units.sort_unstable();
    units.dedup();
    Aranges {
        ranges: Ranges::new(ranges),
        units,
        // GCC lists every unit with code. A unit that another compiler leaves out may have the copy
        // that the linker kept.
        is_complete: container.is_all_of_gcc(),
    }
}

/// Returns the entries of a header with addresses of eight bytes, start and length. Checking the size
/// of each number, as `gimli` does, takes most of the time for one answer in a large file.
fn wide_entries<'d>(
    data: &EndianSlice<'d, RunTimeEndian>,
    header: &ArangeHeader<EndianSlice<'d, RunTimeEndian>>,
) -> Option<impl Iterator<Item = [u64; 2]> + use<'d>> {
    const ENTRY: usize = 16;
    let encoding = header.encoding();
    let format = encoding.format;
    let own = data.slice().get(header.offset().0..)?;
    let len_size = usize::from(format.initial_length_size());
    let unit = own.get(..len_size.checked_add(header.length())?)?;
    // The length, the version, the unit's offset, and the sizes of addresses and segments.
    let head = len_size.saturating_add(usize::from(format.word_size()).saturating_add(4));
    let entries = unit.get(head.next_multiple_of(ENTRY)..)?;
    let endian = data.endian();
    let numbers = move |entry: &[u8; ENTRY]| {
        let [start, len] = entry.as_chunks::<8>().0 else {
            return [0; 2];
        };
        [endian.read_u64(start), endian.read_u64(len)]
    };
    (encoding.address_size == 8).then(|| entries.as_chunks::<ENTRY>().0.iter().map(numbers))
}

/// Reads the ranges of the units that are not `listed`.
fn unlisted(
    container: &Container,
    sections: &Sections<'_>,
    starts: &UnitStarts,
    listed: &[usize],
) -> (Ranges<usize>, Option<DwarfError>) {
    let mut ranges = Vec::new();
    let mut damage = None;
    // Units without ranges use their line tables instead.
    let parts = [
        sections.ranges.len(),
        sections.rnglists.len(),
        sections.line.len(),
    ];
    let mut budget = Budget::of(parts.into_iter().fold(0, usize::saturating_add));
    let mut table = Table::default();
    let mut add = |sections: &Sections<'_>, offset: usize| {
        if let Err(error) = table.check(sections) {
            damage = Some(error);
            return;
        }
        // Damage of an unreadable unit is reported when an address is resolved in it.
        if listed.binary_search(&offset).is_err()
            && let Ok(unit) = Unit::read(sections, offset, &mut table)
        {
            let read = unit_ranges(&unit, &mut budget, &mut |start, end| {
                if container.is_code(start) {
                    ranges.push((start, end, offset));
                }
            });
            damage = damage.or(read.err().filter(|&error| error == DwarfError::Shared));
        }
    };
    starts.each(sections, &mut add);
    (Ranges::new(ranges), damage)
}

fn unit_ranges(
    unit: &Unit<'_>,
    budget: &mut Budget,
    each: &mut impl FnMut(u64, u64),
) -> Result<(), DwarfError> {
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
    // Some assemblers write lines only.
    if !unit.has_code || unit.stmt_list.is_none() {
        return Ok(());
    }
    budget.take(1)?;
    if let Some(lines) = LineProgram::read(unit)? {
        budget.take(lines.len())?;
        lines.run(|_| true, |start, end, _| each(start, end))?;
    }
    Ok(())
}

/// Offsets of the units in `.debug_info`.
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

    /// Calls `each` with every unit: the sections that it is read from, and its offset.
    pub(crate) fn each(&self, sections: &Sections<'_>, mut each: impl FnMut(&Sections<'_>, usize)) {
        match sections.info {
            SectionData::Packed(chunks) => chunks.each(|offset, unit| {
                let info = SectionData::One(offset, unit);
                each(&Sections { info, ..*sections }, offset);
            }),
            _ => {
                for &offset in self.all(sections) {
                    each(sections, offset);
                }
            }
        }
    }

    pub(crate) fn containing(&self, sections: &Sections<'_>, at: usize) -> Option<usize> {
        if let SectionData::Packed(chunks) = sections.info {
            return chunks.start(at);
        }
        let all = self.all(sections);
        let next = all.partition_point(|&start| start <= at);
        all.get(next.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries are those that `gimli` reads, also after damaged lengths.
    #[test]
    fn wide_entries_are_those_of_gimli() {
        for endian in [RunTimeEndian::Little, RunTimeEndian::Big] {
            let is_big = endian == RunTimeEndian::Big;
            let number = |number: u64, size: usize| {
                let mut bytes = number.to_le_bytes().get(..size).unwrap().to_vec();
                if is_big {
                    bytes.reverse();
                }
                bytes
            };
            let unit = |len: u64, entries: &[[u64; 2]]| {
                let entries = entries.as_flattened().iter();
                let head = [
                    number(len, 4),
                    number(2, 2),
                    number(7, 4),
                    vec![8, 0, 0, 0, 0, 0],
                ];
                let entries: Vec<u8> = entries.flat_map(|n| number(*n, 8)).collect();
                [head.concat(), entries].concat()
            };
            let mut bytes = unit(60, &[[0x1000, 0x10], [0x2000, 0x20], [0, 0]]);
            bytes.extend(unit(34, &[[0x3000, 0x30], [5, 6]]));
            let data = EndianSlice::new(&bytes, endian);
            let mut headers = DebugAranges::from(data).headers();
            let mut count = 0_usize;
            while let Ok(Some(header)) = headers.next() {
                let wide = wide_entries(&data, &header).unwrap();
                let wide: Vec<_> = wide.filter(|entry| *entry != [0, 0]).collect();
                let mut entries = header.entries();
                let mut expected = Vec::new();
                while let Ok(Some(entry)) = entries.next_raw() {
                    expected.push([entry.address(), entry.length()]);
                }
                assert_eq!(wide, expected);
                count = count.saturating_add(wide.len());
            }
            assert_eq!(count, 3);
        }
    }
}
