//! How much may be read of what many entries can share.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;

use super::form::Bad;
use super::lines::Lines;
use super::unit::{Sections, Unit};

/// What is read of the smallest file before sharing is suspicious.
const FREE: usize = 1 << 16;

/// Entries may name one list together, so a small file can state more ranges than memory holds. No entry of a list is
/// shorter than two bytes and most are longer, so one for every byte leaves room for the sharing of real tools.
#[derive(Debug, Default)]
pub(crate) struct Budget(usize);

impl Budget {
    /// For the range lists of one unit, or once for those of all units.
    pub(crate) fn for_ranges(sections: &Sections<'_>) -> Self {
        let lists = [sections.ranges.len(), sections.rnglists.len()];
        Self(lists.into_iter().fold(FREE, usize::saturating_add))
    }

    /// For the extents of all units: line tables stand in where there are no ranges, and every unit has its own.
    pub(crate) fn for_extents(sections: &Sections<'_>) -> Self {
        let lists = Self::for_ranges(sections).0;
        Self(lists.saturating_add(sections.line.len()))
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<(), Bad> {
        match self.0.checked_sub(count) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(Bad::Shared)
            }
        }
    }
}

/// How often the line tables of a file may be read for different units: tables are a unit's own, or shared by a few.
const LINE_SHARING: usize = 4;

/// The line tables of one file, each read for one unit as often as asked for, and for different units within bounds.
#[derive(Debug, Default)]
pub(crate) struct LineTables(Mutex<Charged>);

#[derive(Debug, Default)]
struct Charged {
    /// By offset in `.debug_info`.
    units: FxHashSet<usize>,
    bytes: usize,
}

impl LineTables {
    /// The line table of a unit, if it has one.
    pub(crate) fn read<'a>(&self, unit: &Unit<'a>) -> Result<Option<Lines<'a>>, Bad> {
        if unit.stmt_list.is_none() {
            return Ok(None);
        }
        let most = LINE_SHARING
            .saturating_mul(unit.sections.line.len())
            .saturating_add(FREE);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let charged = lock();
            if charged.bytes > most && !charged.units.contains(&unit.offset) {
                return Err(Bad::SharedLines);
            }
        }
        let lines = Lines::read(unit)?;
        let mut charged = lock();
        if charged.units.insert(unit.offset) {
            let len = lines.as_ref().map_or(0, Lines::len);
            charged.bytes = charged.bytes.saturating_add(len);
        }
        Ok(lines)
    }
}
