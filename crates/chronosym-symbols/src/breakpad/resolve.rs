//! Resolves addresses by Breakpad's symbol files.

use std::sync::OnceLock;

use super::index::Index;
use super::record::{Inline, Line, Records, Symbol, decimal};
use crate::answer::{Answers, NonZeroId, Source, StoredFrame};
use crate::interned::Interned;
use crate::mmap::FileData;
use crate::query::Query;

/// Maximum number of nested inlined calls. Compilers nest about 60.
const MAX_INLINED: u32 = 256;

/// A symbol file.
#[derive(Debug)]
pub(crate) struct BreakpadSymbols {
    data: FileData,
    index: OnceLock<Index>,
}

/// Working memory for one thread's part of a batch.
#[derive(Debug, Default)]
pub(crate) struct BreakpadScratch {
    function: Option<LoadedFunction>,
    names: Interned,
    files: Interned,
}

/// The lines and inlined calls of a function.
#[derive(Debug, Default)]
struct LoadedFunction {
    record: usize,
    lines: Vec<Line>,
    /// By depth: ranges and their calls, sorted.
    inlines: Vec<Vec<(u64, u64, Inline)>>,
}

impl BreakpadSymbols {
    pub(crate) fn new(data: FileData) -> Self {
        Self {
            data,
            index: OnceLock::new(),
        }
    }

    /// Appends the frames at an address to `out`, the innermost first; none if no symbol covers it.
    pub(crate) fn resolve(
        &self,
        address: u64,
        query: &Query,
        scratch: &mut BreakpadScratch,
        out: &mut Answers,
    ) {
        let index = self.index.get_or_init(|| Index::read(&self.data));
        let Some(found) = index.find(address) else {
            return;
        };
        let function = match &mut scratch.function {
            Some(function) if function.record == found.record => function,
            other => other.insert(LoadedFunction::read(&self.data, found.record)),
        };
        let (files, lines) = (&mut scratch.files, query.lines);
        let mut file = |out: &mut Answers, number: u32| {
            let record = index.files.record(number).filter(|_| lines)?;
            files.id(record, &mut out.files, || self.text(record, b"FILE "))
        };
        let line = function.line(address);
        let mut position = (
            line.and_then(|line| file(out, line.file)),
            line.map_or(0, |line| line.line),
        );
        let calls = match query.inlines {
            true => function.calls(address),
            false => Vec::new(),
        };
        for call in calls.into_iter().rev() {
            let record = index.origins.record(call.origin);
            let name = record.and_then(|record| {
                let text = || self.text(record, b"INLINE_ORIGIN ");
                scratch.names.id(record, &mut out.names, text)
            });
            out.frames
                .push(frame(name, position, lines, None, Source::DebugInfo));
            position = (file(out, call.file), call.line);
        }
        let name = scratch
            .names
            .id(found.record, &mut out.names, || self.name(found.record));
        let source = match found.is_function {
            true => Source::DebugInfo,
            // The end of the function is unknown.
            false => Source::Export,
        };
        out.frames
            .push(frame(name, position, lines, Some(found.start), source));
    }

    /// Returns the text that a record defines: the rest of the record after its number.
    fn text(&self, record: usize, keyword: &[u8]) -> Option<&[u8]> {
        let (_, record) = Records::from(&self.data, record).next()?;
        let mut fields = record.strip_prefix(keyword)?;
        decimal(&mut fields)?;
        Some(fields)
    }

    /// Returns the name in the record of a function or public symbol.
    fn name(&self, record: usize) -> Option<&[u8]> {
        let (_, record) = Records::from(&self.data, record).next()?;
        let function = record.strip_prefix(b"FUNC ");
        let public = record.strip_prefix(b"PUBLIC ");
        let symbol = Symbol::parse(function.or(public)?, function.is_some())?;
        Some(symbol.name).filter(|name| !name.is_empty())
    }
}

impl LoadedFunction {
    /// Reads the records that follow that of a function.
    fn read(data: &[u8], record: usize) -> Self {
        let mut function = Self {
            record,
            ..Self::default()
        };
        for (_, record) in Records::from(data, record).skip(1) {
            if let Some(fields) = record.strip_prefix(b"INLINE ") {
                function.add(fields);
            } else if let Some(line) = Line::parse(record) {
                function.lines.push(line);
            } else {
                break;
            }
        }
        function.lines.sort_by_key(|line| line.start);
        for ranges in &mut function.inlines {
            ranges.sort_by_key(|&(start, ..)| start);
        }
        function
    }

    fn add(&mut self, fields: &[u8]) {
        let mut ranges = Vec::new();
        let inline = Inline::parse(fields, |range| ranges.push((range.start, range.end)));
        let Some(inline) = inline.filter(|inline| inline.depth < MAX_INLINED) else {
            return;
        };
        let depth = inline.depth as usize;
        if self.inlines.len() <= depth {
            self.inlines.resize_with(depth.saturating_add(1), Vec::new);
        }
        if let Some(level) = self.inlines.get_mut(depth) {
            level.extend(ranges.into_iter().map(|(start, end)| (start, end, inline)));
        }
    }

    fn line(&self, address: u64) -> Option<Line> {
        let next = self.lines.partition_point(|line| line.start <= address);
        let line = self.lines.get(next.checked_sub(1)?)?;
        (address < line.end).then_some(*line)
    }

    /// Returns the inlined calls at an address, the outermost first.
    fn calls(&self, address: u64) -> Vec<Inline> {
        let levels = self.inlines.iter().map_while(|ranges| {
            let next = ranges.partition_point(|&(start, ..)| start <= address);
            let &(_, end, inline) = ranges.get(next.checked_sub(1)?)?;
            (address < end).then_some(inline)
        });
        levels.collect()
    }
}

fn frame(
    name: Option<NonZeroId>,
    (file, line): (Option<NonZeroId>, u32),
    lines: bool,
    function: Option<u64>,
    source: Source,
) -> StoredFrame {
    StoredFrame {
        name,
        symbol: None,
        file,
        line: if lines { line } else { 0 },
        column: 0,
        discriminator: 0,
        function: function.unwrap_or(0),
        has_function: function.is_some(),
        inlined: function.is_none(),
        plain_names: false,
        line_limited: false,
        line_uncertain: false,
        source,
    }
}
