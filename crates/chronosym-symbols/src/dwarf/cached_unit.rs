//! Maps from address to function and line of one unit, cached for single lookups.
//!
//! A batch walks each unit once for all its addresses. Single lookups would walk it again each
//! time. So the whole unit is walked once, and each lookup then walks its own function only.

use std::cell::Cell;
use std::cmp::Reverse;
use std::ops::Range;

use super::form::DwarfError;
use super::functions::Walk;
use super::lines::{LineProgram, LineRow};
use super::ranges::Ranges;
use super::unit::{Table, Unit};
use crate::elf::container::contains;

/// The functions and lines of one unit by address.
#[derive(Debug)]
pub(crate) struct CachedUnit {
    pub(crate) table: Table,
    /// Functions, each as its number in the walk and the offset of its entry. Of several at an
    /// address the first wins, as in a batch.
    functions: Ranges<(u32, usize)>,
    /// Rows of the line table, each with the number of its sequence. Of several at an address the
    /// last wins, as in a batch.
    rows: Ranges<(Reverse<u32>, LineRow)>,
    /// What could not be read to the end, and why.
    pub(crate) damage: Vec<(&'static str, DwarfError)>,
}

impl CachedUnit {
    /// Reads `unit`, whose abbreviations are in `table`, and its `lines`. `code` has the ranges
    /// with code.
    pub(crate) fn read(
        unit: &Unit<'_>,
        table: Table,
        code: &[Range<u64>],
        lines: Result<Option<LineProgram<'_>>, DwarfError>,
    ) -> Self {
        let mut damage = Vec::new();
        let mut functions = Vec::new();
        if let Err(error) = Walk::each_function(unit, &table.abbreviations, |low, high, entry| {
            if contains(code, low) {
                functions.push((low, high, entry));
            }
        }) {
            damage.push(("entries", error));
        }
        let mut rows = Vec::new();
        let read = lines.and_then(|lines| {
            let Some(lines) = lines else { return Ok(()) };
            let (sequence, done) = (Cell::new(0_u32), Cell::new(0));
            let enter = |start: u64| {
                sequence.set(sequence.get().saturating_add(1));
                done.set(0);
                contains(code, start)
            };
            lines.run(enter, |from, to, row| {
                // After a jump back only addresses that are not yet covered are used.
                let from = from.max(done.get());
                if from < to {
                    rows.push((from, to, (Reverse(sequence.get()), *row)));
                    done.set(to);
                }
            })
        });
        if let Err(error) = read {
            damage.push(("line table", error));
        }
        let functions = (0..).zip(functions);
        let functions = functions.map(|(number, (low, high, entry))| (low, high, (number, entry)));
        CachedUnit {
            table,
            functions: Ranges::new(functions.collect()),
            rows: Ranges::new(rows),
            damage,
        }
    }

    /// Returns the entry of the function at an address.
    pub(crate) fn function(&self, va: u64) -> Option<usize> {
        self.functions.find(va).map(|(_, entry)| entry)
    }

    /// Returns the row of lines at an address.
    pub(crate) fn row(&self, va: u64) -> Option<LineRow> {
        self.rows.find(va).map(|(_, row)| row)
    }

    /// Heap in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let parts = [
            self.table.bytes(),
            self.functions.bytes(),
            self.rows.bytes(),
        ];
        parts
            .into_iter()
            .fold(size_of::<Self>(), usize::saturating_add)
    }
}
