//! C13 line information of a module: its subsections, and line lookup without decoding.

use super::address_map::SectionOffset;
use crate::{Error, Result, bytes};
use std::num::NonZeroU32;

const LINES: u32 = 0xF2;
const FILE_CHECKSUMS: u32 = 0xF4;
const INLINEE_LINES: u32 = 0xF6;
const IMPORTS: u32 = 0xF7;
const EXPORTS: u32 = 0xF8;

const HAS_COLUMNS: u16 = 1;
/// Line numbers of compiler-generated code: a debugger steps over the first and into the second.
const HIDDEN: [u32; 2] = [0xFE_EFEE, 0xF0_0F00];

/// A subsection in a module's C13 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subsection {
    at: u32,
    len: u32,
}

impl Subsection {
    pub(super) fn of(self, data: &[u8]) -> &[u8] {
        bytes::slice(data, self.at as usize, self.len as usize).unwrap_or_default()
    }
}

/// The offset of a DEBUG_S_LINES subsection's body in the C13 bytes; never 0, where the first
/// subsection has its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineTable(NonZeroU32);

/// A line table and the start of its code.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressedTable {
    pub(super) start: SectionOffset,
    pub(super) table: LineTable,
}

/// The subsections of a module, by kind.
#[derive(Debug, Default)]
pub(super) struct Subsections {
    /// Sorted by start; tables of one start (folded functions) keep their order.
    pub(super) tables: Box<[AddressedTable]>,
    pub(super) checksums: Subsection,
    pub(super) inlinees: Box<[Subsection]>,
    pub(super) imports: Subsection,
    pub(super) exports: Subsection,
}

/// A row of a line table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRow {
    /// Offset from the table's base.
    pub(super) offset: u32,
    pub(super) position: SourcePosition,
}

/// A position in the source; line and column are 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SourcePosition {
    /// Offset of the file's entry in the file checksums.
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) column: u16,
}

impl Subsections {
    pub(super) fn scan(data: &[u8]) -> Result<Self> {
        let mut subsections = Self::default();
        let (mut tables, mut inlinees) = (Vec::new(), Vec::new());
        let (mut at, mut fetched) = (0_usize, 0);
        while let Some(len) = bytes::u32(data, at.saturating_add(4)) {
            if at >= fetched {
                fetched = bytes::fetch(data, at);
            }
            let damaged = |problem| Error::damaged("C13 line information", at as u64, problem);
            let kind = bytes::u32(data, at).unwrap_or_default();
            let start = at.saturating_add(8);
            let leaves = "a subsection leaves the module";
            let body = bytes::slice(data, start, len as usize).ok_or(damaged(leaves))?;
            let subsection = Subsection {
                at: u32::try_from(start).map_err(|_| damaged(leaves))?,
                len,
            };
            match kind {
                LINES => tables.push(
                    AddressedTable::read(body, subsection.at)
                        .ok_or(damaged("a line table has no header"))?,
                ),
                FILE_CHECKSUMS => subsections.checksums = subsection,
                INLINEE_LINES => inlinees.push(subsection),
                IMPORTS => subsections.imports = subsection,
                EXPORTS => subsections.exports = subsection,
                _ => {}
            }
            at = start.saturating_add((len as usize).next_multiple_of(4));
        }
        tables.sort_by_key(|table: &AddressedTable| table.start);
        subsections.tables = tables.into();
        subsections.inlinees = inlinees.into();
        Ok(subsections)
    }

    /// Returns the table that covers `address`: the one that starts last, the first of equals.
    pub(super) fn table(&self, c13: &[u8], address: SectionOffset) -> Option<LineTable> {
        let after = self.tables.partition_point(|table| table.start <= address);
        let mut before = self.tables.iter().take(after).rev();
        let last = before.next()?;
        let equal = before.take_while(|table| table.start == last.start);
        let first = equal.last().unwrap_or(last);
        first.table.contains(c13, address).then_some(first.table)
    }
}

impl AddressedTable {
    /// The header has offset, section, flags, and size of the code.
    fn read(body: &[u8], at: u32) -> Option<Self> {
        bytes::slice(body, 0, 12)?;
        Some(Self {
            start: start(body)?,
            table: LineTable(NonZeroU32::new(at)?),
        })
    }
}

/// The start of a line table's code.
fn start(table: &[u8]) -> Option<SectionOffset> {
    Some(SectionOffset {
        section: bytes::u16(table, 4)?,
        offset: bytes::u32(table, 0)?,
    })
}

impl AddressedTable {
    /// Calls `each` with the addresses at which the table and each of its rows start, and that at
    /// which it ends.
    pub(super) fn each_boundary(&self, c13: &[u8], mut each: impl FnMut(SectionOffset)) {
        let body = self.table.body(c13);
        let start = self.start;
        let mut add = |by: u32| {
            let offset = start.offset.saturating_add(by);
            each(SectionOffset { offset, ..start });
        };
        add(0);
        add(bytes::u32(body, 8).unwrap_or_default());
        for block in Blocks::new(body) {
            let rows = block.rows.as_chunks::<8>().0.iter();
            rows.filter_map(|row| bytes::u32(row, 0)).for_each(&mut add);
        }
    }
}

impl LineTable {
    fn body(self, c13: &[u8]) -> &[u8] {
        let at = self.0.get();
        let len = bytes::u32(c13, (at as usize).saturating_sub(4)).unwrap_or_default();
        Subsection { at, len }.of(c13)
    }

    /// Returns the section offset that rows are relative to.
    pub(super) fn base(self, c13: &[u8]) -> u32 {
        bytes::u32(c13, self.0.get() as usize).unwrap_or_default()
    }

    fn contains(self, c13: &[u8], address: SectionOffset) -> bool {
        let body = self.body(c13);
        let start = start(body);
        start.is_some_and(|start| address.is_within(start, bytes::u32(body, 8).unwrap_or_default()))
    }

    /// Returns the row that covers `offset` (from the table's base): the last one at the greatest
    /// offset not beyond it, because earlier rows at the same offset cover no byte. For a hidden
    /// row, the nearest visible one before it.
    pub(super) fn row(self, c13: &[u8], offset: u32) -> Option<LineRow> {
        let mut best: Option<LineRow> = None;
        for block in Blocks::new(self.body(c13)) {
            let mut rows = (0..block.after(offset)).rev().map_while(|i| block.row(i));
            if let Some(row) = rows.find(|row| !HIDDEN.contains(&row.position.line))
                && best.is_none_or(|best| row.offset >= best.offset)
            {
                best = Some(row);
            }
        }
        best
    }
}

/// The rows of one file in a table: (offset, line and flags) pairs, then (start, end) columns.
#[derive(Debug, Clone, Copy)]
struct Block<'d> {
    file: u32,
    rows: &'d [u8],
    columns: &'d [u8],
}

struct Blocks<'d> {
    rest: &'d [u8],
    columns: bool,
}

impl<'d> Blocks<'d> {
    fn new(table: &'d [u8]) -> Self {
        Self {
            columns: bytes::u16(table, 6).unwrap_or_default() & HAS_COLUMNS != 0,
            rest: table.get(12..).unwrap_or_default(),
        }
    }
}

impl<'d> Iterator for Blocks<'d> {
    type Item = Block<'d>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = bytes::u32(self.rest, 0)?;
        let count = bytes::u32(self.rest, 4)? as usize;
        let size = bytes::u32(self.rest, 8)? as usize;
        let body = bytes::slice(self.rest, 12, size.checked_sub(12)?)?;
        let rows = body.get(..count.checked_mul(8)?)?;
        let columns = match self.columns {
            true => body.get(rows.len()..).unwrap_or_default(),
            false => &[],
        };
        self.rest = self.rest.get(size..).unwrap_or_default();
        Some(Block {
            file,
            rows,
            columns,
        })
    }
}

impl Block<'_> {
    /// Returns the number of rows at or before `offset`.
    fn after(&self, offset: u32) -> usize {
        let (rows, _) = self.rows.as_chunks::<8>();
        rows.partition_point(|row| bytes::u32(row, 0).is_some_and(|start| start <= offset))
    }

    fn row(&self, index: usize) -> Option<LineRow> {
        let row = self.rows.as_chunks::<8>().0.get(index)?;
        let columns = self.columns.as_chunks::<4>().0.get(index);
        let column = columns.and_then(|columns| bytes::u16(columns, 0));
        Some(LineRow {
            offset: bytes::u32(row, 0)?,
            position: SourcePosition {
                file: self.file,
                line: bytes::u32(row, 4)? & 0x00FF_FFFF,
                column: column.unwrap_or_default(),
            },
        })
    }
}

/// Returns an entry of the file checksums: offset of the file's name in `/names`, checksum kind,
/// checksum.
pub(super) fn file_entry(checksums: &[u8], offset: u32) -> Option<(u32, u8, &[u8])> {
    let at = offset as usize;
    let name = bytes::u32(checksums, at)?;
    let [len, kind] = bytes::array(checksums, at.checked_add(4)?)?;
    let sum = bytes::slice(checksums, at.checked_add(6)?, usize::from(len))?;
    Some((name, kind, sum))
}

/// The source position of an inlinee's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InlineeLine {
    pub(super) inlinee: u32,
    pub(super) position: SourcePosition,
}

fn words(bytes: [u8; 12]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_le_bytes)
}

/// Returns all entries of a module's inlinee lines, sorted by inlinee; the first of equals counts.
pub(super) fn inlinee_lines(c13: &[u8], subsections: &[Subsection]) -> Box<[InlineeLine]> {
    let mut all = Vec::new();
    for subsection in subsections {
        let data = subsection.of(c13);
        let extra_files = bytes::u32(data, 0) == Some(1);
        let mut at = 4;
        while let Some([inlinee, file, line]) = bytes::array(data, at).map(words) {
            let column = 0;
            let position = SourcePosition { file, line, column };
            all.push(InlineeLine { inlinee, position });
            at = at.saturating_add(12);
            if extra_files {
                let count = bytes::u32(data, at).unwrap_or_default() as usize;
                at = at.saturating_add(4).saturating_add(count.saturating_mul(4));
            }
        }
    }
    all.sort_by_key(|entry| entry.inlinee);
    all.dedup_by_key(|entry| entry.inlinee);
    all.into()
}
