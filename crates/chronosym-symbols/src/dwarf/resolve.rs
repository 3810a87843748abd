//! All wanted addresses of one unit at once.

use std::ops::Range;

use chronosym_types::hash::HashMap;

use super::form::Bad;
use super::functions::{NONE, Node, Walk};
use super::known::Known;
use super::lines::{LineTables, Lines, Row};
use super::names::{Names, Space};
use super::unit::{Table, Unit};
use crate::answer::{Answers, Missing, NonZeroId, RawFrame, Source};
use crate::elf::container::contains;

/// Functions inlined into each other at one address that become frames: compilers nest some sixty. Every address could have as
/// many as entries nest.
const MOST_INLINED: usize = 256;

/// What a worker keeps from unit to unit.
#[derive(Debug, Default)]
pub(crate) struct Scratch<'a> {
    pub(crate) table: Table,
    names: Names<'a>,
    walk: Walk,
    rows: Vec<Option<Row>>,
    files: HashMap<u32, Option<NonZeroId>>,
}

/// What belongs to the file rather than the unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) main: Space<'a>,
    pub(crate) supplement: Option<Space<'a>>,
    /// Virtual addresses of code, sorted, disjoint.
    pub(crate) code: &'a [Range<u64>],
    pub(crate) inlines: bool,
    pub(crate) lines: bool,
    pub(crate) tables: &'a LineTables,
    /// For how many units each line table is read, on average.
    pub(crate) line_share: usize,
}

impl<'a> Context<'a> {
    /// The line table of a unit, if it has one that is wanted.
    fn lines_of<'u>(&self, unit: &Unit<'u>) -> Result<Option<Lines<'u>>, Bad> {
        match self.lines {
            true => self.tables.read(unit, self.line_share),
            false => Ok(None),
        }
    }
}

impl<'a> Scratch<'a> {
    /// Appends the frames of each address of `wanted` (sorted) to `out`, calling `each` with where they begin.
    ///
    /// `split` is the unit with the entries where `unit` is only their skeleton.
    /// An address without a function gets a frame of its line alone, without a name, or none. Damage ends the reading of
    /// what is damaged, is noted in `out` and is the result.
    pub(crate) fn resolve(
        &mut self,
        unit: &Unit<'a>,
        split: Option<(&Unit<'a>, &Table)>,
        context: Context<'a>,
        wanted: &[u64],
        out: &mut Answers,
        each: impl FnMut(&mut Answers, usize, usize),
    ) -> Option<Missing> {
        let mut damage = Damage::of(unit);
        self.rows.clear();
        self.rows.resize(wanted.len(), None);
        let lines = context.lines_of(unit).unwrap_or_else(|bad| {
            damage.note(out, "line table", bad);
            None
        });
        if let Some(lines) = &lines {
            let rows = &mut self.rows;
            // Rows ascend within a sequence, so one pass over the addresses from its start serves it.
            let next = std::cell::Cell::new(0);
            let enter = |start: u64| {
                next.set(wanted.partition_point(|&va| va < start));
                // A sequence that does not begin in code is one that the linker dropped.
                next.get() < wanted.len() && contains(context.code, start)
            };
            let row = |from: u64, to: u64, row: &Row| {
                let at = next.get();
                if wanted.get(at).is_none_or(|&va| va >= to) {
                    return;
                }
                let (Some(wanted), Some(rows)) = (wanted.get(at..), rows.get_mut(at..)) else {
                    return;
                };
                // A sequence that jumps back leaves addresses behind that an earlier row has answered.
                let passed = wanted.iter().zip(rows).take_while(|(va, _)| **va < to);
                let passed = passed.map(|(&va, found)| {
                    if va >= from {
                        *found = Some(*row);
                    }
                });
                next.set(at.saturating_add(passed.count()));
            };
            if let Err(bad) = lines.run(enter, row) {
                damage.note(out, "line table", bad);
            }
        }

        let own = std::mem::take(&mut self.table);
        let (entries, table) = split.unwrap_or((unit, &own));
        let from = entries.first_child;
        if let Err(bad) = self
            .walk
            .run(entries, &table.abbreviations, from, wanted, context.code)
        {
            damage.note(out, "entries", bad);
        }
        let parts = Parts {
            unit,
            lines: lines.as_ref(),
            entries,
            table,
        };
        self.add_frames(parts, context, wanted.len(), &mut damage, out, each);
        self.table = own;
        damage.missing
    }

    /// As [`Scratch::resolve`], for one address of a unit that is known.
    pub(crate) fn resolve_known(
        &mut self,
        unit: &Unit<'a>,
        known: &Known,
        context: Context<'a>,
        wanted: u64,
        out: &mut Answers,
        each: impl FnMut(&mut Answers, usize, usize),
    ) -> Option<Missing> {
        let mut damage = Damage::of(unit);
        for &(what, bad) in &known.damage {
            damage.note(out, what, bad);
        }
        self.rows.clear();
        self.rows.push(known.row(wanted).filter(|_| context.lines));
        // Without a function there is nothing to walk.
        let from = known.function(wanted).unwrap_or(unit.data.len());
        let abbreviations = &known.table.abbreviations;
        if let Err(bad) = self
            .walk
            .run(unit, abbreviations, from, &[wanted], context.code)
        {
            damage.note(out, "entries", bad);
        }
        let lines = context.lines_of(unit).ok().flatten();
        let parts = Parts {
            unit,
            lines: lines.as_ref(),
            entries: unit,
            table: &known.table,
        };
        self.add_frames(parts, context, 1, &mut damage, out, each);
        damage.missing
    }

    /// Appends the frames of `count` addresses, whose functions and rows are known by now.
    fn add_frames(
        &mut self,
        parts: Parts<'a, '_>,
        context: Context<'a>,
        count: usize,
        damage: &mut Damage,
        out: &mut Answers,
        mut each: impl FnMut(&mut Answers, usize, usize),
    ) {
        let Parts {
            unit,
            lines,
            entries,
            table,
        } = parts;
        // Without its split part a unit has the lines of inlined code and not the functions that they are in.
        let skeleton = unit.dwo_name.is_some() && std::ptr::eq(unit, entries);
        self.files.clear();
        let names = &mut self.names;
        let files = &mut self.files;
        let mut file = |out: &mut Answers, index: u32| -> Option<NonZeroId> {
            let lines = lines?;
            *files.entry(index).or_insert_with(|| {
                lines
                    .path(unit, index)
                    .and_then(|path| out.files.intern(&path))
            })
        };
        for i in 0..count {
            let start = out.frames.len();
            let row = self.rows.get(i).copied().flatten();
            let mut place = Place {
                file: row.and_then(|r| file(out, r.file)),
                line: row.map_or(0, |r| r.line),
                column: row.map_or(0, |r| r.column),
                discriminator: row.map_or(0, |r| r.discriminator),
                limited: row.is_none() && damage.lines,
            };
            let mut id = self.walk.best.get(i).copied().unwrap_or(NONE);
            if id == NONE && row.is_some() && !skeleton {
                out.frames.push(place.frame(entries, None, None));
            }
            while let Some(node) = self.walk.nodes.get(id as usize) {
                let inlined = node.parent != NONE;
                if context.inlines || !inlined {
                    let name = match names.find(
                        entries,
                        table,
                        node.entry,
                        context.main,
                        context.supplement,
                        &mut out.names,
                    ) {
                        Ok(name) => name,
                        Err(bad) => {
                            damage.note(out, "names", bad);
                            None
                        }
                    };
                    let piece = self.walk.pieces.get(i).filter(|_| !inlined);
                    let start = piece.copied().unwrap_or(node.start);
                    out.frames
                        .push(place.frame(entries, Some((node, start)), name));
                    place = Place {
                        file: match node.call_file {
                            0 if unit.encoding.version < 5 => None,
                            index if inlined => file(out, index),
                            _ => None,
                        },
                        line: if context.lines { node.call_line } else { 0 },
                        column: if context.lines { node.call_column } else { 0 },
                        discriminator: 0,
                        limited: false,
                    };
                }
                let frames = out.frames.len().saturating_sub(start);
                id = match frames.checked_add(1) == Some(MOST_INLINED) && inlined {
                    true => {
                        damage.note(out, "inlined functions", Bad::Depth);
                        node.root
                    }
                    false => node.parent,
                };
            }
            each(out, i, start);
        }
    }
}

/// A unit and what was read of it.
#[derive(Clone, Copy)]
struct Parts<'a, 'p> {
    unit: &'p Unit<'a>,
    lines: Option<&'p Lines<'a>>,
    /// The unit with the entries: the same, but for split ones.
    entries: &'p Unit<'a>,
    table: &'p Table,
}

/// Says what is damaged or would cost too much, and remembers which.
struct Damage {
    unit: usize,
    missing: Option<Missing>,
    /// The lines would cost too much.
    lines: bool,
}

impl Damage {
    fn of(unit: &Unit<'_>) -> Self {
        Damage {
            unit: unit.offset,
            missing: None,
            lines: false,
        }
    }

    fn note(&mut self, out: &mut Answers, what: &str, bad: Bad) {
        self.lines |= bad == Bad::SharedLines;
        self.missing = match self.missing {
            None if bad.is_limit() => Some(Missing::LimitReached),
            Some(Missing::LimitReached) if bad.is_limit() => Some(Missing::LimitReached),
            _ => Some(Missing::Damaged),
        };
        out.note_damage(format!("{what} of the unit at {:#x}: {bad}", self.unit));
    }
}

/// Where in the source a frame stands.
struct Place {
    file: Option<NonZeroId>,
    line: u32,
    column: u32,
    discriminator: u32,
    /// To find it out would cost too much.
    limited: bool,
}

impl Place {
    /// `node` with where its code begins.
    fn frame(
        &self,
        unit: &Unit<'_>,
        node: Option<(&Node, u64)>,
        name: Option<NonZeroId>,
    ) -> RawFrame {
        RawFrame {
            name,
            symbol: None,
            file: self.file,
            line: self.line,
            column: self.column,
            discriminator: self.discriminator,
            function: node.map_or(0, |(_, start)| start),
            has_function: node.is_some(),
            inlined: node.is_some_and(|(n, _)| n.parent != NONE),
            plain_names: unit.plain_names,
            line_limited: self.limited,
            source: Source::DebugInfo,
        }
    }
}
