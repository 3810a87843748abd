//! What is kept of a unit for single lookups: which function, and which row of lines, is at an address.
//!
//! A batch walks each unit once for all its addresses. Whoever asks one address at a time would walk it anew each time; so
//! the walk over all the unit is made once, and each answer walks its function only.

use std::cell::Cell;
use std::cmp::Reverse;
use std::ops::Range;

use super::form::Bad;
use super::functions::Walk;
use super::lines::{Lines, Row};
use super::ranges::Ranges;
use super::unit::{Table, Unit};
use crate::elf::container::contains;

/// One unit, decoded as far as it pays.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) table: Table,
    /// Functions, each by its place in the walk and the offset of its entry: of several at an address the first
    /// answers, as in a walk.
    functions: Ranges<(u32, usize)>,
    /// Rows of lines, each with the number of its sequence: of several the last answers, as in a walk.
    rows: Ranges<(Reverse<u32>, Row)>,
    /// What ended the reading early, and of what.
    pub(crate) damage: Vec<(&'static str, Bad)>,
}

impl Known {
    /// Reads what is in `unit`, whose abbreviations are `table`'s, and its `lines`. `code` is where code may be.
    pub(crate) fn read(
        unit: &Unit<'_>,
        table: Table,
        code: &[Range<u64>],
        lines: Result<Option<Lines<'_>>, Bad>,
    ) -> Self {
        let mut damage = Vec::new();
        let mut functions = Vec::new();
        if let Err(bad) = Walk::each_function(unit, &table.abbreviations, |low, high, entry| {
            if contains(code, low) {
                functions.push((low, high, entry));
            }
        }) {
            damage.push(("entries", bad));
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
                // A sequence that jumps back answers only what lies ahead.
                let from = from.max(done.get());
                if from < to {
                    rows.push((from, to, (Reverse(sequence.get()), *row)));
                    done.set(to);
                }
            })
        });
        if let Err(bad) = read {
            damage.push(("line table", bad));
        }
        let functions = (0..).zip(functions);
        let functions = functions.map(|(place, (low, high, entry))| (low, high, (place, entry)));
        Known {
            table,
            functions: Ranges::new(functions.collect()),
            rows: Ranges::new(rows),
            damage,
        }
    }

    /// The entry of the function at an address.
    pub(crate) fn function(&self, va: u64) -> Option<usize> {
        self.functions.find(va).map(|(_, entry)| entry)
    }

    /// The row of lines at an address.
    pub(crate) fn row(&self, va: u64) -> Option<Row> {
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
