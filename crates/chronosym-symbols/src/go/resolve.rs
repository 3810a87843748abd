//! Resolves addresses by Go's function table.

use std::ops::Range;

use super::inlined::{CALLS, CallSite, InlineTrees};
use super::moduledata::{self, Module};
use super::pclntab::{Function, Header, Pclntab, ValueRange, ValueRanges};
use crate::answer::{Answers, Missing, Source, StoredFrame};
use crate::dwarf::budget::Budget;
use crate::interned::Interned;
use crate::mmap::FileData;
use crate::query::Query;

/// The number of frames at one address. Compilers nest dozens of inlined calls; a hostile tree has
/// cycles.
const MAX_INLINED: usize = 256;

/// The function table of a Go binary.
#[derive(Debug)]
pub(crate) struct GoSymbols {
    data: FileData,
    /// File range of the table.
    table: Range<usize>,
    header: Header,
    text: u64,
    /// File range of the inline trees, its address, and the index of their list.
    trees: Option<(Range<usize>, u64, u8)>,
}

/// Working memory for one thread's part of a batch.
#[derive(Debug, Default)]
pub(crate) struct GoScratch {
    function: Option<LoadedFunction>,
    names: Interned,
    files: Interned,
    budget: Option<Budget>,
}

/// Values of an instruction or a call. Files are indices for [`Pclntab::file`].
#[derive(Debug)]
struct Position {
    /// Index of the innermost inlined call.
    call: Option<i32>,
    file: Option<i32>,
    line: Option<i32>,
}

/// A function and the values of its code.
#[derive(Debug)]
struct LoadedFunction {
    function: Function,
    lines: Vec<ValueRange>,
    files: Vec<ValueRange>,
    calls: Vec<ValueRange>,
}

impl GoSymbols {
    /// Finds the function table of a file; `None` if it is not a Go binary.
    pub(crate) fn find(data: &FileData) -> Option<Self> {
        let file = object::File::parse(&data[..]).ok()?;
        let module = moduledata::find(&file)?;
        let range = |part: &[u8]| {
            let start = (part.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
            let end = start.checked_add(part.len())?;
            (end <= data.len()).then_some(start..end)
        };
        Some(Self {
            table: range(module.table.bytes)?,
            header: module.table.header,
            text: module.text,
            trees: module
                .trees
                .and_then(|trees| Some((range(trees.bytes)?, trees.start, trees.index))),
            data: data.clone(),
        })
    }

    fn module(&self) -> Option<Module<'_>> {
        Some(Module {
            table: Pclntab {
                bytes: self.data.get(self.table.clone())?,
                header: self.header,
            },
            text: self.text,
            trees: self.trees.as_ref().and_then(|&(ref range, start, index)| {
                Some(InlineTrees {
                    bytes: self.data.get(range.clone())?,
                    start,
                    index,
                })
            }),
        })
    }

    /// Appends the frames at a virtual address to `out`, the innermost first; none if it is in no
    /// function.
    ///
    /// # Errors
    /// The reason why frames are missing, if they are not merely unnamed.
    pub(crate) fn resolve(
        &self,
        address: u64,
        query: &Query,
        scratch: &mut GoScratch,
        out: &mut Answers,
    ) -> Result<(), Missing> {
        let frames = || {
            let module = self.module()?;
            let function = module.table.find(address.checked_sub(module.text)?)?;
            Some((module, function))
        };
        let Some((module, function)) = frames() else {
            return Ok(());
        };
        let budget = scratch
            .budget
            .get_or_insert_with(|| Budget::of(self.data.len()));
        let loaded = match &mut scratch.function {
            Some(loaded) if loaded.function == function => loaded,
            other => {
                let loaded = LoadedFunction::read(module.table, function, budget);
                other.insert(loaded.ok_or(Missing::LimitReached)?)
            }
        };
        let table = module.table;
        let start = module.text.saturating_add(function.start);
        let offset = address.saturating_sub(start);
        // The bytes between a function and the next one are padding without a line.
        let lines_end = loaded.lines.last().map_or(u64::MAX, |last| last.end);
        if offset >= lines_end {
            return Ok(());
        }
        let mut position = loaded.at(offset);
        let first = out.frames.len();
        loop {
            let frames = out.frames.len().saturating_sub(first);
            let call = position
                .call
                .filter(|_| query.inlines && frames < MAX_INLINED);
            let call = module.trees.zip(call);
            let call = call.and_then(|(trees, index)| trees.call(table, &function, index));
            let name = match call {
                Some(call) => table.name_at(call.name),
                None => table.name(&function),
            };
            let file = position.file.filter(|_| query.lines);
            let file = file.and_then(|index| table.file(&function, index));
            let line = position.line.filter(|_| query.lines);
            let mut text = |at| {
                let text = table.text(at)?;
                budget.take(text.len()).is_ok().then_some(text)
            };
            let name = name.and_then(|at| scratch.names.id(at, &mut out.names, || text(at)));
            let file = file.and_then(|at| scratch.files.id(at, &mut out.files, || text(at)));
            out.frames.push(StoredFrame {
                name,
                symbol: None,
                file,
                line: line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0),
                column: 0,
                discriminator: 0,
                function: start,
                has_function: call.is_none(),
                inlined: call.is_some(),
                plain_names: false,
                line_limited: false,
                line_uncertain: false,
                source: Source::DebugInfo,
            });
            position = match call.map(|call| call.site) {
                Some(CallSite::Instruction(offset)) => loaded.at(offset),
                Some(CallSite::Line { parent, file, line }) => Position {
                    call: Some(parent).filter(|&parent| parent >= 0),
                    file: Some(file),
                    line: Some(line),
                },
                None => return Ok(()),
            };
        }
    }
}

impl LoadedFunction {
    /// Decodes the values of a function's code; `None` if the budget is used up.
    fn read(table: Pclntab<'_>, function: Function, budget: &mut Budget) -> Option<Self> {
        let len = function.end.saturating_sub(function.start);
        let mut decode = |ranges: ValueRanges<'_>| {
            let mut decoded: Vec<ValueRange> = Vec::new();
            for range in ranges {
                budget.take(1).ok()?;
                decoded.push(range);
                if range.end >= len {
                    break;
                }
            }
            Some(decoded)
        };
        Some(Self {
            lines: decode(table.lines(&function))?,
            files: decode(table.files(&function))?,
            calls: decode(table.code_data(&function, CALLS))?,
            function,
        })
    }

    fn at(&self, offset: u64) -> Position {
        Position {
            call: value(&self.calls, offset),
            file: value(&self.files, offset),
            line: value(&self.lines, offset),
        }
    }
}

/// Returns the value at an offset of a function's code, if there is one.
fn value(ranges: &[ValueRange], offset: u64) -> Option<i32> {
    let next = ranges.partition_point(|range| range.end <= offset);
    ranges
        .get(next)
        .map(|range| range.value)
        .filter(|&value| value >= 0)
}
