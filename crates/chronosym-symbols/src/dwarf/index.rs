//! Which unit an address belongs to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

use gimli::{DebugAranges, DebugInfo, EndianSlice, SectionId};

use super::budget::Budget;
use super::form::Bad;
use super::lines::Lines;
use super::unit::{Sections, Table, Unit};
use crate::elf::container::Container;
use crate::elf::sections::Parts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    begin: u64,
    end: u64,
    unit: usize,
}

/// Ranges of addresses, sorted and disjoint, each with the offset of its unit.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<Piece>);

impl Ranges {
    /// Where ranges overlap the unit that is first in the file has the address: of an inline function that several units
    /// contain the linker keeps the first copy, and GNU's lets the debug information of the others point there too.
    fn new(mut pieces: Vec<Piece>) -> Self {
        // Stable, so that of equal ones the first stays first; then touching pieces of one unit become one. Compilers list a
        // piece a function and linkers keep them together. Gaps stay gaps: they may hold code of a unit not listed here.
        pieces.sort_by_key(|p| p.begin);
        let mut found = Ranges(Vec::with_capacity(pieces.len()));
        // Those that reach beyond what is done, the first unit on top.
        let mut open: BinaryHeap<Reverse<(usize, u64)>> = BinaryHeap::new();
        let mut done = 0;
        for piece in pieces {
            found.add_until(piece.begin, &mut done, &mut open);
            done = piece.begin;
            open.push(Reverse((piece.unit, piece.end)));
        }
        found.add_until(u64::MAX, &mut done, &mut open);
        found.0.shrink_to_fit();
        found
    }

    fn add_until(
        &mut self,
        until: u64,
        done: &mut u64,
        open: &mut BinaryHeap<Reverse<(usize, u64)>>,
    ) {
        while let Some(&Reverse((unit, end))) = open.peek()
            && *done < until
        {
            if end <= *done {
                open.pop();
                continue;
            }
            let (begin, end) = (*done, end.min(until));
            match self.0.last_mut() {
                Some(last) if last.unit == unit && last.end == begin => last.end = end,
                _ => self.0.push(Piece { begin, end, unit }),
            }
            *done = end;
        }
    }

    fn find(&self, va: u64) -> Option<usize> {
        let next = self.0.partition_point(|p| p.begin <= va);
        let piece = self.0.get(next.checked_sub(1)?)?;
        (va < piece.end).then_some(piece.unit)
    }
}

/// The index of a file: what `.debug_aranges` says at once, what only the units themselves say when it is needed.
#[derive(Debug, Default)]
pub(crate) struct UnitIndex {
    listed: OnceLock<Listed>,
    rest: OnceLock<(Ranges, Option<Bad>)>,
}

#[derive(Debug)]
struct Listed {
    ranges: Ranges,
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
        // As in `Ranges`: the first in the file.
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
    let mut pieces: Vec<Piece> = Vec::new();
    let mut units = Vec::new();
    let mut headers = DebugAranges::from(data).headers();
    // A damaged table ends here; the units that it does not list are asked themselves.
    while let Ok(Some(header)) = headers.next() {
        let unit = header.debug_info_offset().0;
        let from = pieces.len();
        let mut entries = header.entries();
        let mut whole = true;
        loop {
            match entries.next_raw() {
                Ok(Some(entry)) => {
                    let begin = entry.address();
                    // Entries of functions that the linker dropped stand at 0 or the like.
                    if let Some(end) = begin.checked_add(entry.length())
                        && begin < end
                        && container.is_code(begin)
                    {
                        match pieces.last_mut() {
                            Some(last) if last.unit == unit && last.end == begin => last.end = end,
                            _ => pieces.push(Piece { begin, end, unit }),
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
        if whole && pieces.len() > from {
            units.push(unit);
        }
    }
    units.sort_unstable();
    units.dedup();
    Listed {
        ranges: Ranges::new(pieces),
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
) -> (Ranges, Option<Bad>) {
    let mut pieces = Vec::new();
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
            let read = unit_ranges(&unit, &mut budget, &mut |begin, end| {
                if container.is_code(begin) {
                    pieces.push(Piece {
                        begin,
                        end,
                        unit: offset,
                    });
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
    (Ranges::new(pieces), damage)
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
        lines.run(|_| true, |begin, end, _| each(begin, end))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_first_unit_in_the_file_has_an_address(
            all in proptest::collection::vec((0..40_u64, 1..12_u64, 0..6_usize), 0..30),
            va in 0..60_u64,
        ) {
            let piece = |(begin, len, unit)| Piece { begin, end: begin + len, unit };
            let all: Vec<Piece> = all.into_iter().map(piece).collect();
            let covers = |p: &&Piece| (p.begin..p.end).contains(&va);
            let expected = all.iter().filter(covers).map(|p| p.unit).min();
            proptest::prop_assert_eq!(Ranges::new(all).find(va), expected);
        }
    }
}
