//! What is kept of a unit for single lookups: which function, and which row of lines, is at an address.
//!
//! A batch walks each unit once for all its addresses. Whoever asks one address at a time would walk it anew each time; so
//! the walk over all the unit is made once, and each answer walks its function only.

use std::ops::Range;

use super::form::Bad;
use super::functions::Walk;
use super::lines::{Lines, Row};
use super::unit::{Table, Unit};
use crate::elf::container::contains;

/// Ranges of addresses that may overlap, in the order of the file, found by address.
#[derive(Debug)]
struct Spans<T> {
    /// Sorted by where they begin.
    spans: Vec<Span<T>>,
    /// The furthest end of a span and all before it.
    reach: Vec<u64>,
}

#[derive(Debug)]
struct Span<T> {
    begin: u64,
    end: u64,
    /// Its place in the file's order.
    order: u32,
    what: T,
}

impl<T> Spans<T> {
    fn new(all: Vec<(u64, u64, T)>) -> Self {
        let number = |(order, (begin, end, what))| Span {
            begin,
            end,
            order,
            what,
        };
        let mut spans: Vec<Span<T>> = (0..).zip(all).map(number).collect();
        spans.sort_unstable_by_key(|span| (span.begin, span.order));
        let mut furthest = 0;
        let reach = spans
            .iter()
            .map(|span| {
                furthest = span.end.max(furthest);
                furthest
            })
            .collect();
        Spans { spans, reach }
    }

    /// All that cover an address.
    fn at(&self, va: u64) -> impl Iterator<Item = &Span<T>> {
        let next = self.spans.partition_point(|span| span.begin <= va);
        let spans = self.spans.get(..next).unwrap_or_default();
        let reach = self.reach.get(..next).unwrap_or_default();
        let before = spans.iter().zip(reach).rev();
        before
            .take_while(move |&(_, &reach)| va < reach)
            .map(|(span, _)| span)
            .filter(move |span| va < span.end)
    }

    fn bytes(&self) -> usize {
        let one = size_of::<Span<T>>().saturating_add(size_of::<u64>());
        self.spans.capacity().saturating_mul(one)
    }
}

/// One unit, decoded as far as it pays.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) table: Table,
    /// The entries of functions, by their code.
    functions: Spans<usize>,
    /// Sequences of lines, each with its rows.
    sequences: Spans<Range<usize>>,
    rows: Vec<(u64, u64, Row)>,
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
        let mut rows: Vec<(u64, u64, Row)> = Vec::new();
        let mut sequences: Vec<(u64, u64, Range<usize>)> = Vec::new();
        let read = lines.and_then(|lines| {
            let Some(lines) = lines else { return Ok(()) };
            let open = std::cell::Cell::new(false);
            let enter = |start: u64| {
                open.set(true);
                contains(code, start)
            };
            lines.run(enter, |from, to, row| {
                if open.replace(false) {
                    sequences.push((from, to, rows.len()..rows.len()));
                }
                let Some((_, end, own)) = sequences.last_mut() else {
                    return;
                };
                // A sequence that jumps back answers only what lies ahead.
                let first = own.start == own.end;
                let from = if first { from } else { from.max(*end) };
                if from < to {
                    rows.push((from, to, *row));
                    (*end, own.end) = (to, rows.len());
                }
            })
        });
        if let Err(bad) = read {
            damage.push(("line table", bad));
        }
        rows.shrink_to_fit();
        Known {
            table,
            functions: Spans::new(functions),
            sequences: Spans::new(sequences),
            rows,
            damage,
        }
    }

    /// The entry of the function at an address: of several the first, as in a walk.
    pub(crate) fn function(&self, va: u64) -> Option<usize> {
        let first = self.functions.at(va).min_by_key(|span| span.order)?;
        Some(first.what)
    }

    /// The row of lines at an address: of several sequences the last that has one, as in a walk.
    pub(crate) fn row(&self, va: u64) -> Option<Row> {
        let row = |span: &Span<Range<usize>>| {
            let rows = self.rows.get(span.what.clone())?;
            let next = rows.partition_point(|&(from, _, _)| from <= va);
            let (_, to, row) = rows.get(next.checked_sub(1)?)?;
            (va < *to).then_some((span.order, *row))
        };
        let last = self
            .sequences
            .at(va)
            .filter_map(row)
            .max_by_key(|(order, _)| *order);
        last.map(|(_, row)| row)
    }

    /// Heap in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let rows = self.rows.capacity();
        let parts = [
            self.table.bytes(),
            self.functions.bytes(),
            self.sequences.bytes(),
            rows.saturating_mul(size_of::<(u64, u64, Row)>()),
        ];
        parts
            .into_iter()
            .fold(size_of::<Self>(), usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn spans_are_found_as_by_looking_at_all(
            all in proptest::collection::vec((0..40_u64, 0..12_u64), 0..30),
            va in 0..60_u64,
        ) {
            let all: Vec<(u64, u64, usize)> =
                (0..).zip(all).map(|(i, (begin, len))| (begin, begin + len, i)).collect();
            let spans = Spans::new(all.clone());
            let mut found: Vec<usize> = spans.at(va).map(|span| span.what).collect();
            found.sort_unstable();
            let covers = |(begin, end, _): &&(u64, u64, usize)| (*begin..*end).contains(&va);
            let expected: Vec<usize> = all.iter().filter(covers).map(|span| span.2).collect();
            proptest::prop_assert_eq!(found, expected);
        }
    }
}
