//! Resolves all wanted addresses of one unit at once.

use std::cell::Cell;
use std::ops::Range;

use chronosym_types::hash::{HashMap, HashSet};

use super::cached_unit::CachedUnit;
use super::form::DwarfError;
use super::functions::{FunctionNode, NO_NODE, Walk};
use super::lines::{LineProgram, LineRow, LineTables};
use super::names::{FunctionNames, References};
use super::unit::{Table, Unit};
use crate::answer::{Answers, FrameDetail, Missing, NonZeroId, Source, StoredFrame};
use crate::elf::container::contains;
use crate::query::Query;

/// The number of frames at one address. Compilers nest about 60 inlinees; hostile entries could
/// nest thousands at every address.
const MAX_INLINED: usize = 256;

/// Working memory, reused from unit to unit.
#[derive(Debug, Default)]
pub(crate) struct Scratch<'a> {
    pub(crate) table: Table,
    names: FunctionNames<'a>,
    walk: Walk,
    rows: Vec<Option<LineRow>>,
    /// Indexes of the addresses whose rows are those of earlier code.
    approximate: HashSet<usize>,
    files: HashMap<u32, Option<NonZeroId>>,
}

/// The file and the query that the units belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) references: References<'a>,
    /// Virtual addresses of code: sorted, disjoint ranges.
    pub(crate) code: &'a [Range<u64>],
    pub(crate) query: &'a Query,
    pub(crate) tables: &'a LineTables,
}

impl<'a> Context<'a> {
    /// Returns the line number program of a unit, if lines are wanted and it has one.
    fn lines_of<'u>(&self, unit: &Unit<'u>) -> Result<Option<LineProgram<'u>>, DwarfError> {
        match self.query.lines {
            true => self.tables.read(unit, self.query.line_share),
            false => Ok(None),
        }
    }
}

impl<'a> Scratch<'a> {
    /// Appends the frames of each address of `wanted` (sorted) to `out` and calls `each` with the
    /// index of their first.
    ///
    /// `split` is the unit with the entries if `unit` is only their skeleton. An address without a
    /// function gets a nameless frame with its line, or no frame. Damaged data is read up to
    /// the damage, which is recorded in `out` and returned.
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
        self.approximate.clear();
        self.rows.clear();
        self.rows.resize(wanted.len(), None);
        let lines = context.lines_of(unit).unwrap_or_else(|error| {
            damage.note(out, "line table", error);
            None
        });
        if let Some(lines) = &lines {
            let (rows, approximate) = (&mut self.rows, &mut self.approximate);
            let skips_line_zero = context.query.skip_line_zero;
            // The last row of the sequence with a line.
            let before = Cell::new(None);
            // Rows ascend within a sequence, so one pass over the addresses from its start
            // suffices.
            let next = Cell::new(0);
            let enter = |start: u64| {
                next.set(wanted.partition_point(|&va| va < start));
                before.set(None);
                // The linker dropped a sequence that does not start in code.
                next.get() < wanted.len() && contains(context.code, start)
            };
            let row = |from: u64, to: u64, row: &LineRow| {
                if skips_line_zero && row.line != 0 {
                    before.set(Some(*row));
                }
                let at = next.get();
                if wanted.get(at).is_none_or(|&va| va >= to) {
                    return;
                }
                let (Some(wanted), Some(rows)) = (wanted.get(at..), rows.get_mut(at..)) else {
                    return;
                };
                let instead = before.get().filter(|_| row.line == 0);
                let row = instead.as_ref().unwrap_or(row);
                let passed = assign(row, from..to, wanted, rows, |index| {
                    approximate.extend(instead.map(|_| at.saturating_add(index)));
                });
                next.set(at.saturating_add(passed));
            };
            if let Err(error) = lines.run(enter, row) {
                damage.note(out, "line table", error);
            }
        }

        let own = std::mem::take(&mut self.table);
        let (entries, table) = split.unwrap_or((unit, &own));
        let from = entries.first_child;
        if let Err(error) = self
            .walk
            .run(entries, &table.abbreviations, from, wanted, context.code)
        {
            damage.note(out, "entries", error);
        }
        let parts = UnitContents {
            unit,
            lines: lines.as_ref(),
            entries,
            table,
        };
        self.add_frames(parts, context, wanted.len(), &mut damage, out, each);
        self.table = own;
        damage.missing
    }

    /// As [`Scratch::resolve`], for one address of a cached unit.
    pub(crate) fn resolve_cached(
        &mut self,
        unit: &Unit<'a>,
        cached: &CachedUnit,
        context: Context<'a>,
        wanted: u64,
        out: &mut Answers,
        each: impl FnMut(&mut Answers, usize, usize),
    ) -> Option<Missing> {
        let mut damage = Damage::of(unit);
        for &(what, error) in &cached.damage {
            damage.note(out, what, error);
        }
        self.approximate.clear();
        self.rows.clear();
        self.rows
            .push(cached.row(wanted).filter(|_| context.query.lines));
        // Without a function there is nothing to walk.
        let from = cached.function(wanted).unwrap_or(unit.data.len());
        let abbreviations = &cached.table.abbreviations;
        if let Err(error) = self
            .walk
            .run(unit, abbreviations, from, &[wanted], context.code)
        {
            damage.note(out, "entries", error);
        }
        let lines = context.lines_of(unit).ok().flatten();
        let parts = UnitContents {
            unit,
            lines: lines.as_ref(),
            entries: unit,
            table: &cached.table,
        };
        self.add_frames(parts, context, 1, &mut damage, out, each);
        damage.missing
    }

    /// Appends the frames of `count` addresses, whose functions and rows were found.
    fn add_frames(
        &mut self,
        parts: UnitContents<'a, '_>,
        context: Context<'a>,
        count: usize,
        damage: &mut Damage,
        out: &mut Answers,
        mut each: impl FnMut(&mut Answers, usize, usize),
    ) {
        let UnitContents {
            unit,
            lines,
            entries,
            table,
        } = parts;
        // A skeleton has the lines of inlinees but not their functions.
        let skeleton = unit.dwo_name.is_some() && std::ptr::eq(unit, entries);
        self.files.clear();
        let names = &mut self.names;
        let files = &mut self.files;
        let path = |lines: &LineProgram<'a>, unit: &Unit<'a>, index| {
            lines.path(unit, index, context.query.relative_paths)
        };
        let mut file = |out: &mut Answers, index: u32| -> Option<NonZeroId> {
            let lines = lines?;
            *files.entry(index).or_insert_with(|| {
                path(lines, unit, index).and_then(|path| out.files.intern(&path))
            })
        };
        for i in 0..count {
            let start = out.frames.len();
            let row = self.rows.get(i).copied().flatten();
            let mut location = SourceLocation {
                file: row.and_then(|r| file(out, r.file)),
                line: row.map_or(0, |r| r.line),
                column: row.map_or(0, |r| r.column),
                discriminator: row.map_or(0, |r| r.discriminator),
                limited: row.is_none() && damage.lines,
            };
            if self.approximate.contains(&i) {
                let detail = out.details.entry(start).or_default();
                detail.line_approximate = true;
            }
            let mut id = self.walk.innermost.get(i).copied().unwrap_or(NO_NODE);
            let innermost = self.walk.nodes.get(id as usize);
            if id == NO_NODE && row.is_some() {
                let frame = location.frame(entries, None, None);
                out.frames.push(StoredFrame {
                    line_uncertain: skeleton && location.line != 0,
                    ..frame
                });
            }
            while let Some(node) = self.walk.nodes.get(id as usize) {
                let inlined = node.parent != NO_NODE;
                if context.query.inlines || !inlined {
                    let name = match names.find(
                        entries,
                        table,
                        node.entry,
                        context.references,
                        &mut out.names,
                    ) {
                        Ok(name) => name,
                        Err(error) => {
                            damage.note(out, "names", error);
                            None
                        }
                    };
                    // Without inlinees, LLVM's tools print that of the innermost one.
                    let declared = match context.query.inlines {
                        true => Some(node),
                        false => innermost,
                    };
                    if let Some(own) = declared.filter(|_| context.query.declarations) {
                        let declared = names.declaration(
                            entries,
                            table,
                            own.entry,
                            context.references,
                            |own, index| match lines {
                                Some(lines) if std::ptr::eq(own, entries) => {
                                    path(lines, unit, index)
                                }
                                _ => path(&LineProgram::read(own).ok()??, own, index),
                            },
                            &mut out.files,
                        );
                        let (file, line) = declared.unwrap_or_else(|error| {
                            damage.note(out, "declarations", error);
                            (None, 0)
                        });
                        let approximate = out.details.get(&out.frames.len());
                        let detail = FrameDetail {
                            file,
                            line,
                            low_pc: own.low_pc,
                            line_approximate: approximate.is_some_and(|d| d.line_approximate),
                        };
                        out.details.insert(out.frames.len(), detail);
                    }
                    let range_start = self.walk.starts.get(i).filter(|_| !inlined);
                    let start = range_start.copied().unwrap_or(node.start);
                    out.frames
                        .push(location.frame(entries, Some((node, start)), name));
                    location = SourceLocation {
                        file: match node.call_file {
                            0 if unit.encoding.version < 5 => None,
                            index if inlined => file(out, index),
                            _ => None,
                        },
                        line: if context.query.lines {
                            node.call_line
                        } else {
                            0
                        },
                        column: if context.query.lines {
                            node.call_column
                        } else {
                            0
                        },
                        discriminator: match context.query.lines {
                            true => node.call_discriminator,
                            false => 0,
                        },
                        limited: false,
                    };
                }
                let frames = out.frames.len().saturating_sub(start);
                id = match frames.checked_add(1) == Some(MAX_INLINED) && inlined {
                    true => {
                        damage.note(out, "inlined functions", DwarfError::Depth);
                        node.root
                    }
                    false => node.parent,
                };
            }
            each(out, i, start);
        }
    }
}

/// Gives the wanted addresses of a line row that row, and calls `each` with their indexes. Returns
/// how many addresses are before the end of its range.
// Few rows are of wanted addresses; inlined, this slows the others down.
#[inline(never)]
fn assign(
    row: &LineRow,
    range: Range<u64>,
    wanted: &[u64],
    rows: &mut [Option<LineRow>],
    mut each: impl FnMut(usize),
) -> usize {
    let passed = wanted
        .iter()
        .zip(rows)
        .take_while(|(va, _)| **va < range.end);
    let passed = passed.enumerate().map(|(index, (&va, own))| {
        // After a jump back, earlier rows of the sequence keep their addresses.
        if va >= range.start {
            *own = Some(*row);
            each(index);
        }
    });
    passed.count()
}

/// A unit, and what was read of it.
#[derive(Clone, Copy)]
struct UnitContents<'a, 'p> {
    unit: &'p Unit<'a>,
    lines: Option<&'p LineProgram<'a>>,
    /// The unit with the entries: the same unit unless it is split.
    entries: &'p Unit<'a>,
    table: &'p Table,
}

/// Records damage and reached limits of a unit.
struct Damage {
    unit: usize,
    missing: Option<Missing>,
    /// The limit on line tables was reached.
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

    fn note(&mut self, out: &mut Answers, what: &str, error: DwarfError) {
        self.lines |= error == DwarfError::SharedLines;
        self.missing = match self.missing {
            None if error.is_limit() => Some(Missing::LimitReached),
            Some(Missing::LimitReached) if error.is_limit() => Some(Missing::LimitReached),
            _ => Some(Missing::Damaged),
        };
        out.note_damage(format!("{what} of the unit at {:#x}: {error}", self.unit));
    }
}

/// The source line of a frame.
struct SourceLocation {
    file: Option<NonZeroId>,
    line: u32,
    column: u32,
    discriminator: u32,
    /// The limit on line tables was reached.
    limited: bool,
}

impl SourceLocation {
    /// Returns the frame of `node`, whose code starts at the address with it.
    fn frame(
        &self,
        unit: &Unit<'_>,
        node: Option<(&FunctionNode, u64)>,
        name: Option<NonZeroId>,
    ) -> StoredFrame {
        StoredFrame {
            name,
            symbol: None,
            file: self.file,
            line: self.line,
            column: self.column,
            discriminator: self.discriminator,
            function: node.map_or(0, |(_, start)| start),
            has_function: node.is_some(),
            inlined: node.is_some_and(|(n, _)| n.parent != NO_NODE),
            plain_names: unit.plain_names,
            line_limited: self.limited,
            line_uncertain: false,
            source: Source::DebugInfo,
        }
    }
}
